#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "ir/graph.h"
#include "target/target.h"
#include "tune/plan_duel.h"
#include "tune/time_budget.h"

// True if prices choose plans that are faster: whole models run in turns under the plans of old
// prices and of new ones. How well prices order schedules of single kernels does not say it.

namespace hone {

struct HeldBackModel {
  std::string name;
  std::function<Result<Graph>()> load;
};
// Models that no price is fitted to: the first layers of published ones, so that a race takes a
// minute.
std::vector<HeldBackModel> held_back_models();

struct RacedModel {
  std::string name;
  std::optional<PlanDuel> duel = {};  // none: both prices choose the same plan
};

struct PriceRace {
  std::vector<RacedModel> models;
  size_t left_out = 0;  // models for which there was no time, or that do not run here
  // The geometric means over models that were raced, round by round; none: no plan differed.
  std::optional<Duel> all = {};

  // "" if the new prices are to be used. Then the geometric mean of the models is surely faster and
  // none of them is surely slower. Every plan runs and has the outputs of the old one. Else why
  // they are not, for people; what is equal or in doubt changes nothing.
  std::string why_not() const;
};
// The same with `all`.
PriceRace race_of(std::vector<RacedModel> models, size_t left_out);

// No model is to be slower by the default price than by the analytic one by more than this share.
inline constexpr double kMostSlower = 0.02;
// True if the second plan is surely slower than that, by the interval of the ratio, or does not run
// as the first one does.
bool is_too_slow(const PlanDuel& duel);

struct PriceRaceOptions {
  double seconds = 60;  // for all, compiling included; one model is raced in any case
  int64_t threads = 1;
  const CancelToken* cancel = nullptr;
  std::function<void(std::string_view)> told = {};  // a line for each model
  PlanTimer timer = duel;
  SecondsClock now = steady_seconds;
};
Result<PriceRace> race_prices(std::span<const HeldBackModel> models, const Target& target,
                              const std::shared_ptr<const Cost>& old_prices,
                              const std::shared_ptr<const Cost>& new_prices,
                              const PriceRaceOptions& options);

}  // namespace hone
