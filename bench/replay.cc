#include "bench/replay.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "compile/compilation.h"
#include "cost/cost.h"
#include "program/frame.h"
#include "program/lower/lower.h"
#include "program/tiles/calling.h"
#include "target/topology.h"
#include "transport/emulated_links.h"
#include "transport/open_collectives.h"
#include "transport/shared_memory.h"
#include "transport/threads.h"

namespace hone::bench {
namespace {

using Clock = std::chrono::steady_clock;
using program::BufferId;

ExchangeOptions emulating(const System& system) {
  ExchangeOptions options;
  options.links = std::make_shared<const EmulatedLinks>(emulated_links(Topology(system)));
  return options;
}

std::unique_ptr<Transport> emulated(const System& system) {
  return make_thread_transport(static_cast<int32_t>(system.device_count()), emulating(system))
      .value();
}

// Links on which all takes that many times as long.
System slowed(System system, double times) {
  for (Links& links : system.links) {
    links.bytes_per_second /= times;
    links.latency *= times;
  }
  return system;
}

// Calls `run` on each device in a thread of its own, and once more for each sample.
Result<double> median_of_runs(int32_t devices, int runs,
                              const std::function<Status(int32_t device)>& run) {
  std::vector<double> seconds;
  std::mutex mutex;
  Status failed;
  Clock::time_point begin, end;
  const auto note = [&]() noexcept {
    const Clock::time_point now = Clock::now();
    if (begin != Clock::time_point()) {
      end = now;
      seconds.push_back(std::chrono::duration<double>(end - begin).count());
      begin = Clock::time_point();
    } else {
      begin = now;
    }
  };
  std::barrier all(devices, note);
  std::vector<std::thread> threads;
  for (int32_t device = 0; device < devices; ++device)
    threads.emplace_back([&, device] {
      for (int i = 0; i <= runs; ++i) {
        all.arrive_and_wait();
        if (Status good = run(device); !good.ok()) {
          const std::lock_guard lock(mutex);
          failed = std::move(good);
        }
        all.arrive_and_wait();
      }
    });
  for (std::thread& thread : threads) thread.join();
  HONE_TRY(failed);
  seconds.erase(seconds.begin());  // it warms up
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return seconds[seconds.size() / 2];
}

// The commands of a frame on one device.
class Replayed {
 public:
  Replayed(const Program& program, const Cost& cost, int64_t threads, double slower)
      : program_(program), cost_(cost), slower_(slower) {
    for (const program::Kernel& kernel : program.kernels)
      launches_.push_back(cost.launch(*kernel.body, *kernel.schedule, threads));
  }

  void enter(const DevicePlace& place) { collectives_.enter(place); }
  Status run() { return run(*program_.main); }

 private:
  // Memory of its own for each buffer of each frame; nobody reads the numbers.
  std::span<std::byte> memory(const program::Frame& frame, BufferId buffer) {
    std::vector<std::byte>& bytes = memory_[{&frame, program::place_of(frame, buffer)}];
    const auto size = static_cast<size_t>(bytes_of(frame.buffers[buffer].type).value());
    if (bytes.size() < size) bytes.resize(size);
    return std::span(bytes).first(size);
  }

  // Kernels one behind the other are one sleep: a short one costs no more than it should.
  void compute(double seconds) {
    const std::chrono::duration<double> more(seconds * slower_);
    busy_until_ =
        std::max(busy_until_, Clock::now()) + std::chrono::duration_cast<Clock::duration>(more);
  }
  void settle() const { std::this_thread::sleep_until(busy_until_); }

  Status run(const program::Frame& frame) {
    for (const program::Command& command : frame.commands) {
      if (const auto* launch = std::get_if<program::Launch>(&command.kind)) {
        compute(launches_[launch->kernel]);
      } else if (const auto* copy = std::get_if<program::Copy>(&command.kind)) {
        compute(cost_.copy(static_cast<double>(memory(frame, copy->from).size())));
      } else if (const auto* call = std::get_if<program::Call>(&command.kind)) {
        HONE_TRY(run(*call->frame));
      } else if (const auto* start = std::get_if<program::Start>(&command.kind)) {
        settle();
        HONE_TRY(
            collectives_.start(&command, start->collective, frame.buffers[start->from].type.dtype(),
                               memory(frame, start->from), memory(frame, start->to), command.name));
      } else if (const auto* wait = std::get_if<program::Wait>(&command.kind)) {
        settle();
        HONE_TRY(collectives_.wait(&frame.commands[wait->start]));
      }
    }
    settle();
    return {};
  }

