#include "tune/collect_plans.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "compile/compilation.h"
#include "learn/plan_pairs.h"
#include "plan/rewritten.h"
#include "planner/complete_once.h"
#include "planner/few_plans.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLeftOut = 4;           // heuristics of a drawn variant
constexpr double kDeviationsOfHalf = 2.576;  // half an interval of a duel, 99 %
constexpr size_t kAttemptsOfPlan = 4;        // draws for each plan that is wanted
constexpr double kShareOfDrawing = 0.3;      // of a program's time

TriedPlans asked_for(const BuildOptions& options) {
  return {.seed = options.seed,
          .plans = static_cast<int64_t>(std::min(options.plans, kMostPlans)),
          .has_tuned = options.from != nullptr};
}

// Without each heuristic of the structure alone, in a drawn order, then without some of them.
std::vector<Heuristics> variants(size_t count, uint64_t seed) {
  const std::span<bool Heuristics::* const> rows = structure_heuristics();
  std::vector<bool Heuristics::*> flags(rows.begin(), rows.end());
  Rng rng(seed);
  rng.shuffle(flags);
  std::vector<Heuristics> all;
  for (bool Heuristics::* flag : flags) {
    all.emplace_back();
    all.back().*flag = false;
  }
  for (size_t i = 0; i < kAttemptsOfPlan * count; ++i) {
    Heuristics drawn;
    const auto left_out = static_cast<size_t>(2 + rng.below(kMostLeftOut - 1));
    for (size_t k = 0; k < left_out; ++k) drawn.*flags[rng.below(flags.size())] = false;
    all.push_back(drawn);
  }
  return all;
}

class PlanRaces {
 public:
  PlanRaces(const PlanCollector& collector, const std::string& program, Graph graph,
            const Target& target, const BuildOptions& options)
      : collector_(collector), graph_(std::move(graph)), target_(target), options_(options) {
    pairs_.program = program;
    pairs_.target = fingerprint(target);
    pairs_.threads = options.threads;
    pairs_.prices = prices_hash(*collector.cost);
  }

  Result<CollectedPlans> run(const fs::path& file,
                             const std::function<bool(double share)>& is_over) {
    const bool is_all = HONE_TRY(draw(is_over));
    keep_known(file);
    CollectedPlans found = {.plans = plans_.size()};
    uint32_t next = 1;
    for (; next < plans_.size(); ++next) {
      if (is_over(1) || cancelled()) break;
      if (!has_pair(next) && HONE_TRY(race(next, file))) ++found.whole;
    }
    if (plans_.size() < 2 && is_all)
      return bad_input("the planner makes the same plan whatever is left out");
    found.is_done = is_all && next == plans_.size() && !pairs_.pairs.empty();
    if (found.is_done) {
      pairs_.tried = asked_for(options_);
      HONE_TRY(write_plan_pairs(file, pairs_));
    }
    return found;
  }

