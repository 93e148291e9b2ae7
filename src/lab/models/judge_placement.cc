#include "lab/models/judge_placement.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text_table.h"
#include "place/arena.h"
#include "place/chips.h"
#include "place/placer.h"

namespace hone {
namespace {

constexpr std::string_view kQuickRivals[] = {"one", "contiguous", "heft",      "etf",
                                             "sct", "critical",   "multilevel"};
constexpr std::string_view kSearches[] = {"annealing", "guided", "chain", "genetic"};

struct PlacerValue {
  std::string_view placer;
  double value = kCannotRun;
  double gap = 1, seconds = 0;
};

// Each placer of one problem; what finds nothing that fits has no value.
class ProblemTrial {
 public:
  ProblemTrial(const PlacePolicy& policy, const PlacementTrial& options, PlaceGoal goal,
               const PlaceJudge& judge)
      : policy_(policy), options_(options), goal_(goal), judge_(judge) {}

  Result<std::vector<PlacerValue>> run() {
    for (const std::string_view by : kQuickRivals) HONE_TRY(perform(by, true));
    HONE_TRY(perform("policy", false));
    for (const std::string_view by : kSearches) HONE_TRY(perform(by, false));
    return values_;
  }
  double quickest_best() const { return best_; }

 private:
  Status perform(std::string_view by, bool is_rival) {
    if (options_.cancel != nullptr) HONE_TRY(options_.cancel->check());
    PlaceOptions options = {.goal = goal_,
                            .by = std::string(by),
                            .seconds = 1e9,
                            .trials = options_.trials,
                            .seed = options_.seed,
                            .policy = &policy_,
                            .cancel = options_.cancel};
    const bool is_search = std::ranges::find(kSearches, by) != std::end(kSearches);
    if (is_search && best_ != kCannotRun) options.start = start_;
    const Result<PlaceResult> found = place(judge_, options);
    if (!found.ok() && found.error().code() != ErrorCode::limit) return found.error();
    PlacerValue value = {by};
    if (found.ok()) value = {by, found->value, found->gap(goal_), found->placers.back().seconds};
    values_.push_back(value);
    if (is_rival && value.value < best_) best_ = value.value, start_ = found->placement;
    return {};
  }

