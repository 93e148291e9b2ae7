// What collectives cost over each transport, and what a copy of the same bytes costs. A sample is
// the time of device 0 from one collective to the next, so it has the waits for the others. Each
// device, and each process, is a thread of this process: more of them than cores take turns.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "transport/collective.h"
#include "transport/local_group.h"
#include "transport/run_steps.h"

namespace {

using namespace hone;
using Clock = std::chrono::steady_clock;

void run_collective(benchmark::State& state, TransportKind sort, CollectiveKind kind,
                    const std::string& schedule) {
  const auto devices = static_cast<int32_t>(state.range(0));
  const int64_t bytes = state.range(1);
  Collective collective = {.kind = kind, .devices = {}, .elements = bytes / 4};
  for (int32_t i = 0; i < devices; ++i) collective.devices.push_back(i);
  const std::vector<DeviceProgram> programs =
      step_programs(collective, parse_collective_schedule(schedule).value()).value();
  const LocalGroup group = LocalGroup::join(sort, devices).value();
  const auto repeats =
      static_cast<int>(std::max<int64_t>(3, std::min<int64_t>(300, (8 << 20) / bytes)));
  for (auto _ : state) {
    double seconds = 0;
    std::vector<std::thread> running;
    for (size_t i = 0; i < programs.size(); ++i)
      running.emplace_back([&, i] {
        Transport& transport = group.of(static_cast<int32_t>(i));
        const std::vector<float> input(static_cast<size_t>(programs[i].input), 1);
        std::vector<float> output(static_cast<size_t>(programs[i].output));
        Clock::time_point begin;
        for (int k = -1; k < repeats; ++k) {  // the first one is a barrier
          if (k == 0) begin = Clock::now();
          const Status status =
              run_steps(programs[i], transport, DType::f32, std::as_bytes(std::span(input)),
                        std::as_writable_bytes(std::span(output)), "a collective");
          if (!status.ok()) state.SkipWithError(status.error().what().c_str());
        }
        if (i == 0) seconds = std::chrono::duration<double>(Clock::now() - begin).count();
      });
    for (std::thread& thread : running) thread.join();
    state.SetIterationTime(seconds / repeats);
  }
  state.counters["bytes_per_second"] =
      benchmark::Counter(static_cast<double>(bytes), benchmark::Counter::kIsIterationInvariantRate);
}

void copy(benchmark::State& state) {
  const std::vector<std::byte> from(static_cast<size_t>(state.range(0)), std::byte{1});
  std::vector<std::byte> to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(copy)->RangeMultiplier(16)->Range(1 << 10, 64 << 20);

const bool kRegistered = [] {
  const std::pair<CollectiveKind, std::string> kinds[] = {
      {CollectiveKind::all_reduce, "ring"},    {CollectiveKind::all_reduce, "ring, 4 pieces"},
      {CollectiveKind::all_reduce, "halving"}, {CollectiveKind::all_reduce, "doubling"},
      {CollectiveKind::all_gather, "ring"},    {CollectiveKind::reduce_scatter, "ring"},
      {CollectiveKind::all_to_all, "direct"},  {CollectiveKind::broadcast, "tree"}};
  for (const auto& [kind, schedule] : kinds)
    for (const TransportKind sort : kLocalTransports) {
      const std::string title = fmt::format("{}/{}/{}", name(kind), schedule, name(sort));
      auto* each =
          benchmark::RegisterBenchmark(title.c_str(), run_collective, sort, kind, schedule);
      for (const int64_t devices : {2, 4})
        for (int64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 16) each->Args({devices, bytes});
      each->ArgNames({"devices", "bytes"})->UseManualTime()->Iterations(5);
    }
  return true;
}();

}  // namespace
