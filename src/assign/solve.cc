#include "assign/solve.h"

#include <algorithm>
#include <chrono>

#include "assign/complete.h"
#include "assign/core_search.h"
#include "assign/dual.h"
#include "base/thread_pool.h"

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kSweeps = 10;             // of a slice
constexpr int64_t kCompleteSteps = 50'000;  // of the complete search of a small core
// About the time of a number that a sweep reads, and of a step of a search.
constexpr double kSweepNumber = 8e-9, kStepTime = 2e-4;

AssignSizes sizes_of(const Core& core) {
  AssignSizes sizes = {core.nodes.size(), core.edges.size(), 0, core.slack.size()};
  for (const CoreNode& node : core.nodes) sizes.options += node.options();
  return sizes;
}

// Steps that take about as long as the sweeps of a slice.
int64_t steps_of_slice(const Core& core) {
  size_t numbers = core.slack.size();
  for (const CoreNode& node : core.nodes) numbers += node.usages.size();
  for (const CoreEdge& edge : core.edges) numbers += edge.costs.size();
  const double seconds = static_cast<double>(kSweeps * numbers) * kSweepNumber;
  return std::clamp<int64_t>(static_cast<int64_t>(seconds / kStepTime), 10, 5000);
}

// The option of each node that uses least over its life, and costs least of those.
std::vector<uint32_t> least_usage(const Core& core) {
  std::vector<uint32_t> options;
  for (const CoreNode& node : core.nodes) {
    std::vector<double> usage(node.options());
    for (size_t s = 0; s < node.spans.size(); ++s)
      for (size_t x = 0; x < usage.size(); ++x)
        usage[x] +=
            static_cast<double>(node.usages_in(s)[x]) * (node.spans[s].to - node.spans[s].from);
    size_t best = 0;
    for (size_t x = 1; x < usage.size(); ++x)
      if (std::pair(usage[x], node.costs[x]) < std::pair(usage[best], node.costs[best])) best = x;
    options.push_back(static_cast<uint32_t>(best));
  }
  return options;
}

class Solver {
 public:
  Solver(const AssignProblem& problem, const AssignOptions& options, const CoreSearchRow& search,
         Core core)
      : problem_(problem),
        options_(options),
        core_(std::move(core)),
        tables_(core_),
        dual_(core_, tables_),
        search_(search.make(core_, tables_, options.seed)),
        pool_(std::clamp(options.threads, 1, 2)),
        slice_steps_(steps_of_slice(core_)) {
    result_.core = sizes_of(core_);
  }

  Result<AssignResult> run(Clock::time_point begin) {
    begin_ = begin;
    HONE_TRY(take_start());
    if (HONE_TRY(try_all())) return std::move(result_);
    // A first bound, so that the cost has something beside it.
    dual_.improve(2 * (std::abs(search_->best_cost()) + 1));
    ++result_.sweeps;
    raise_bound();
    take_best();
    while (!is_over() && !is_proved()) {
      slice();
      take_best();
      raise_bound();
    }
    return finish();
  }

 private:
  bool is_over() const {
    if (options_.cancel != nullptr && options_.cancel->cancelled()) return true;
    if (options_.steps > 0 && result_.steps + result_.sweeps >= options_.steps) return true;
    return is_late();
  }
  bool is_late() const {
    return (options_.seconds > 0 &&
            std::chrono::duration<double>(Clock::now() - begin_).count() >= options_.seconds) ||
           (options_.cancel != nullptr && options_.cancel->cancelled());
  }
  bool is_proved() const {
    return result_.bounds.cost && result_.bounds.bound >= *result_.bounds.cost;
  }

  void tell() const {
    if (options_.better) options_.better(result_.bounds);
  }

  Status take_start() {
    std::vector<uint32_t> options = least_usage(core_);
    if (options_.start) {
      HONE_TRY(take(*options_.start));
      const std::vector<std::optional<uint32_t>> given = project(core_, *options_.start);
      search_->start(options);
      for (size_t i = 0; i < given.size(); ++i) options[i] = given[i].value_or(options[i]);
    }
    search_->start(std::move(options));
    return {};
  }

  // Keeps an assignment if it is a solution, and the best.
  Status take(const Assignment& assignment) {
    const AssignValue value = HONE_TRY(evaluate(problem_, assignment));
    if (!value.fits(problem_)) {
      if (!result_.bounds.cost) result_.assignment = assignment;
      return {};
    }
    if (result_.bounds.cost && value.cost >= *result_.bounds.cost) return {};
    result_.bounds.cost = value.cost;
    result_.assignment = assignment;
    return {};
  }