  const PlacePolicy& policy_;
  const PlacementTrial& options_;
  PlaceGoal goal_;
  const PlaceJudge& judge_;
  std::vector<PlacerValue> values_;
  double best_ = kCannotRun;
  DevicePlacement start_;
};

void add_values(std::span<const PlacerValue> values, double best, PlacementVerdicts& all) {
  double least = kCannotRun;
  for (const PlacerValue& one : values) least = std::min(least, one.value);
  all.placers.resize(values.size());
  ++all.count;
  for (size_t i = 0; i < values.size(); ++i) {
    PlacementVerdict& verdict = all.placers[i];
    verdict.placer = values[i].placer;
    verdict.over_best += values[i].value > 0 ? std::log(values[i].value / best) : 0;
    verdict.gap += values[i].gap;
    verdict.seconds += values[i].seconds;
    verdict.best += values[i].value <= least * (1 + 1e-9) ? 1 : 0;
  }
}

}  // namespace

Result<std::vector<PlacementVerdicts>> judge_placement(const PlacePolicy& policy,
                                                       const PlacementTrial& options) {
  std::vector<PlacementVerdicts> verdicts;
  for (const bool is_held_out : {false, true}) {
    PlacementVerdicts all = {.problems = is_held_out ? "held out" : "seen"};
    for (int64_t g = 0; g < options.graphs; ++g) {
      // Other seeds than those of training.
      Rng rng(hash_combine(options.seed, ~static_cast<uint64_t>(2 * g + (is_held_out ? 1 : 0))));
      DrawnPlace drawn = draw_place(options.nodes, is_held_out, rng);
      drawn.goal = PlaceGoal::step;
      const PlaceProblem problem = make_place(drawn, rng);
      const PlaceJudge judge(problem);
      ProblemTrial trial(policy, options, drawn.goal, judge);
      const std::vector<PlacerValue> values = HONE_TRY(trial.run());
      if (trial.quickest_best() != kCannotRun) add_values(values, trial.quickest_best(), all);
    }
    for (PlacementVerdict& verdict : all.placers) {
      const auto count = static_cast<double>(all.count);
      verdict.over_best = std::exp(verdict.over_best / count);
      verdict.gap /= count;
      verdict.seconds /= count;
    }
    verdicts.push_back(std::move(all));
  }
  return verdicts;
}

std::string verdicts_text(const std::vector<PlacementVerdicts>& verdicts) {
  TextTable table("llrrrr", {"graphs", "placer", "over best rival", "gap", "took", "best of all"});
  for (const PlacementVerdicts& all : verdicts)
    for (const PlacementVerdict& one : all.placers)
      table.add_row({fmt::format("{} {}", all.count, all.problems), one.placer,
                     std::isfinite(one.over_best) ? fmt::format("{:.3f}", one.over_best) : "-",
                     fmt::format("{:.1f} %", 100 * one.gap),
                     fmt::format("{:.1f} ms", 1e3 * one.seconds), std::to_string(one.best)});
  return table.to_string();
}

// ---- Modules of chips --------------------------------------------------------------------------

namespace {

// A policy that has learned nothing.
PlacePolicy drawn_policy(uint64_t seed) {
  Rng rng(seed);
  std::vector<NamedTensor> weights;
  for (const auto& [name, dims] : PlacePolicy::shapes()) {
    Dims all;
    size_t count = 1;
    for (const int64_t dim : dims) all.push_back(dim), count *= static_cast<size_t>(dim);
    const double deviation = 1 / std::sqrt(static_cast<double>(dims[0]));
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(deviation * rng.normal());
    weights.push_back(
        {name, Tensor::of(Type::get(DType::f32, all), std::span<const float>(values))});
  }
  return PlacePolicy::make(weights).value();
}

}  // namespace

Result<ChipVerdicts> judge_chips(const PlacePolicy& policy, int64_t chips,
                                 const PlacementTrial& options) {
  ChipVerdicts verdicts;
  for (const ChipSearch search : kChipSearches)
    verdicts.searches.push_back({.search = std::string(name(search))});
  verdicts.searches.push_back({.search = "policy from scratch"});
  const PlacePolicy scratch = drawn_policy(options.seed);
  for (int64_t g = 0; g < options.graphs; ++g) {
    Rng rng(hash_combine(options.seed, hash_combine(~uint64_t{0}, static_cast<uint64_t>(g))));
    DrawnPlace drawn = draw_place(options.nodes, false, rng);
    drawn.family = kPlaceFamilies[static_cast<size_t>(g) % std::size(kPlaceFamilies)];
    drawn.shape = rng.chance(0.5) ? Shape::ring : Shape::line;
    drawn.devices = chips;
    drawn.two_kinds = false;
    drawn.is_tight = true;
    drawn.goal = PlaceGoal::load;
    const PlaceProblem problem = make_place(drawn, rng);
    const PlaceJudge judge(problem);
    std::vector<ChipOutcome> all;
    double best = kCannotRun, worst = 0;
    for (size_t s = 0; s < verdicts.searches.size(); ++s) {
      if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
      const bool is_scratch = s == std::size(kChipSearches);
      const ChipSearch search = is_scratch ? ChipSearch::policy : kChipSearches[s];
      const ChipOutcome& found =
          all.emplace_back(HONE_TRY(search_chips(judge, search, options.trials, options.seed,
                                                 is_scratch ? &scratch : &policy, options.cancel)));
      HONE_CHECK(found.value == kCannotRun || (check_chips(problem, found.placement).ok() &&
                                               check_arenas(judge, found.placement).ok()),
                 "{} broke a rule of chips", name(search));
      const auto share = [&](int64_t samples) {
        return static_cast<double>(samples) /
               static_cast<double>(std::ssize(found.best) * options.graphs);
      };
      verdicts.searches[s].valid += share(found.valid);
      verdicts.searches[s].mended += share(found.mended);
      verdicts.searches[s].found += found.value == kCannotRun ? 0 : 1;
      best = std::min(best, found.value);
      if (found.value != kCannotRun) worst = std::max(worst, found.value);
    }
    ++verdicts.count;
    if (best <= 0 || worst == 0) continue;
    ++verdicts.compared;
    const double aim = std::min(all[static_cast<size_t>(ChipSearch::annealing)].value, worst);
    for (size_t s = 0; s < all.size(); ++s) {
      verdicts.searches[s].over_best += std::log(std::min(all[s].value, worst) / best);
      const int64_t took = all[s].samples_to(aim);
      // Greedy takes one sample; if that is not enough, it never is.
      verdicts.searches[s].samples +=
          static_cast<double>(took > std::ssize(all[s].best) ? options.trials + 1 : took);
    }
  }
  const auto compared = static_cast<double>(std::max<int64_t>(verdicts.compared, 1));
  for (ChipVerdict& one : verdicts.searches) {
    one.over_best = std::exp(one.over_best / compared);
    one.samples /= compared;
  }
  return verdicts;
}

std::string verdicts_text(const ChipVerdicts& verdicts) {
  TextTable table("lrrrrr", {"search", "over best of all", "valid samples", "mended samples",
                             "found", "samples to annealing's end"});
  for (const ChipVerdict& one : verdicts.searches)
    table.add_row(
        {one.search, fmt::format("{:.3f}", one.over_best), fmt::format("{:.1f} %", 100 * one.valid),
         fmt::format("{:.1f} %", 100 * one.mended),
         fmt::format("{} of {}", one.found, verdicts.count), fmt::format("{:.1f}", one.samples)});
  return table.to_string();
}

}  // namespace hone
