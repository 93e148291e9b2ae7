// How many times as fast default plans are here as by the analytic price, in turns on one thread:
// by the learned price, by the one that calibration has adapted to this machine, and tuned. So a
// machine whose processor no model has learned from shows what the price is worth on a new one.
//   --plans=A,B     models of the zoo; without it these rows are left out
//   --price=FILE    the learned price, of which programs and processors are to be new ones; else
//                   the one that comes with hone
//   --adapt=S       of calibration (120; 0: do not)
//   --seconds=S --tuned=S   as for zero_shot/...

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/text.h"
#include "bench/flags.h"
#include "bench/prices/trials.h"
#include "cost/analytic.h"
#include "rewrite/prepare.h"
#include "session/known_prices.h"
#include "tune/calibrate.h"
#include "tune/price_race.h"
#include "tune/tuner.h"
#include "zoo/zoo.h"

namespace hone::bench {
namespace {

const Flag kPlans("plans", ""), kPrice("price", ""), kAdapt("adapt", "120");

struct PlanPrices {
  Target target;
  std::shared_ptr<const Cost> analytic, learned, adapted;  // the last: null, nothing was better
};

Result<KnownModel> general_model(const Target& target) {
  if (!kPrice.text().empty()) return kernel_model_in(kPrice.text(), target);
  const std::optional<KnownModel> shipped = HONE_TRY(KnownPrices({}, true).model(target));
  if (!shipped) return unsupported("no learned price counts on this machine");
  return *shipped;
}

// What 'hone calibrate' makes of the model here, where it is kept.
Result<std::shared_ptr<const Cost>> adapted_price(const PlanPrices& prices,
                                                  const KnownModel& general) {
  const Calibration calibration = HONE_TRY(calibrate(
      prices.target,
      {.seconds = kAdapt.number(), .threads = 1, .model = general.model, .used = prices.learned}));
  if (!calibration.is_better()) return std::shared_ptr<const Cost>();
  KnownModel model = general;
  if (calibration.adapted) model.model = std::make_shared<KernelModel>(*calibration.adapted);
  return learned_cost(prices.target, model,
                      std::make_shared<AnalyticCost>(prices.target, calibration.prices));
}

Result<PlanPrices> made() {
  PlanPrices prices;
  prices.target = HONE_TRY(host_target());
  const KnownModel general = HONE_TRY(general_model(prices.target));
  prices.analytic = std::make_shared<AnalyticCost>(prices.target);
  prices.learned = learned_cost(prices.target, general, nullptr);
  if (kAdapt.number() > 0) prices.adapted = HONE_TRY(adapted_price(prices, general));
  return prices;
}
const Result<PlanPrices>& prices() {
  static const Result<PlanPrices> all = made();
  return all;
}

// Gains by name of the price, for the mean.
std::map<std::string, std::vector<double>>& gains() {
  static std::map<std::string, std::vector<double>> all;
  return all;
}

Status race(benchmark::State& state, const HeldBackModel& model, const std::string& name,
            const std::shared_ptr<const Cost>& cost) {
  double gain = 1, low = 1, high = 1;  // of the same plan
  if (cost != nullptr) {
    const PriceRace race = HONE_TRY(race_prices({&model, 1}, prices()->target, prices()->analytic,
                                                cost, {.seconds = seconds_of_plans()}));
    const std::optional<PlanDuel> duel = race.models.empty() ? std::nullopt : race.models[0].duel;
    if (duel && duel->outcome != Outcome::measured)
      return bad_input("{}: {}", model.name, duel->detail);
    if (duel) gain = duel->gain(), low = gain, high = gain;
    if (duel && duel->times.interval) {
      low = 1 / duel->times.interval->high;
      high = 1 / duel->times.interval->low;
    }
  }
  state.counters[name] = gain;
  state.counters[name + "_low"] = low;
  state.counters[name + "_high"] = high;
  gains()[name].push_back(gain);
  return {};
}

Status measure(benchmark::State& state, const std::string& name) {
  if (!prices().ok()) return prices().error();
  const HeldBackModel model = {
      name, [name]() -> Result<Graph> { return prepare(HONE_TRY(build_zoo_model(name))); }};
  HONE_TRY(race(state, model, "learned", prices()->learned));
  if (kAdapt.number() > 0)
    HONE_TRY(
        race(state, model, "adapted", prices()->adapted ? prices()->adapted : prices()->learned));
  for (auto _ : state) state.SetIterationTime(0);
  if (seconds_of_tuning() == 0) return {};
  const Tuned tuned = HONE_TRY(tune(HONE_TRY(model.load()), prices()->target,
                                    {.seconds = seconds_of_tuning(), .threads = 1}));
  state.counters["tuned"] = tuned.gain();
  gains()["tuned"].push_back(tuned.gain());
  return {};
}

void add_mean(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(0);
  for (const auto& [name, all] : gains()) {
    double sum = 0;
    for (double each : all) sum += std::log(each);
    state.counters[name] = std::exp(sum / static_cast<double>(all.size()));
  }
}

const Rows kRows([] {
  if (kPlans.text().empty()) return;
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Iterations(1)->UseManualTime();
  };
  for (std::string_view model : split(kPlans.text(), ','))
    add(fmt::format("plans/{}", model), [model = std::string(model)](benchmark::State& state) {
      const Status status = measure(state, model);
      if (!status.ok()) state.SkipWithError(status.error().to_string().c_str());
    });
  add("plans/mean", add_mean);
});

}  // namespace
}  // namespace hone::bench
