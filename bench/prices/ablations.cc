// What each part of the learned price is worth, for programs that it has not seen (--data,
// --splits): "chosen" is the regret of what the planner takes, "tau" that of the order.
//   whole                 all of it
//   without_uncertainty   the first by price is taken, however unsure it is; the same networks
//   without_random        no network learns from random programs
// Those without features of the target are held_out/PART/without_target, and `hone eval plans` says
// what a model of whole plans adds.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>

#include "bench/prices/trials.h"

namespace hone::bench {
namespace {

bool is_random(std::string_view program) { return program.starts_with("random:"); }

// Kernels that random programs alone have are no longer there to train on.
Result<std::vector<PriceTrial>> trials_without_random() {
  KernelData data = HONE_TRY(kernel_data());
  std::vector<PriceTrial> all;
  for (const ProgramSplit& split : HONE_TRY(splits_of(data))) {
    ProgramSplit rest = split;
    for (Part of : {Part::train, Part::validation}) std::erase_if(rest.of(of), is_random);
    all.push_back(HONE_TRY(price_trial(thinned(data, split), rest, training())));
  }
  return all;
}

// The means over trials, each of the kernels of a split's test.
void report(benchmark::State& state, std::span<const PriceTrial> trials,
            std::vector<KernelVerdict> PriceTrial::* choice) {
  for (auto _ : state) state.SetIterationTime(0);
  std::vector<double> tau, chosen;
  for (const PriceTrial& trial : trials) {
    tau.push_back(mean_of(trial.learned).tau);
    chosen.push_back(mean_of(trial.*choice).top1);
  }
  state.counters["tau"] = interval_of(tau).mean;
  state.counters["chosen"] = interval_of(chosen).mean;
  state.counters["chosen_half"] = interval_of(chosen).half;
}

void report_whole(benchmark::State& state, std::vector<KernelVerdict> PriceTrial::* choice) {
  if (!trials().ok()) return state.SkipWithError(trials().error().to_string().c_str());
  report(state, trials()->unseen, choice);
}

void report_without_random(benchmark::State& state) {
  const Result<KernelData> data = kernel_data();
  if (!data.ok()) return state.SkipWithError(data.error().to_string().c_str());
  if (std::ranges::none_of(programs_of(*data), is_random))
    return state.SkipWithError("the data set has no random programs");
  const Result<std::vector<PriceTrial>> all = trials_without_random();
  if (!all.ok()) return state.SkipWithError(all.error().to_string().c_str());
  report(state, *all, &PriceTrial::chosen);
}

const int registered = [] {
  const auto add = [](const char* name, auto run) {
    benchmark::RegisterBenchmark(name, run)->Iterations(1)->UseManualTime();
  };
  add("ablations/whole", [](auto& state) { report_whole(state, &PriceTrial::chosen); });
  add("ablations/without_uncertainty",
      [](auto& state) { report_whole(state, &PriceTrial::learned); });
  add("ablations/without_random", [](auto& state) { report_without_random(state); });
  return 0;
}();

}  // namespace
}  // namespace hone::bench
