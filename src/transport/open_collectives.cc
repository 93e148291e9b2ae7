#include "transport/open_collectives.h"

#include <chrono>
#include <thread>
#include <utility>

#include "transport/message_steps.h"
#include "transport/threads.h"

namespace hone {

void OpenCollectives::enter(const DevicePlace& place) {
  HONE_CHECK(open_.empty(), "a run begins while collectives of another one are open");
  const int32_t devices = devices_of(place);
  if (place.device != place_.device || devices != devices_) prepared_.clear();
  devices_ = devices;
  place_ = place;
  started_ = 0;
}

Transport& OpenCollectives::transport() {
  if (place_.transport != nullptr) return *place_.transport;
  if (alone_ == nullptr) alone_ = make_thread_transport(1).value();
  return *alone_;
}

Result<OpenCollectives::Prepared*> OpenCollectives::prepare(const void* key,
                                                            const SpmdCollective& spmd, DType dtype,
                                                            int64_t from, int64_t to,
                                                            std::string_view result) {
  if (const auto known = prepared_.find(key); known != prepared_.end()) return &known->second;
  const MovedElements moved = HONE_TRY(moved_elements(spmd, dtype, from, to));
  OwnCollective own =
      HONE_TRY(own_collective(spmd, moved.count, place_.device, devices_of(place_)));
  std::vector<DeviceProgram> programs = HONE_TRY(step_programs(own.collective, spmd.schedule));
  Prepared prepared = {fmt::format("{} %{}", name(spmd.kind), result),
                       std::move(programs[static_cast<size_t>(own.member)]),
                       moved,
                       {}};
  const int64_t bytes = HONE_TRY(bytes_of(prepared.program.scratch, moved.dtype));
  prepared.scratch.resize(static_cast<size_t>(bytes));
  return &prepared_.emplace(key, std::move(prepared)).first->second;
}

Status OpenCollectives::start(const void* key, const SpmdCollective& spmd, DType dtype,
                              std::span<const std::byte> from, std::span<std::byte> to,
                              std::string_view result) {
  HONE_CHECK(!open_.contains(key), "%{} starts while it is open", result);
  Prepared* prepared =
      HONE_TRY(prepare(key, spmd, dtype, std::ssize(from), std::ssize(to), result));
  const uint32_t tag = started_++;
  for (DeviceStep& step : prepared->program.steps)
    if (step.kind == StepKind::send || step.kind == StepKind::receive) step.tag = tag;
  return begin(key, *prepared, {prepared->moved.dtype, from, to, prepared->scratch, spmd.combine});
}

Status OpenCollectives::begin(const void* key, Prepared& prepared, const StepMemory& memory) {
  StepRun run = HONE_TRY(StepRun::begin(prepared.program, transport(), memory, prepared.command));
  open_.emplace(key, std::move(run));
  return poll();
}

Status OpenCollectives::send(const void* key, const Message& message,
                             std::span<const std::byte> from, std::string_view value) {
  return start_message(key, StepKind::send, message, {DType::u8, from, {}, {}}, value);
}

Status OpenCollectives::receive(const void* key, const Message& message, std::span<std::byte> to,
                                std::string_view value) {
  return start_message(key, StepKind::receive, message, {DType::u8, {}, to, {}}, value);
}

Status OpenCollectives::start_message(const void* key, StepKind kind, const Message& message,
                                      const StepMemory& memory, std::string_view value) {
  HONE_CHECK(!open_.contains(key), "%{} starts while it is open", value);
  const auto [known, is_new] = prepared_.try_emplace(key);
  if (is_new) {
    const bool sends = kind == StepKind::send;
    known->second.command = fmt::format("{} %{}", sends ? "send" : "receive", value);
    known->second.program = message_steps(kind, message, place_.device,
                                          std::ssize(memory.input) + std::ssize(memory.output));
  }
  if (Status good = check(message, place_); !good.ok())
    return Error(good.error()).about("'" + known->second.command + "'");
  return begin(key, known->second, memory);
}

Status OpenCollectives::poll() {
  for (auto& [key, run] : open_)
    if (const Result<bool> done = run.advance(); !done.ok()) return done.error();
  return {};
}

Status OpenCollectives::wait(const void* key, const CancelToken* cancel) {
  const auto found = open_.find(key);
  HONE_CHECK(found != open_.end(), "nothing has started that is waited for");
  // A short wait does not sleep; a long one looks at the token now and then.
  for (int looks = 0; cancel != nullptr; ++looks) {
    HONE_TRY(poll());
    if (HONE_TRY(found->second.advance())) break;
    HONE_TRY(cancel->check());
    if (looks < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  const Status good = found->second.finish();
  if (good.ok()) open_.erase(found);
  return good;
}

void OpenCollectives::give_up(const Error& reason) {
  if (place_.transport != nullptr) place_.transport->cancel(reason);
  for (auto& [key, run] : open_) (void)run.give_up(reason);
  open_.clear();
}

}  // namespace hone
