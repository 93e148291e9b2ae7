// What a candidate of a kernel costs a tuner.
//   candidates   how many different ones are measured in a minute: two at a time, each to the end
//                of the race, as one compilation of each allows; and in batches, of which most drop
//                out early. `compiling` is the share of the time of batches.
//   beside       the same candidate at one thread, while the other cores are idle and while they
//                compile: the ratio of the medians, and how far samples spread, (p90 - p10) / p50

#include <benchmark/benchmark.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <map>
#include <thread>

#include "compile/compilation.h"
#include "kernel/schedule_space.h"
#include "tune/kernel_meter.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

constexpr size_t kKernels = 8, kCandidates = 24, kBatch = 12;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Different candidates of one kernel, the planner's first.
using Candidates = std::vector<KernelCandidate>;

// Of the first kernels of a model.
std::vector<Candidates> candidates_of(std::string_view model, const Target& target) {
  Compilation compilation(build_zoo_model(model).value(), target);
  const Program& program = **compilation.program();
  std::vector<Candidates> all;
  for (size_t k = 0; k < std::min(kKernels, program.kernels.size()); ++k) {
    const program::Kernel& kernel = program.kernels[k];
    Candidates& candidates = all.emplace_back();
    candidates.push_back(candidate_of(kernel.body, *kernel.schedule, target).value());
    std::map<uint64_t, KernelCandidate> different;
    Rng rng(k);
    while (different.size() < kCandidates) {
      KernelCandidate one =
          candidate_of(kernel.body, random_schedule(*kernel.body, target, rng), target).value();
      if (one.code != candidates[0].code) different.try_emplace(one.code, std::move(one));
    }
    for (auto& [code, one] : different) candidates.push_back(std::move(one));
  }
  return all;
}

// ---- How many -----------------------------------------------------------------------------------

void count_candidates(benchmark::State& state) {
  const Target target = host_target().value();
  const std::vector<Candidates> kernels = candidates_of("mobilenet_v2", target);
  const auto minutes = [&](size_t batch, bool drops) {
    const double start = now();
    for (const Candidates& candidates : kernels) {
      KernelMeter meter = KernelMeter::make(candidates[0], target, {.drops = drops}).value();
      for (size_t from = 1; from < candidates.size(); from += batch)
        HONE_CHECK(meter.race(std::span(candidates).subspan(from, batch)).ok(), "a race");
    }
    return (now() - start) / 60;
  };
  const double all = kKernels * kCandidates;
  for (auto _ : state) {
    state.counters["alone_a_minute"] = all / minutes(2, false);
    state.counters["batch_a_minute"] = all / minutes(kBatch, true);
  }
  state.counters["ratio"] = state.counters["batch_a_minute"] / state.counters["alone_a_minute"];
}
BENCHMARK(count_candidates)->Name("candidates")->Iterations(1)->Unit(benchmark::kSecond);

// ---- Compiling beside measuring -----------------------------------------------------------------

// Processes that make code of candidates, one after another, until it ends.
class Compilers {
 public:
  Compilers(const Candidates& candidates, const Target& target, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const pid_t process = fork();
      HONE_CHECK(process >= 0, "no process");
      if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (auto k = static_cast<size_t>(i);; ++k)
          (void)object_of(candidates[k % candidates.size()], target).ok();
      }
      processes_.push_back(process);
    }
  }
  Compilers(const Compilers&) = delete;
  ~Compilers() {
    for (pid_t process : processes_) kill(process, SIGKILL);
    for (pid_t process : processes_) waitpid(process, nullptr, 0);
  }

 private:
  std::vector<pid_t> processes_;
};

double quantile(const std::vector<double>& sorted, double fraction) {
  return sorted[static_cast<size_t>(fraction * static_cast<double>(sorted.size() - 1))];
}

void compile_beside(benchmark::State& state) {
  constexpr size_t kBlocks = 6, kSamples = 40;
  constexpr double kSampleSeconds = 1e-4;
  const Target target = host_target().value();
  const std::shared_ptr<Team> team = Team::create({.threads = 1}).value();
  double medians = 0, worst = 1;
  std::map<bool, double> spreads;
  const std::vector<Candidates> kernels = candidates_of("mobilenet_v2", target);
  for (auto _ : state) {
    for (const Candidates& candidates : kernels) {
      const KernelCandidate& one = candidates[0];
      const Operands operands = random_operands(*one.kernel.body, one.schedule, 0).value();
      std::vector<OperandPlace> places;
      for (size_t p = 0; p < kPlaces; ++p)
        places.push_back(OperandPlace::make(operands, p).value());
      KernelLaunches launches =
          KernelLaunches::load(one, object_of(one, target).value(), target, team).value();
      HONE_CHECK(launches.run(places[0]).ok(), "a first launch");
      const double seconds = launches.seconds(places[0]).value();
      HONE_CHECK(launches.repeat(std::max<int64_t>(1, std::llround(kSampleSeconds / seconds))).ok(),
                 "code that was loaded before");
      std::map<bool, std::vector<double>> samples;  // by whether somebody compiles
      for (size_t block = 0; block < 2 * kBlocks; ++block) {
        std::optional<Compilers> compilers;
        if (block % 2 == 1) compilers.emplace(candidates, target, target.cores - 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        for (size_t i = 0; i < kSamples; ++i)
          samples[block % 2 == 1].push_back(launches.seconds(places[i % kPlaces]).value());
      }
      for (auto& [compiling, sorted] : samples) {
        std::ranges::sort(sorted);
        spreads[compiling] +=
            (quantile(sorted, 0.9) - quantile(sorted, 0.1)) / quantile(sorted, 0.5);
      }
      const double ratio = quantile(samples[true], 0.5) / quantile(samples[false], 0.5);
      medians += std::log(ratio);
      worst = std::max(worst, ratio);
    }
  }
  const auto count = static_cast<double>(kernels.size());
  state.counters["kernels"] = count;
  state.counters["median_ratio"] = std::exp(medians / count);
  state.counters["worst_ratio"] = worst;
  state.counters["spread_idle"] = spreads[false] / count;
  state.counters["spread_compiling"] = spreads[true] / count;
}
BENCHMARK(compile_beside)->Name("beside")->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace hone::bench
