#include "worker/serve.h"

#include <poll.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "runtime/memory.h"
#include "worker/watch.h"

namespace hone {
namespace {

constexpr int kPollMilliseconds = 100;

std::string short_hash(const Digest& hash) {
  std::string text;
  for (size_t i = 0; i < 4; ++i) text += fmt::format("{:02x}", std::to_integer<int>(hash[i]));
  return text;
}

// The conversation with one caller.
class Session {
 public:
  Session(Transport& transport, KeptPrograms& programs, const WorkerOptions& options)
      : talk_(transport, kWorkerDevice), programs_(programs), options_(options) {}

  Status serve() {
    const HonecOptions loading = {.threads = options_.threads};
    const WorkerGreeting greeting =
        greeting_of(options_.version, HONE_TRY(host_instructions()),
                    threads_of(std::numeric_limits<int32_t>::max(), loading));
    HONE_TRY(talk_.say(greeting, "greets a caller"));
    HONE_TRY(await_next());
    while (true) {
      const Ticket ticket = std::exchange(next_, Ticket());
      HONE_TRY(talk_.transport().wait(ticket));
      const WorkerRequest request = request_;
      if (request.task == WorkerTask::close) return {};
      if (request.task != WorkerTask::load && request.task != WorkerTask::run)
        return bad_input("a request for task {}", static_cast<uint32_t>(request.task));
      HONE_TRY(request.task == WorkerTask::load ? load(request) : run(request));
    }
  }

  // The bytes of a request that has not come are the session's, so it must not come any more.
  void end(const Error& reason) {
    talk_.transport().cancel(reason);
    if (next_.id != 0) (void)talk_.transport().wait(std::exchange(next_, Ticket()));
  }

 private:
  // In time: whoever runs a program sees by it that the caller is gone.
  Status await_next() {
    if (next_.id != 0) return {};
    const auto bytes = std::as_writable_bytes(std::span(&request_, 1));
    next_ = HONE_TRY(talk_.await(bytes, "waits for a request"));
    return {};
  }

  Status answer(const WorkerAnswer& answer) { return talk_.say(answer, "answers"); }
  Status answer(const Error& error) {
    std::string text = error.to_string();
    text.resize(std::min<size_t>(text.size(), kMaxAnswerText));
    HONE_TRY(await_next());
    HONE_TRY(answer(WorkerAnswer{static_cast<uint32_t>(error.code()), 0, text.size()}));
    return talk_.send(std::as_bytes(std::span(text.data(), text.size())), "says why");
  }
  void tell(std::string_view line) const {
    if (options_.told) options_.told(fmt::format("{}: {}", talk_.peer(), line));
  }

  // ---- Programs

  Status load(const WorkerRequest& request) {
    const bool is_here = programs_.find(request.program) != nullptr;
    if (!is_here &&
        (request.bytes == 0 || request.bytes > static_cast<uint64_t>(programs_.most_bytes())))
      return over_limit("a program of {} bytes; there is room for {}", request.bytes,
                        programs_.most_bytes());
    if (is_here) HONE_TRY(await_next());
    HONE_TRY(answer(WorkerAnswer{0, is_here ? 0U : 1U, 0}));
    if (is_here) return {};
    const auto bytes = static_cast<int64_t>(request.bytes);
    programs_.make_room(bytes);
    auto memory = std::make_shared<Memory>(HONE_TRY(Memory::map(bytes)));
    const std::span<std::byte> room(memory->data(), request.bytes);
    HONE_TRY(talk_.receive(room, "receives a program"));
    if (sha256(room) != request.program)
      return bad_input("the program is not the one that was announced");
    Result<std::shared_ptr<const LoadedModel>> program = loaded(std::move(memory), room);
    if (!program.ok()) return answer(program.error());
    tell(fmt::format("sent program {} '{}', {}", short_hash(request.program),
                     excerpt((*program)->file().name()), format_bytes(bytes)));
    programs_.add(request.program, *std::move(program));
    HONE_TRY(await_next());
    return answer(WorkerAnswer());
  }

  Result<std::shared_ptr<const LoadedModel>> loaded(std::shared_ptr<Memory> memory,
                                                    std::span<const std::byte> bytes) const {
    HonecFile file = HONE_TRY(HonecFile::parse(std::move(memory), bytes));
    return LoadedModel::load(
        std::move(file), {.threads = options_.threads, .memory_limit = options_.memory_limit / 2});
  }

