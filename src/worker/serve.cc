#include "worker/serve.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/text.h"
#include "runtime/memory.h"
#include "transport/hosts.h"
#include "worker/idle.h"
#include "worker/watch.h"

namespace hone {
namespace {

constexpr int kPollMilliseconds = 100;

std::string short_hash(const Digest& hash) {
  std::string text;
  for (size_t i = 0; i < 4; ++i) text += fmt::format("{:02x}", std::to_integer<int>(hash[i]));
  return text;
}

// All that the devices of a worker share while they serve one caller.
class Served {
 public:
  Served(Transport& transport, KeptPrograms& programs, const WorkerOptions& options,
         const WorkerSeat& seat)
      : transport(transport), options(options), seat(seat), programs_(programs) {
    place_ = {seat.first, seat.group};
  }

  Transport& transport;
  const WorkerOptions& options;
  const WorkerSeat& seat;

  int32_t devices() const { return devices_; }
  DevicePlace place(int32_t device) const { return {place_.device + device, place_.transport}; }
  // Before the other devices take part.
  Status start(int32_t devices, uint32_t number, const Digest& work, std::string_view hosts,
               const CancelToken& cancel);

  // True: the program is here, and stays as long as the caller.
  bool use(const Digest& hash);
  Status make_room(uint64_t bytes);
  void add(const Digest& hash, std::shared_ptr<const LoadedModel> program);
  // For the device alone. Null: it was not sent.
  Result<std::shared_ptr<const LoadedModel>> program(const Digest& hash, int32_t device);

 private:
  struct Used {
    Digest hash;
    std::shared_ptr<const LoadedModel> kept;
    std::vector<std::shared_ptr<const LoadedModel>> of_device;  // with a team for each
  };
  Used* find(const Digest& hash);

  KeptPrograms& programs_;
  int32_t devices_ = 1;
  DevicePlace place_;  // of the first device
  std::unique_ptr<Transport> joined_;
  std::mutex mutex_;  // guards what follows
  std::list<Used> used_;
};

Status Served::start(int32_t devices, uint32_t number, const Digest& work, std::string_view text,
                     const CancelToken& cancel) {
  if (seat.devices != 0 && devices != seat.devices)
    return bad_input("{} devices are asked of a rank with {}", devices, seat.devices);
  devices_ = devices;
  if (text.empty()) return {};
  if (seat.listener == nullptr) return bad_input("this worker joins no hosts");
  TcpGroup group = {.group = {static_cast<int32_t>(number), {}},
                    .addresses = {},
                    .secret = std::string(seat.secret)};
  for (const Host& host : HONE_TRY(parse_hosts(text, "hosts"))) {
    group.addresses.push_back(host.address);
    group.group.devices.push_back(host.devices);
  }
  if (number >= group.addresses.size() || group.group.devices[number] != devices)
    return bad_input("process {} of {} hosts has other devices than {}", number,
                     group.addresses.size(), devices);
  std::memcpy(&group.run, work.data(), sizeof group.run);
  StreamOptions streams = options.streams;
  streams.cancel = &cancel;
  joined_ = HONE_TRY(join_tcp(*seat.listener, group, streams));
  place_ = {group.group.first_device(group.group.process), joined_.get()};
  return {};
}

Served::Used* Served::find(const Digest& hash) {
  const auto found = std::ranges::find(used_, hash, &Used::hash);
  if (found != used_.end()) return &*found;
  std::shared_ptr<const LoadedModel> kept = programs_.find(hash);
  if (kept == nullptr) return nullptr;
  used_.push_back({hash, std::move(kept), {}});
  return &used_.back();
}

bool Served::use(const Digest& hash) {
  const std::scoped_lock lock(mutex_);
  return find(hash) != nullptr;
}

Status Served::make_room(uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto most = static_cast<uint64_t>(programs_.most_bytes());
  uint64_t used = 0;
  for (const Used& one : used_) used += static_cast<uint64_t>(one.kept->file().bytes());
  if (bytes == 0 || bytes > most || used > most - bytes)
    return over_limit("a program of {} bytes; there is room for {}", bytes,
                      most - std::min(most, used));
  programs_.make_room(static_cast<int64_t>(bytes));
  return {};
}

void Served::add(const Digest& hash, std::shared_ptr<const LoadedModel> program) {
  const std::scoped_lock lock(mutex_);
  programs_.add(hash, std::move(program));
  (void)find(hash);
}

Result<std::shared_ptr<const LoadedModel>> Served::program(const Digest& hash, int32_t device) {
  const std::scoped_lock lock(mutex_);
  Used* const used = find(hash);
  if (used == nullptr) return std::shared_ptr<const LoadedModel>();
  // Runs remember their group, which ends with the caller.
  if (devices_ == 1 && place_.transport == nullptr) return used->kept;
  used->of_device.resize(static_cast<size_t>(devices_));
  std::shared_ptr<const LoadedModel>& own = used->of_device[static_cast<size_t>(device)];
  if (own == nullptr)
    own = HONE_TRY(LoadedModel::load(
        used->kept->file(),
        {.threads = options.threads, .memory_limit = options.memory_limit / 2 / devices_}));
  return own;
}

// The conversation of one device with the caller.
class Conversation {
 public:
  Conversation(Served& served, int32_t device)
      : talk_(served.transport, served.seat.own, served.seat.caller,
              served.seat.tag + static_cast<uint32_t>(device)),
        served_(served),
        device_(device) {}
  ~Conversation() {
    for (std::thread& each : others_) each.join();
  }

