#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/text.h"
#include "cost/analytic.h"
#include "cost/program_price.h"
#include "cost/table_cost.h"
#include "kernel/schedule_text.h"
#include "plan/rewritten.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "tune/kernel_timer.h"
#include "tune/kernel_uses.h"
#include "tune/search_edits.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

// Parts of the time: shapes and threads have this at most if there are schedules to search,
// confirming this at least, and schedules what is left.
constexpr double kForShapes = 0.35, kForConfirming = 0.08, kForDuel = 0.02, kForSchedules = 0.08;
constexpr double kForEdits = 0.05;                  // of each sort
constexpr double kMostForEdits = 0.5;               // of what schedules would have without them
constexpr double kShortDuel = 0.5, kLongDuel = 15;  // seconds
constexpr double kShortConfirming = 2;              // or a quarter of the time
constexpr double kSpare = 1.2;                      // runs may take so much longer than before
constexpr size_t kTurns = 3;                        // schedules of a kernel, in the model
constexpr int64_t kEditRounds = 3;                  // of searching and measuring
constexpr double kWorthwhile = 1.01;                // a gain that a plan is changed for
constexpr int64_t kTrials = 400;                    // of one kernel
constexpr double kLeastOfKernel = 1.5;              // seconds: compiling and racing a few batches
constexpr double kNegligible = 0.002;               // of a model's time: not worth a search

// The switches of the planner that decide what kernels there are and how values lie.
constexpr bool Heuristics::* kShapes[] = {
    &Heuristics::chains,         &Heuristics::fuse_epilogues,  &Heuristics::fuse_rows,
    &Heuristics::fuse_operands,  &Heuristics::repeat_cheap,    &Heuristics::repeat_rows,
    &Heuristics::blocked_images, &Heuristics::last_images,     &Heuristics::weight_copies,
    &Heuristics::weight_layouts, &Heuristics::fuse_elementwise};

std::string_view name_of(bool Heuristics::* flag) {
  return std::ranges::find(kHeuristics, flag, &Heuristic::flag)->name;
}
const TuneKind& kind_of(bool Heuristics::* flag) {
  const bool is_layout = flag == &Heuristics::blocked_images || flag == &Heuristics::last_images ||
                         flag == &Heuristics::weight_copies || flag == &Heuristics::weight_layouts;
  return is_layout ? kTuneLayouts : kTuneGroups;
}

// What is left if schedules and where values lie do not count.
Plan shape_of(Plan plan) {
  plan.schedule.clear();
  plan.offset.clear();
  return plan;
}

// Of a Cost, for people.
std::string_view prices_of(const Cost& cost, const Target& target) {
  if (cost.learned() != nullptr || cost.baseline() != nullptr) return "learned prices";
  if (cost.version().empty()) return "times of the log";
  return cost.version() == AnalyticCost(target).version() ? "default prices" : "fitted prices";
}

// Schedules of a kernel that are faster alone.
struct Found {
  double won = 0;  // seconds of a run by the fastest, by price
  uint64_t kernel = 0;
  std::string name;
  std::vector<Schedule> schedules;  // the fastest first
};

class Tuner {
 public:
  Tuner(const Graph& graph, const Target& target, const TuneOptions& options)
      : graph_(graph),
        target_(target),
        options_(options),
        cost_(options.cost != nullptr ? options.cost : std::make_shared<AnalyticCost>(target)),
        planning_(cost_),
        times_(cost_),
        known_(options.log, target, options.version),
        progress_(options.progress != nullptr ? *options.progress : no_progress()) {}

