// What it costs to start and join the threads of compiled models, and to launch their kernels.
// Samples are taken one by one: the low ones tell what it costs, the others what else ran.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "runtime/executable.h"
#include "runtime/team.h"

namespace {

using namespace hone;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Times `work` once an iteration; counters tell how the samples spread, in nanoseconds.
template <class Work>
void sample(benchmark::State& state, const Work& work) {
  std::vector<double> samples;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    work();
    samples.push_back(seconds_since(begin));
    state.SetIterationTime(samples.back());
  }
  std::sort(samples.begin(), samples.end());
  const auto percentile = [&](size_t p) { return 1e9 * samples[samples.size() * p / 100]; };
  state.counters["p10_ns"] = percentile(10);
  state.counters["median_ns"] = percentile(50);
  state.counters["p90_ns"] = percentile(90);
}

// A job of two parts that wait for each other, so that both threads take part: the time to start a
// worker and to see it end. Spinning, and with a worker that sleeps.
void fork_join(benchmark::State& state) {
  const auto spin = std::chrono::microseconds(state.range(0));
  const std::shared_ptr<Team> team = Team::create({.threads = 2, .spin = spin}).value();
  std::atomic<uint64_t> arrived = 0;
  uint64_t jobs = 0;
  sample(state, [&] {
    ++jobs;
    team->run(2, 2, [&](int64_t, int64_t, int64_t) noexcept {
      arrived.fetch_add(1);
      while (arrived.load() < 2 * jobs) {
      }
    });
  });
}
BENCHMARK(fork_join)->ArgName("spin_us")->Arg(10000)->Arg(0)->UseManualTime();

// A job of two parts of some microseconds each. Beyond the time of a part is what the team costs,
// where two cores are free.
void busy_parts(benchmark::State& state) {
  const std::shared_ptr<Team> team = Team::create({.threads = 2}).value();
  sample(state, [&] {
    team->run(2, 2, [&](int64_t begin, int64_t end, int64_t) noexcept {
      for (int64_t i = begin; i < end; ++i) {
        const Clock::time_point start = Clock::now();
        while (seconds_since(start) < 1e-6 * static_cast<double>(state.range(0))) {
        }
      }
    });
  });
}
BENCHMARK(busy_parts)->ArgName("part_us")->Arg(1)->Arg(10)->Arg(100)->UseManualTime();

// A run of copies of one byte: what a run costs, and each of its commands.
void commands(benchmark::State& state) {
  using image::Place;
  const Type type = Type::get(DType::i8, {1});
  Image image = {.name = "copies"};
  image.inputs = {{"x", type}};
  image.outputs = {{"y", type}};
  const image::Copy copy = {{Place::Region::input, 0, 0, 1, {}},
                            {Place::Region::output, 0, 0, 1, {}}};
  image.commands.assign(static_cast<size_t>(state.range(0)), {"copy", copy});
  const std::shared_ptr<const Executable> executable = Executable::load(image).value();
  int8_t x = 1, y = 0;
  const void* inputs[] = {&x};
  void* outputs[] = {&y};
  for (auto _ : state) {
    if (!executable->run(inputs, outputs).ok()) state.SkipWithError("the run failed");
  }
}
BENCHMARK(commands)->Arg(0)->Arg(1)->Arg(100)->Arg(1000);

}  // namespace