  Status greet() {
    const HonecOptions loading = {.threads = served_.options.threads};
    const WorkerGreeting greeting =
        greeting_of(served_.options.version, HONE_TRY(host_instructions()),
                    threads_of(std::numeric_limits<int32_t>::max(), loading), served_.seat.work);
    return talk_.say(greeting, "greets a caller");
  }

  Status serve() {
    HONE_TRY(await_next());
    while (true) {
      const Ticket ticket = std::exchange(next_, Ticket());
      HONE_TRY(talk_.transport().wait(ticket));
      const WorkerRequest request = request_;
      switch (request.task) {
        case WorkerTask::close: return {};
        case WorkerTask::load: HONE_TRY(load(request)); break;
        case WorkerTask::run: HONE_TRY(run(request)); break;
        case WorkerTask::start: HONE_TRY(start(request)); break;
        default: return bad_input("a request for task {}", static_cast<uint32_t>(request.task));
      }
    }
  }

  // The bytes of a request that has not come are the conversation's, so it must not come any more.
  void end(const Error& reason) {
    talk_.transport().cancel(reason);
    if (next_.id != 0) (void)talk_.transport().wait(std::exchange(next_, Ticket()));
  }

 private:
  // In time: whoever runs a program sees by it that the caller is gone.
  Status await_next() {
    if (next_.id != 0) return {};
    const auto bytes = std::as_writable_bytes(std::span(&request_, 1));
    next_ = HONE_TRY(talk_.await(bytes, kAwaitsRequest));
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
    if (served_.options.told) served_.options.told(fmt::format("{}: {}", talk_.peer(), line));
  }

  // ---- Devices

  Status start(const WorkerRequest& request) {
    if (device_ != 0 || has_begun_) return bad_input("devices start before all else, and once");
    has_begun_ = true;
    if (request.count < 1 || request.count > static_cast<uint32_t>(kMaxWorkerDevices))
      return bad_input("{} devices; a worker has 1 to {}", request.count, kMaxWorkerDevices);
    if (request.bytes > static_cast<uint64_t>(kMaxHostsText))
      return bad_input("{} bytes of hosts", request.bytes);
    std::string hosts(request.bytes, ' ');
    if (!hosts.empty())
      HONE_TRY(talk_.receive(std::as_writable_bytes(std::span(hosts.data(), hosts.size())),
                             "receives hosts"));
    const auto devices = static_cast<int32_t>(request.count);
    HONE_TRY(await_next());
    CancelToken cancel;
    std::unique_ptr<Watch> watch = HONE_TRY(watch_caller(cancel));
    Status started = served_.start(devices, request.number, request.program, hosts, cancel);
    watch = nullptr;
    if (lost_) return *lost_;
    if (!started.ok()) return answer(started.error());
    for (int32_t i = 1; i < devices; ++i) {
      try {
        others_.emplace_back([this, i] { serve_other(i); });
      } catch (const std::system_error& error) {
        return over_limit("the system gives no thread: {}", error.what());
      }
    }
    HONE_TRY(await_next());
    return answer(WorkerAnswer());
  }

  void serve_other(int32_t device) {
    Conversation other(served_, device);
    const Status status = other.serve();
    if (!status.ok()) other.end(status.error());
  }

  // ---- Programs

