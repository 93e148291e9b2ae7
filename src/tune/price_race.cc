#include "tune/price_race.h"

#include <algorithm>
#include <cmath>

#include "compile/compilation.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

constexpr double kLongestDuel = 6;  // seconds
constexpr size_t kLeastModels = 3;  // that say something of models in general

// For one side of the models that were raced: the geometric mean of each round, as far as all have
// rounds.
std::vector<std::vector<double>> means_of(std::span<const RacedModel> models,
                                          double Duel::Round::* side) {
  size_t rounds = DuelOptions::kMostRounds;
  for (const RacedModel& model : models)
    if (model.duel) rounds = std::min(rounds, model.duel->times.rounds.size());
  std::vector<std::vector<double>> means;
  for (size_t round = 0; round < rounds; ++round) {
    double sum = 0, count = 0;
    for (const RacedModel& model : models) {
      if (!model.duel) continue;
      sum += std::log(model.duel->times.rounds[round].*side);
      ++count;
    }
    means.push_back({std::exp(sum / count)});
  }
  return means;
}

class Race {
 public:
  Race(const Target& target, const PriceRaceOptions& options)
      : target_(target), options_(options) {}

  Result<RacedModel> run(const HeldBackModel& model, const std::shared_ptr<const Cost>& old_prices,
                         const std::shared_ptr<const Cost>& new_prices, double seconds,
                         double most_seconds) const {
    const Graph graph = HONE_TRY(model.load());
    Compilation before = compilation(graph, old_prices), after = compilation(graph, new_prices);
    RacedModel raced = {model.name};
    if (*HONE_TRY(before.plan()) == *HONE_TRY(after.plan())) {
      tell(fmt::format("{}: the same plan", model.name));
      return raced;
    }
    const Image* const first = HONE_TRY(before.image());
    const Image* const second = HONE_TRY(after.image());
    const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 0));
    raced.duel = HONE_TRY(options_.timer(*first, *second, inputs,
                                         {.seconds = std::min(seconds, kLongestDuel),
                                          .most_seconds = most_seconds,
                                          .cancel = options_.cancel}));
    tell(raced.duel->outcome == Outcome::measured
             ? fmt::format("{}: {:.3f}x", model.name, raced.duel->gain())
             : fmt::format("{}: {}", model.name, name(raced.duel->outcome)));
    return raced;
  }

 private:
  Compilation compilation(const Graph& graph, const std::shared_ptr<const Cost>& cost) const {
    CompileOptions compile;
    compile.plan.threads = options_.threads;
    compile.cost = cost;
    compile.cancel = options_.cancel;
    return {graph, target_, compile};
  }
  void tell(std::string_view line) const {
    if (options_.told) options_.told(line);
  }

  const Target& target_;
  const PriceRaceOptions& options_;
};

HeldBackModel of_zoo(std::string_view entry, std::string name, const ZooOptions& options) {
  return {std::move(name), [entry, options] { return build_zoo_model(entry, options); }};
}

}  // namespace

std::vector<HeldBackModel> held_back_models() {
  return {of_zoo("bert_base", "two layers of bert_base", {.depth = 2}),
          of_zoo("resnet50", "four blocks of resnet50", {.depth = 1}),
          of_zoo("mobilenet_v2", "mobilenet_v2", {}),
          of_zoo("gpt2", "two layers of gpt2", {.depth = 2}),
          of_zoo("squeezenet", "squeezenet", {})};
}

bool is_too_slow(const PlanDuel& duel) {
  if (duel.outcome != Outcome::measured) return !duel.lacks_time;
  return duel.times.interval && duel.times.interval->low > 1 + kMostSlower;
}

PriceRace race_of(std::vector<RacedModel> models, size_t left_out) {
  PriceRace race = {std::move(models), left_out};
  const auto was_measured = [](const RacedModel& model) {
    return model.duel && model.duel->outcome == Outcome::measured;
  };
  std::vector<RacedModel> measured;
  std::ranges::copy_if(race.models, std::back_inserter(measured), was_measured);
  if (!measured.empty())
    race.all = judged(means_of(measured, &Duel::Round::a), means_of(measured, &Duel::Round::b));
  return race;
}

std::string PriceRace::why_not() const {
  for (const RacedModel& model : models) {
    if (!model.duel) continue;
    if (model.duel->outcome != Outcome::measured)
      return fmt::format("the plan of {} that they choose is {}", model.name,
                         hone::name(model.duel->outcome));
    if (model.duel->is_slower()) return fmt::format("{} is surely slower by them", model.name);
  }
  if (left_out > 0 && models.size() < kLeastModels)
    return fmt::format("{} of {} whole models were raced: there was no time for more",
                       models.size(), models.size() + left_out);
  if (!all) return "they choose the same plans";
  if (!all->b_is_faster()) return "whole models are not surely faster by them";
  return "";
}

Result<PriceRace> race_prices(std::span<const HeldBackModel> models, const Target& target,
                              const std::shared_ptr<const Cost>& old_prices,
                              const std::shared_ptr<const Cost>& new_prices,
                              const PriceRaceOptions& options) {
  const Race race(target, options);
  TimeBudget budget(options.seconds, options.now);
  std::vector<RacedModel> raced;
  for (size_t i = 0; i < models.size(); ++i) {
    // Compiling both plans takes time, too: a model begins if the longest before it would fit.
    if (i > 0 && !budget.has_time_for_step()) break;
    const double share = budget.left() / static_cast<double>(models.size() - i);
    const double most = i == 0 ? INFINITY : budget.left();
    Result<RacedModel> one =
        budget.step([&] { return race.run(models[i], old_prices, new_prices, share, most); });
    // A model that there was no time for says nothing of prices.
    if (one.ok() && one->duel && one->duel->lacks_time && i > 0) break;
    if (one.ok()) {
      raced.push_back(*std::move(one));
      continue;
    }
    // A machine may be too small for one of them.
    if (one.error().code() == ErrorCode::interrupted) return std::move(one).error();
    if (options.told) options.told(fmt::format("{}: {}", models[i].name, one.error().what()));
  }
  const size_t left_out = models.size() - raced.size();
  return race_of(std::move(raced), left_out);
}

}  // namespace hone
