#include "tune/collect_plans.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "compile/compilation.h"
#include "learn/plan_pairs.h"
#include "plan/rewritten.h"
#include "planner/few_plans.h"
#include "program/lower/lower.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostLeftOut = 4;           // heuristics of a drawn variant
constexpr double kDeviationsOfHalf = 2.576;  // half an interval of a duel, 99 %
constexpr size_t kAttemptsOfPlan = 4;        // draws for each plan that is wanted

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
    HONE_TRY(draw());
    HONE_TRY(keep_known(file));
    CollectedPlans found = {.plans = plans_.size()};
    for (uint32_t i = 1; i < plans_.size(); ++i) {
      if (is_over(1) || cancelled()) break;
      if (!has_pair(i) && HONE_TRY(race(i, file))) ++found.whole;
    }
    if (pairs_.pairs.empty() && plans_.size() < 2)
      return bad_input("the planner makes the same plan whatever is left out");
    found.is_done = pairs_.pairs.size() + 1 >= plans_.size();
    return found;
  }

 private:
  bool cancelled() const { return options_.cancel != nullptr && options_.cancel->cancelled(); }

  // Plans that look the same to a model are one.
  Status draw() {
    Plan open;
    open.threads = options_.threads;
    const size_t most = std::min(options_.plans, kMostPlans);
    std::vector<Plan> drawn =
        HONE_TRY(few_plans(graph_, open, target_, *collector_.cost,
                           variants(most, static_cast<uint64_t>(options_.seed)),
                           {.cancel = options_.cancel}, most + 1));
    if (options_.from != nullptr)
      if (const auto best = best_plan(*options_.from, graph_, target_, options_.threads);
          best && !has_rewrites(best->plan) && check_complete(best->plan, graph_, target_).ok())
        drawn.insert(drawn.begin() + 1, best->plan);
    for (Plan& plan : drawn) {
      if (plans_.size() > most) break;
      PlanGraph described = HONE_TRY(plan_graph(
          HONE_TRY(lower(graph_, plan, target_, options_.cancel)), target_, *collector_.cost));
      described.seconds = double{static_cast<float>(described.seconds)};  // as a file has it
      if (std::ranges::find(pairs_.plans, described) != pairs_.plans.end()) continue;
      pairs_.plans.push_back(std::move(described));
      plans_.push_back(std::move(plan));
    }
    return {};
  }

  // A file that cannot be read, or is of other prices, is measured anew.
  Status keep_known(const fs::path& file) {
    std::error_code failed;
    if (!fs::exists(file, failed)) return {};
    const Result<PlanPairs> known = read_plan_pairs(file);
    if (!known.ok() || known->prices != pairs_.prices || known->plans[0] != pairs_.plans[0])
      return {};
    for (const PlanPair& pair : known->pairs) {
      const auto at = std::ranges::find(pairs_.plans, known->plans[pair.second]);
      if (pair.first != 0 || at == pairs_.plans.end()) continue;
      pairs_.pairs.push_back(pair);
      pairs_.pairs.back().second = static_cast<uint32_t>(at - pairs_.plans.begin());
    }
    return {};
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

  // True if it was measured. One that does not run is passed over.
  Result<bool> race(uint32_t plan, const fs::path& file) {
    if (usual_ == nullptr) {
      usual_ = HONE_TRY(compiled(plans_[0]));
      inputs_ = HONE_TRY(random_inputs(graph_, static_cast<uint64_t>(options_.seed)));
    }
    const auto other = HONE_TRY(compiled(plans_[plan]));
    const PlanDuel found =
        HONE_TRY(collector_.timer(*HONE_TRY(usual_->image()), *HONE_TRY(other->image()), inputs_,
                                  {.seconds = collector_.seconds, .cancel = options_.cancel}));
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

  const PlanCollector& collector_;
  const Graph graph_;
  const Target& target_;
  const BuildOptions& options_;
  PlanPairs pairs_;
  std::vector<Plan> plans_;  // as those of pairs_
  std::shared_ptr<Compilation> usual_;
  std::vector<Tensor> inputs_;
};

}  // namespace

Result<bool> PlanCollector::is_done(const DataSet& set, const std::string& program,
                                    const BuildOptions& /*options*/) const {
  const fs::path file = plan_pairs_path(set.folder(), program);
  std::error_code failed;
  if (!fs::exists(file, failed)) return false;
  const Result<PlanPairs> known = read_plan_pairs(file);
  return known.ok() && known->prices == prices_hash(*cost) &&
         known->pairs.size() + 1 >= known->plans.size();
}

Result<CollectedPlans> PlanCollector::collect(
    DataSet& set, const std::string& program, Graph graph, const Target& target,
    MeasuredKernels& /*known*/, const BuildOptions& options,
    const std::function<bool(double share)>& is_over) const {
  return PlanRaces(*this, program, std::move(graph), target, options)
      .run(plan_pairs_path(set.folder(), program), is_over);
}

}  // namespace hone