  Status load(const WorkerRequest& request) {
    has_begun_ = true;
    if (device_ != 0) return bad_input("device {} is sent a program", device_);
    const bool is_here = served_.use(request.program);
    if (!is_here) HONE_TRY(served_.make_room(request.bytes));
    if (is_here) HONE_TRY(await_next());
    HONE_TRY(answer(WorkerAnswer{0, is_here ? 0U : 1U, 0}));
    if (is_here) return {};
    const auto bytes = static_cast<int64_t>(request.bytes);
    auto memory = std::make_shared<Memory>(HONE_TRY(Memory::map(bytes)));
    const std::span<std::byte> room(memory->data(), request.bytes);
    HONE_TRY(talk_.receive(room, "receives a program"));
    if (sha256(room) != request.program)
      return bad_input("the program is not the one that was announced");
    Result<std::shared_ptr<const LoadedModel>> program = loaded(std::move(memory), room);
    if (!program.ok()) return answer(program.error());
    tell(fmt::format("sent program {} '{}', {}", short_hash(request.program),
                     excerpt((*program)->file().name()), format_bytes(bytes)));
    served_.add(request.program, *std::move(program));
    HONE_TRY(await_next());
    return answer(WorkerAnswer());
  }

  Result<std::shared_ptr<const LoadedModel>> loaded(std::shared_ptr<Memory> memory,
                                                    std::span<const std::byte> bytes) const {
    HonecFile file = HONE_TRY(HonecFile::parse(std::move(memory), bytes));
    const WorkerOptions& options = served_.options;
    return LoadedModel::load(
        std::move(file), {.threads = options.threads, .memory_limit = options.memory_limit / 2});
  }

  // ---- Runs

  Status run(const WorkerRequest& request) {
    has_begun_ = true;
    const std::shared_ptr<const LoadedModel> program =
        HONE_TRY(served_.program(request.program, device_));
    if (program == nullptr)
      return bad_input("program {} was not sent before", short_hash(request.program));
    const int64_t limit = served_.options.memory_limit / 2 / served_.devices();
    const std::vector<Tensor> inputs = HONE_TRY(talk_.receive_tensors(
        request.count, request.bytes,
        [&](std::span<const Type> types) {
          return check_types(types, program->inputs(), "input", limit);
        },
        "receives inputs"));
    HONE_TRY(await_next());
    RunOptions options = {.flush_denormals = request.flushes_denormals != 0};
    if (request.number != 0) options.place = served_.place(device_);
    Result<std::vector<Tensor>> outputs = run_watched(*program, inputs, options);
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
                                          std::span<const Tensor> inputs, RunOptions options) {
    CancelToken cancel;
    const std::unique_ptr<Watch> watch = HONE_TRY(watch_caller(cancel));
    options.cancel = &cancel;
    return program.run(inputs, options);
  }

  // While it lives, a caller that is gone cancels what is done for it, and lost_ says why. After
  // await_next().
  Result<std::unique_ptr<Watch>> watch_caller(CancelToken& cancel) {
    return Watch::make([this, &cancel] {
      const Result<bool> has_come = talk_.transport().test(next_);
      if (has_come.ok() && !*has_come) return true;
      next_ = Ticket();
      lost_ = has_come.ok() ? bad_input("a request before the answer to the last one")
                            : Error(has_come.error());
      cancel.cancel();
      return false;
    });
  }

  Talk talk_;
  Served& served_;
  const int32_t device_;
  bool has_begun_ = false;
  WorkerRequest request_;  // the next one comes here
  Ticket next_;
  std::optional<Error> lost_;        // written by watch_caller(), read when that has ended
  std::vector<std::thread> others_;  // of the first device: those of the others
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

Status serve_caller(Transport& transport, KeptPrograms& programs, const WorkerOptions& options,
                    const WorkerSeat& seat) {
  Served served(transport, programs, options, seat);
  const std::unique_ptr<Watch> watch = HONE_TRY(Watch::make([&] {
    if (options.cancel == nullptr || !options.cancel->cancelled()) return true;
    transport.cancel(over_limit("the worker was stopped"));
    return false;
  }));
  Conversation first(served, 0);  // waits for those of other devices, while the watch looks
  Status status = first.greet();
  if (status.ok()) status = first.serve();
  if (!status.ok()) first.end(status.error());
  return status;
}

Status run_worker(const TcpListener& listener, std::string_view secret,
                  const WorkerOptions& options) {
  const TcpGroup group = {.group = {kWorkerDevice, {1, 1}},
                          .addresses = {{"this worker", listener.port()}, {}},
                          .secret = std::string(secret),
                          .run = kWorkerProtocol};
  KeptPrograms programs(options.memory_limit / 2);
  const WorkerSeat seat = {.listener = &listener, .secret = secret};
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
    const Status status = serve_caller(**joined, programs, options, seat);
    tell(status.ok() ? fmt::format("{}: done", caller)
                     : fmt::format("{}: {}", caller, status.error().what()));
  }
}

}  // namespace hone