  Result<Tuned> run() {
    progress_.start(static_cast<int64_t>(options_.seconds), "seconds");
    HONE_TRY(begin());
    Status status = improve();
    result_.was_cancelled = !status.ok() && status.error().code() == ErrorCode::interrupted;
    if (!status.ok() && !result_.was_cancelled) return std::move(status).error();
    HONE_TRY(confirm());
    progress_.advance(static_cast<int64_t>(options_.seconds) - ticked_);  // it is done
    progress_.finish();
    if (const double least = 2 * least_duel() + kLeastOfKernel; least > options_.seconds)
      result_.least_seconds = least;
    result_.reused = known_.reused();
    if (!result_.unwritten) result_.unwritten = known_.unwritten();
    result_.seconds = elapsed();
    return std::move(result_);
  }

 private:
  // A plan with what it was made from.
  struct Contender {
    std::shared_ptr<Compilation> code;
    Heuristics heuristics;
    int64_t threads = 1;
    const Plan& plan() const { return **code->plan(); }
    const Program& program() const { return **code->program(); }
    const Image& image() const { return **code->image(); }
  };

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double left(double share = 1) const { return share * options_.seconds - elapsed(); }
  double left_for_shapes() const { return left(options_.tries_schedules ? kForShapes : 1); }
  // Seconds of the shortest duel that has an interval; of one; of the last.
  double least_duel() const {
    return kSpare * static_cast<double>(DuelOptions::kLeastRuns) * run_seconds_;
  }
  double for_duel(double share = kForDuel) const {
    return std::max(std::clamp(share * options_.seconds, kShortDuel, kLongDuel), least_duel());
  }
  double for_confirming() const {
    const double shortest = std::min(kShortConfirming, options_.seconds / 4);
    return std::max({kForConfirming * options_.seconds, shortest, least_duel()});
  }
  // Each turn in the model has half as long as the duel that decides. Where that would leave no
  // time for anything else, that one alone counts.
  double for_turn() const { return for_duel(kForSchedules / 2); }
  double for_duels_of_schedules() const {
    const double all = kTurns * for_turn() + for_duel(kForSchedules);
    return all < left() / 2 ? all : for_duel(kForSchedules);
  }
  // Of one sort. Without schedules to search there is nothing else to do.
  double for_edits_of_one() const {
    return options_.tries_schedules ? kForEdits * options_.seconds : left() / 2;
  }
  double for_edits() const {
    return (options_.tries_layouts + options_.tries_groups) * kForEdits * options_.seconds +
           for_duel();
  }
  template <class... Args>
  void tell(fmt::format_string<Args...> text, Args&&... args) const {
    if (options_.told) options_.told(fmt::format(text, std::forward<Args>(args)...));
    tick();
  }
  // What is tried, next to the time and the best so far.
  void show(std::string_view what) const {
    progress_.now(fmt::format("{:.2f}x; {}", best_gain_, what));
    tick();
  }
  void tick() const {
    const auto now = static_cast<int64_t>(std::min(elapsed(), options_.seconds));
    progress_.advance(now - std::exchange(ticked_, now));
  }

  // ---- Contenders ------------------------------------------------------------------------------

  // Of the planner, for so many threads. The graph is the given one, or the prepared one of what is
  // tuned, which is rewritten already.
  Contender contender(const Graph& graph, int64_t threads, const Heuristics& heuristics,
                      const CancelToken* cancel) const {
    Plan plan;
    plan.threads = threads;
    return contender(graph, std::move(plan), heuristics, cancel);
  }
  Contender contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                      const CancelToken* cancel) const {
    return contender(graph, std::move(plan), heuristics, cancel, planning_);
  }
  Contender contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                      const CancelToken* cancel, std::shared_ptr<const Cost> cost) const {
    CompileOptions compile;
    compile.prepare = options_.prepare;
    compile.heuristics = heuristics;
    compile.cost = std::move(cost);
    compile.cache = options_.cache;
    compile.cancel = cancel;
    const int64_t threads = *plan.threads;
    compile.plan = &graph == &graph_ ? std::move(plan) : without_rewrites(std::move(plan));
    return {std::make_shared<Compilation>(graph, target_, compile), heuristics, threads};
  }

  Status begin() {
    show("the default plan");