  const Program& program_;
  const Cost& cost_;
  const double slower_;
  std::vector<double> launches_;
  OpenCollectives collectives_;
  Clock::time_point busy_until_;
  std::map<std::pair<const program::Frame*, BufferId>, std::vector<std::byte>> memory_;
};

}  // namespace

Result<double> replayed_seconds(const SystemPlans& plans, const System& system, const Cost& cost,
                                int runs, double slower) {
  const Target& target = system.targets[0];
  const Program program = HONE_TRY(lower(plans.graphs[0], plans.plans[0], target));
  const std::unique_ptr<Transport> transport = emulated(slowed(system, slower));
  const auto devices = static_cast<int32_t>(system.device_count());
  std::vector<std::unique_ptr<Replayed>> replayed;
  for (int32_t d = 0; d < devices; ++d)
    replayed.push_back(std::make_unique<Replayed>(program, cost, *plans.plans[0].threads, slower));
  return HONE_TRY(median_of_runs(
             devices, runs,
             [&](int32_t device) -> Status {
               Replayed& one = *replayed[static_cast<size_t>(device)];
               one.enter({device, transport.get()});
               return one.run();
             })) /
         slower;
}

Result<double> computed_seconds(const Graph& given, const SystemPlans& plans, const System& system,
                                int runs) {
  Compilation compilation(given, system.targets[0], {.plan = plans.plans[0]});
  const std::shared_ptr<const Executable> code = HONE_TRY(compilation.executable());
  std::vector<Tensor> inputs;
  for (const Type type : given.input_types()) inputs.push_back(Tensor::zeros(type));
  const std::unique_ptr<Transport> transport = emulated(system);
  return median_of_runs(static_cast<int32_t>(system.device_count()), runs,
                        [&](int32_t device) -> Status {
                          HONE_TRY(code->run(inputs, {.place = {device, transport.get()}}));
                          return {};
                        });
}

namespace {

// The median time of the runs of one process, which wait for each other in their exchanges.
Result<double> seconds_of_process(const Graph& given, const SystemPlans& plans,
                                  const System& system, const std::string& group, int32_t device,
                                  int runs) {
  Compilation compilation(given, system.targets[0], {.plan = plans.plans[0]});
  const std::shared_ptr<const Executable> code = HONE_TRY(compilation.executable());
  std::vector<Tensor> inputs;
  for (const Type type : given.input_types()) inputs.push_back(Tensor::zeros(type));
  const auto devices = static_cast<size_t>(system.device_count());
  const std::unique_ptr<Transport> transport = HONE_TRY(join_shared_memory(
      group, {device, std::vector<int32_t>(devices, 1)}, {.exchange = emulating(system)}));
  std::vector<double> seconds;
  for (int i = 0; i <= runs; ++i) {
    const Clock::time_point begin = Clock::now();
    HONE_TRY(code->run(inputs, {.place = {device, transport.get()}}));
    if (i > 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::nth_element(seconds, seconds.begin() + std::ssize(seconds) / 2);
  return seconds[seconds.size() / 2];
}

}  // namespace

Result<double> processes_seconds(const Graph& given, const SystemPlans& plans, const System& system,
                                 int runs) {
  static int number = 0;
  const std::string group = fmt::format("hone-bench-{}-{}", getpid(), ++number);
  std::vector<pid_t> others;
  for (int32_t device = 1; device < system.device_count(); ++device) {
    const pid_t process = fork();
    if (process < 0) return over_limit("the system gives no process");
    if (process == 0)
      _exit(seconds_of_process(given, plans, system, group, device, runs).ok() ? 0 : 1);
    others.push_back(process);
  }
  Result<double> seconds = seconds_of_process(given, plans, system, group, 0, runs);
  for (const pid_t process : others) waitpid(process, nullptr, 0);
  return seconds;
}

}  // namespace hone::bench
