// What a model's plans are worth that were made without any measurement of the program: in turns
// with those of the analytic price. A model of the zoo is planned for by the network of a split
// that has its program among those to test.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "bench/flags.h"
#include "bench/prices/trials.h"
#include "compile/compilation.h"
#include "cost/analytic.h"
#include "cost/learned_cost.h"
#include "tune/plan_duel.h"
#include "tune/tuner.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

const Flag kZeroShot("zero_shot",
                     "efficientnet_b0,resnet50,inception_v3,shufflenet_v2,vit_b16,bert_base,gpt2,"
                     "lstm,squeezenet,densenet121");
constexpr double kTunedGain = 1.03;  // of models that tuning improves

struct Gains {
  double zero_shot = 1;
  double tuned = 1;
};
std::vector<Gains>& gains() {
  static std::vector<Gains> gains;
  return gains;
}

// Null: all models have seen the program.
const KernelModel* model_without(const Trials& trials, const std::string& program) {
  for (size_t s = 0; s < trials.splits.size(); ++s)
    if (std::ranges::binary_search(trials.splits[s].of(Part::test), program))
      return &trials.unseen[s].model;
  return nullptr;
}

Result<PlanDuel> zero_shot(const Graph& graph, const KernelModel& model, const KernelData& data) {
  const auto analytic = std::make_shared<const AnalyticCost>(data.target);
  const auto learned = std::make_shared<const LearnedCost>(
      data.target, std::make_shared<const KernelModel>(model), analytic);
  const auto options_by = [&](std::shared_ptr<const Cost> cost) {
    CompileOptions options;
    options.cost = std::move(cost);
    options.plan.threads = data.threads;
    return options;
  };
  Compilation before(graph, data.target, options_by(analytic));
  Compilation after(graph, data.target, options_by(learned));
  const Image& first = *HONE_TRY(before.image());
  const Image& second = *HONE_TRY(after.image());
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 1));
  return duel(first, second, inputs, {.seconds = seconds_of_plans()});
}

Status measure(benchmark::State& state, const std::string& name) {
  if (!trials().ok()) return trials().error();
  const Trials& all = *trials();
  const KernelModel* model = model_without(all, "zoo:" + name);
  if (model == nullptr) return unsupported("no split tests {}", name);
  const Graph graph = HONE_TRY(build_zoo_model(name));
  const PlanDuel fight = HONE_TRY(zero_shot(graph, *model, all.data));
  for (auto _ : state) state.SetIterationTime(0);
  if (fight.outcome != Outcome::measured) return bad_input("{}: {}", name, fight.detail);
  state.counters["gain"] = fight.gain();
  if (fight.times.interval) {
    state.counters["low"] = 1 / fight.times.interval->high;
    state.counters["high"] = 1 / fight.times.interval->low;
  }
  gains().push_back({.zero_shot = fight.gain()});
  if (seconds_of_tuning() == 0) return {};
  const Tuned tuned = HONE_TRY(
      tune(graph, all.data.target, {.seconds = seconds_of_tuning(), .threads = all.data.threads}));
  gains().back().tuned = tuned.gain();
  state.counters["tuned"] = tuned.gain();
  return {};
}

// Of the logarithms of what tuning gains, the part that is there without measuring.
double share_of_tuning() {
  double zero_shot = 0, tuned = 0;
  for (const Gains& each : gains()) {
    if (each.tuned < kTunedGain) continue;
    zero_shot += std::log(each.zero_shot);
    tuned += std::log(each.tuned);
  }
  return zero_shot / tuned;
}

void add_mean(benchmark::State& state) {
  double sum = 0;
  for (const Gains& each : gains()) sum += std::log(each.zero_shot);
  for (auto _ : state) state.SetIterationTime(0);
  if (gains().empty()) return;
  state.counters["gain"] = std::exp(sum / static_cast<double>(gains().size()));
  state.counters["least"] = std::ranges::min_element(gains(), {}, &Gains::zero_shot)->zero_shot;
  if (seconds_of_tuning() != 0) state.counters["share"] = share_of_tuning();
}

const Rows kRows([] {
  const auto add = [](const std::string& name, const auto& run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Iterations(1)->UseManualTime();
  };
  for (std::string_view model : split(kZeroShot.text(), ','))
    add(fmt::format("zero_shot/{}", model), [model = std::string(model)](benchmark::State& state) {
      const Status status = measure(state, model);
      if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
    });
  add("zero_shot/geometric_mean", add_mean);
});

}  // namespace
}  // namespace hone::bench