  // ---- Runs

  Status run(const WorkerRequest& request) {
    const std::shared_ptr<const LoadedModel> program = programs_.find(request.program);
    if (program == nullptr)
      return bad_input("program {} was not sent before", short_hash(request.program));
    const std::vector<Tensor> inputs = HONE_TRY(talk_.receive_tensors(
        request.count, request.bytes,
        [&](std::span<const Type> types) {
          return check_types(types, program->inputs(), "input", options_.memory_limit / 2);
        },
        "receives inputs"));
    HONE_TRY(await_next());
    Result<std::vector<Tensor>> outputs =
        run_watched(*program, inputs, request.flushes_denormals != 0);
    if (lost_) return *lost_;
    if (!outputs.ok()) return answer(outputs.error());
    std::vector<Type> types;
    for (const Tensor& each : *outputs) types.push_back(each.type());
    HONE_TRY(answer(
        WorkerAnswer{0, static_cast<uint32_t>(outputs->size()), encode_types(types).size()}));
    return talk_.send_tensors(*outputs, "sends outputs");
  }

  // A run for a caller that is gone is given up.
  Result<std::vector<Tensor>> run_watched(const LoadedModel& program,
                                          std::span<const Tensor> inputs, bool flushes) {
    CancelToken cancel;
    const Watch watch([&] {
      const Result<bool> has_come = talk_.transport().test(next_);
      if (has_come.ok() && !*has_come) return true;
      next_ = Ticket();
      lost_ = has_come.ok() ? bad_input("a request before the answer to the last one")
                            : Error(has_come.error());
      cancel.cancel();
      return false;
    });
    return program.run(inputs, {.cancel = &cancel, .flush_denormals = flushes});
  }

  Talk talk_;
  KeptPrograms& programs_;
  const WorkerOptions& options_;
  WorkerRequest request_;  // the next one comes here
  Ticket next_;
  std::optional<Error> lost_;  // written by the watch of a run, read when that has ended
};

// True: somebody calls.
bool is_called(const TcpListener& listener) {
  pollfd file = {listener.file().get(), POLLIN, 0};
  return poll(&file, 1, kPollMilliseconds) > 0;
}

}  // namespace

// ---- Programs that are kept --------------------------------------------------------------------

std::shared_ptr<const LoadedModel> KeptPrograms::find(const Digest& hash) {
  const auto found = std::ranges::find(kept_, hash, &Kept::hash);
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->program;
}

void KeptPrograms::make_room(int64_t bytes) {
  while (!kept_.empty() && bytes_ + bytes > most_bytes_) {
    bytes_ -= kept_.back().program->file().bytes();
    kept_.pop_back();
  }
}

void KeptPrograms::add(const Digest& hash, std::shared_ptr<const LoadedModel> program) {
  make_room(program->file().bytes());
  bytes_ += program->file().bytes();
  kept_.push_front({hash, std::move(program)});
}

// ---- Callers -----------------------------------------------------------------------------------

Status serve_caller(Transport& transport, KeptPrograms& programs, const WorkerOptions& options) {
  Session session(transport, programs, options);
  const Watch watch([&] {
    if (options.cancel == nullptr || !options.cancel->cancelled()) return true;
    transport.cancel(over_limit("the worker was stopped"));
    return false;
  });
  Status status = session.serve();
  if (!status.ok()) session.end(status.error());
  return status;
}

Status run_worker(const TcpListener& listener, std::string_view secret,
                  const WorkerOptions& options) {
  const TcpGroup group = {.group = {kWorkerDevice, {1, 1}},
                          .addresses = {{"this worker", listener.port()}, {}},
                          .secret = std::string(secret),
                          .run = kWorkerProtocol};
  KeptPrograms programs(options.memory_limit / 2);
  const auto tell = [&](std::string_view line) {
    if (options.told) options.told(line);
  };
  while (true) {
    if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
    if (!is_called(listener)) continue;
    const Result<std::unique_ptr<Transport>> joined = join_tcp(listener, group, options.streams);
    if (!joined.ok()) {
      tell(fmt::format("a caller was turned away: {}", joined.error().what()));
      continue;
    }
    const std::string caller = Talk(**joined, kWorkerDevice).peer();
    const Status status = serve_caller(**joined, programs, options);
    tell(status.ok() ? fmt::format("{}: done", caller)
                     : fmt::format("{}: {}", caller, status.error().what()));
  }
}

}  // namespace hone