 private:
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->cancelled(); }

  // The plans that a model would be asked about come first: its choices are judged by them. False:
  // the time of drawing was over before all were tried.
  Result<bool> draw(const std::function<bool(double share)>& is_over) {
    Plan open;
    open.threads = options_.threads;
    const size_t most = std::min(options_.plans, kMostPlans - 1);
    KernelStore store;
    PlannerOptions planner = {.cancel = options_.cancel, .known = &store};
    const Cost& cost = *collector_.cost;
    std::vector<Plan> quick =
        HONE_TRY(few_plans(graph_, open, target_, cost, quick_variants({}), planner, most + 1));
    for (Plan& plan : quick) HONE_TRY(add(std::move(plan), true));
    if (options_.from != nullptr && plans_.size() <= most)
      if (auto best = best_plan(*options_.from, graph_, target_, options_.threads);
          best && !has_rewrites(best->plan) && check_complete(best->plan, graph_, target_).ok())
        HONE_TRY(add(std::move(best->plan), false));
    for (const Heuristics& variant : variants(most, static_cast<uint64_t>(options_.seed))) {
      if (plans_.size() > most) break;
      if (is_over(kShareOfDrawing)) return false;
      planner.heuristics = variant;
      Result<Plan> plan = complete_once(graph_, open, target_, cost, planner);
      if (plan.ok())
        HONE_TRY(add(*std::move(plan), false));
      else if (plan.error().code() == ErrorCode::interrupted)
        return std::move(plan).error();
    }
    return true;
  }

  // Plans that look the same to a model are one. A plan that cannot be described is passed over,
  // but for the usual one.
  Status add(Plan plan, bool is_quick) {
    Result<PlanGraph> described =
        described_plan(graph_, plan, target_, *collector_.cost, options_.cancel);
    if (!described.ok()) {
      const bool ends = plans_.empty() || described.error().code() == ErrorCode::interrupted;
      return ends ? Status(std::move(described).error()) : Status();
    }
    described->seconds = double{static_cast<float>(described->seconds)};  // as a file has it
    if (std::ranges::find(pairs_.plans, *described) != pairs_.plans.end()) return {};
    const bool is_first = plans_.empty();
    pairs_.is_offered.push_back(
        is_first || (is_quick && described->seconds <= kWorthAsking * pairs_.plans[0].seconds));
    pairs_.plans.push_back(*std::move(described));
    plans_.push_back(std::move(plan));
    return {};
  }

  // Plans that were measured by other options come after the drawn ones. A file that cannot be
  // read, or is of other prices, is measured anew.
  void keep_known(const fs::path& file) {
    std::error_code failed;
    if (!fs::exists(file, failed)) return;
    const Result<PlanPairs> known = read_plan_pairs(file);
    if (!known.ok() || known->prices != pairs_.prices || known->target != pairs_.target ||
        known->threads != pairs_.threads || known->plans[0] != pairs_.plans[0])
      return;
    for (const PlanPair& pair : known->pairs) {
      if (pair.first != 0) continue;
      const PlanGraph& plan = known->plans[pair.second];
      const auto at =
          static_cast<uint32_t>(std::ranges::find(pairs_.plans, plan) - pairs_.plans.begin());
      if (at == kMostPlans) continue;
      if (at == pairs_.plans.size()) {
        pairs_.plans.push_back(plan);
        pairs_.is_offered.push_back(known->is_offered[pair.second]);
      }
      pairs_.pairs.push_back(pair);
      pairs_.pairs.back().second = at;
    }
  }

  bool has_pair(uint32_t plan) const {
    return std::ranges::any_of(pairs_.pairs, [&](const PlanPair& p) { return p.second == plan; });
  }

  Result<std::shared_ptr<Compilation>> compiled(const Plan& plan) {
    CompileOptions compile;
    compile.plan = plan;
    compile.cost = collector_.cost;
    compile.cancel = options_.cancel;
    return std::make_shared<Compilation>(graph_, target_, std::move(compile));
  }

  // True if it was measured. One that cannot be compiled or does not run is passed over.
  Result<bool> race(uint32_t plan, const fs::path& file) {
    if (usual_ == nullptr) {
      usual_ = HONE_TRY(compiled(plans_[0]));
      HONE_TRY(usual_->image());
      inputs_ = HONE_TRY(random_inputs(graph_, static_cast<uint64_t>(options_.seed)));
    }
    Result<PlanDuel> duel = raced(plan);
    if (!duel.ok() && duel.error().code() == ErrorCode::interrupted) return std::move(duel).error();
    if (!duel.ok()) return false;
    const PlanDuel& found = *duel;
    const auto& interval = found.times.interval;
    if (found.outcome != Outcome::measured || !interval || !(interval->low > 0)) return false;
    pairs_.pairs.push_back({.first = 0,
                            .second = plan,
                            .ratio = static_cast<float>(std::log(found.times.ratio)),
                            .noise = static_cast<float>(std::log(interval->high / interval->low) /
                                                        2 / kDeviationsOfHalf)});
    HONE_TRY(write_plan_pairs(file, pairs_));
    return true;
  }

  Result<PlanDuel> raced(uint32_t plan) {
    const auto other = HONE_TRY(compiled(plans_[plan]));
    return collector_.timer(*HONE_TRY(usual_->image()), *HONE_TRY(other->image()), inputs_,
                            {.seconds = collector_.seconds, .cancel = options_.cancel});
  }

  const PlanCollector& collector_;
  const Graph graph_;
  const Target& target_;
  const BuildOptions& options_;
  PlanPairs pairs_;
  std::vector<Plan> plans_;  // the first of pairs_.plans: those that were drawn
  std::shared_ptr<Compilation> usual_;
  std::vector<Tensor> inputs_;
};

}  // namespace

Result<bool> PlanCollector::is_done(const DataSet& set, const std::string& program,
                                    const BuildOptions& options) const {
  const fs::path file = plan_pairs_path(set.folder(), program);
  std::error_code failed;
  if (!fs::exists(file, failed)) return false;
  const Result<PlanPairs> known = read_plan_pairs(file);
  if (!known.ok() || known->prices != prices_hash(*cost)) return false;
  const TriedPlans asked = asked_for(options);
  const TriedPlans& tried = known->tried;
  return tried.plans > 0 && tried.plans >= asked.plans && tried.seed == asked.seed &&
         (tried.has_tuned || !asked.has_tuned);
}

Result<CollectedPlans> PlanCollector::collect(
    DataSet& set, const std::string& program, Graph graph, const Target& target,
    MeasuredKernels& /*known*/, const BuildOptions& options,
    const std::function<bool(double share)>& is_over) const {
  return PlanRaces(*this, program, std::move(graph), target, options)
      .run(plan_pairs_path(set.folder(), program), is_over);
}

}  // namespace hone