  // Takes the search's best, if that is better.
  void take_best() {
    if (search_->best_cost() == taken_cost_ && search_->best_full_times() == taken_full_) return;
    taken_cost_ = search_->best_cost();
    taken_full_ = search_->best_full_times();
    const std::optional<Int128> before = result_.bounds.cost;
    const Status judged = take(restore(problem_, core_, search_->best()));
    HONE_CHECK(judged.ok(), "{}", judged.error().what());
    if (result_.bounds.cost != before) tell();
  }

  // Takes the bound, if it is better by enough that the certificate pays, or at the end.
  void raise_bound(bool is_last = false) {
    const double step = is_last ? 0 : 1e-6 * std::abs(dual_.value());
    if (has_bound_ && dual_.value() <= taken_value_ + step) return;
    taken_value_ = dual_.value();
    const Int128 bound = dual_.certified() << core_.cost_shift;
    if (has_bound_ && bound <= result_.bounds.bound) return;
    result_.bounds.bound = std::max<Int128>(bound, 0);
    has_bound_ = true;
    tell();
  }

  // A small core is searched as a whole. True if that gave the answer.
  Result<bool> try_all() {
    const CompleteAnswer answer = complete_search(core_, kCompleteSteps);
    if (!answer.is_complete || core_.cost_shift > 0) return false;
    if (!answer.options) {
      if (!core_.are_usages_exact) return false;
      const Assignment closest = restore(problem_, core_, least_usage(core_));
      const AssignValue value = HONE_TRY(evaluate(problem_, closest));
      const Status why = check_fits(problem_, value);
      return check_failed(
          "no assignment keeps the limit without what is forbidden. Where each "
          "node uses least: {}",
          why.ok() ? "it fits" : why.error().what());
    }
    HONE_TRY(take(restore(problem_, core_, *answer.options)));
    HONE_CHECK(result_.bounds.cost.has_value(), "the best solution does not fit");
    if (!core_.are_usages_exact) return false;
    result_.bounds.bound = *result_.bounds.cost;
    result_.verdict = AssignVerdict::optimal;
    tell();
    return true;
  }

  // Sweeps of the bound and steps of the search, side by side; then the search gets the prices.
  void slice() {
    const double known =
        search_->best_full_times() == 0 ? search_->best_cost() : 2 * std::abs(search_->best_cost());
    int64_t sweeps = 0, steps = 0;
    pool_.parallel_for(0, 2, 1, [&](int64_t from, int64_t to) {
      for (int64_t part = from; part < to; ++part) {
        if (part == 0)
          for (; sweeps < kSweeps && !is_late(); ++sweeps) dual_.improve(known);
        else
          for (; steps < slice_steps_ && !is_late(); ++steps) search_->step();
      }
    });
    result_.sweeps += sweeps;
    result_.steps += steps;
    search_->set_prices(dual_.prices(), dual_.priced_costs(dual_.prices()), dual_.picks());
  }

  Result<AssignResult> finish() {
    raise_bound(true);
    if (is_proved())
      result_.verdict = AssignVerdict::optimal;
    else
      result_.verdict = result_.bounds.cost ? AssignVerdict::good : AssignVerdict::none;
    return std::move(result_);
  }

  const AssignProblem& problem_;
  const AssignOptions& options_;
  const Core core_;
  const CoreTables tables_;
  Dual dual_;
  const std::unique_ptr<CoreSearch> search_;
  ThreadPool pool_;
  const int64_t slice_steps_;
  Clock::time_point begin_;
  AssignResult result_;
  double taken_cost_ = kNever;
  int64_t taken_full_ = -1;
  double taken_value_ = 0;
  bool has_bound_ = false;
};

}  // namespace

double AssignBounds::gap() const {
  if (!cost || *cost <= bound) return 0;
  return static_cast<double>(*cost - bound) / static_cast<double>(*cost);
}

Result<AssignResult> solve(const AssignProblem& problem, const AssignOptions& options) {
  const Clock::time_point begin = Clock::now();
  HONE_TRY(check(problem));
  if (options.start && options.start->size() != problem.nodes.size())
    return bad_input("the start has {} options for {} nodes", options.start->size(),
                     problem.nodes.size());
  const CoreSearchRow* search = &core_searches().front();
  if (!options.search.empty()) search = HONE_TRY(find_core_search(options.search));
  Core core = HONE_TRY(reduce(problem, {.reduce = options.reduce}));
  return Solver(problem, options, *search, std::move(core)).run(begin);
}

}  // namespace hone
