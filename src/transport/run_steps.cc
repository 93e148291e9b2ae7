#include "transport/run_steps.h"

#include <cstring>
#include <memory>

#include "base/checked_math.h"
#include "transport/combine_elements.h"

namespace hone {

Result<int64_t> bytes_of(int64_t elements, DType dtype) {
  if (bits(dtype) < 8)
    return unsupported("elements of {} share bytes; devices exchange whole ones", name(dtype));
  int64_t bytes = 0;
  if (elements < 0 || __builtin_mul_overflow(elements, int64_t{bits(dtype) / 8}, &bytes))
    return over_limit("{} elements of {}", elements, name(dtype));
  return bytes;
}

namespace {

Status check_room(const char* room, size_t bytes, int64_t elements, DType dtype) {
  const int64_t needed = HONE_TRY(bytes_of(elements, dtype));
  if (bytes >= static_cast<size_t>(needed)) return {};
  return bad_input("the {} has {} bytes; {} elements of {} take {}", room, bytes, elements,
                   name(dtype), needed);
}

Status check_sums(const DeviceProgram& program, Combine combine, DType dtype) {
  for (const DeviceStep& step : program.steps)
    if (step.kind == StepKind::add && !can_combine(combine, dtype))
      return unsupported("a {} of {}", name(combine), name(dtype));
  return {};
}

}  // namespace

Result<StepRun> StepRun::begin(const DeviceProgram& program, Transport& transport,
                               const StepMemory& memory, std::string_view command) {
  HONE_TRY(check_room("input", memory.input.size(), program.input, memory.dtype));
  HONE_TRY(check_room("output", memory.output.size(), program.output, memory.dtype));
  HONE_TRY(check_room("scratch", memory.scratch.size(), program.scratch, memory.dtype));
  if (Status good = check_sums(program, memory.combine, memory.dtype); !good.ok())
    return Error(good.error()).about(fmt::format("'{}' on device {}", command, program.device));
  return StepRun(program, transport, memory, command);
}

StepRun::StepRun(const DeviceProgram& program, Transport& transport, const StepMemory& memory,
                 std::string_view command)
    : program_(&program),
      transport_(&transport),
      memory_(memory),
      command_(command),
      element_bytes_(bits(memory.dtype) / 8),
      tickets_(static_cast<size_t>(program.tickets)) {}

std::span<const std::byte> StepRun::read(const StepPart& part) const {
  const std::span<const std::byte> rooms[] = {memory_.input, memory_.output, memory_.scratch};
  return rooms[static_cast<int>(part.room)].subspan(
      static_cast<size_t>(part.begin * element_bytes_),
      static_cast<size_t>(part.count * element_bytes_));
}

std::span<std::byte> StepRun::write(const StepPart& part) const {
  const std::span<std::byte> room =
      part.room == StepRoom::output ? memory_.output : memory_.scratch;
  return room.subspan(static_cast<size_t>(part.begin * element_bytes_),
                      static_cast<size_t>(part.count * element_bytes_));
}

Status StepRun::begin_transfer(const DeviceStep& step) {
  Ticket& ticket = tickets_[static_cast<size_t>(step.ticket)];
  if (step.kind == StepKind::send)
    ticket = HONE_TRY(
        transport_->send({program_->device, step.peer, step.tag}, read(step.from), command_));
  else
    ticket = HONE_TRY(
        transport_->receive({step.peer, program_->device, step.tag}, write(step.to), command_));
  return {};
}

void StepRun::compute(const DeviceStep& step) const {
  const std::span<std::byte> to = write(step.to);
  if (to.empty()) return;
  if (step.kind == StepKind::zero) {
    std::memset(to.data(), 0, to.size());
  } else if (step.kind == StepKind::add) {
    combine_elements(memory_.combine, memory_.dtype, to.data(), read(step.from).data(),
                     read(step.other).data(), step.to.count);
  } else if (const std::byte* from = read(step.from).data(); from != to.data()) {
    std::memmove(to.data(), from, to.size());
  }
}

Result<bool> StepRun::advance() {
  for (; next_ < program_->steps.size(); ++next_) {
    const DeviceStep& step = at();
    if (step.kind == StepKind::send || step.kind == StepKind::receive) {
      HONE_TRY(begin_transfer(step));
    } else if (step.kind == StepKind::wait) {
      Ticket& ticket = tickets_[static_cast<size_t>(step.ticket)];
      HONE_CHECK(ticket.id != 0, "'{}' waits for a transfer that has not begun", command_);
      const Ticket waited = std::exchange(ticket, Ticket{});
      const Result<bool> done = transport_->test(waited);
      if (!done.ok()) return done.error();
      if (!*done) return ticket = waited, false;
    } else {
      compute(step);
    }
  }
  return true;
}

Status StepRun::finish() {
  while (true) {
    const Result<bool> done = advance();
    if (!done.ok()) return give_up(done.error());
    if (*done) return {};
    Ticket& ticket = tickets_[static_cast<size_t>(at().ticket)];
    const Ticket waited = std::exchange(ticket, Ticket{});
    if (const Status good = transport_->wait(waited); !good.ok()) return give_up(good.error());
    ++next_;
  }
}

Status StepRun::give_up(const Error& reason) {
  transport_->cancel(reason);
  for (Ticket& ticket : tickets_)
    if (ticket.id != 0) (void)transport_->wait(std::exchange(ticket, Ticket{}));
  return reason;
}

Status run_steps(const DeviceProgram& program, Transport& transport, DType dtype,
                 std::span<const std::byte> input, std::span<std::byte> output,
                 std::string_view command) {
  const int64_t bytes = HONE_TRY(bytes_of(program.scratch, dtype));
  const auto scratch = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(bytes));
  StepRun run = HONE_TRY(
      StepRun::begin(program, transport,
                     {dtype, input, output, {scratch.get(), static_cast<size_t>(bytes)}}, command));
  return run.finish();
}

}  // namespace hone
