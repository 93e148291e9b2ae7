#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cost/gpu_cost.h"
#include "cost/table_cost.h"
#include "plan/plan_space.h"
#include "tune/gpu_race.h"
#include "tune/kernel_timer.h"
#include "tune/kernel_uses.h"
#include "tune/similar_kernels.h"
#include "tune/tuner.h"

// One call of tune(): the best plan so far, its challengers, and the time that is left.

namespace hone {

class Tuner {
 public:
  Tuner(const Graph& graph, const Target& target, const TuneOptions& options)
      : graph_(graph),
        target_(target),
        options_(options),
        cost_(options.cost != nullptr ? options.cost : analytic_cost(target)),
        planning_(cost_),
        times_(cost_),
        known_(options.log, target, options.version),
        progress_(options.progress != nullptr ? *options.progress : no_progress()) {}

  Result<Tuned> run();

 private:
  // Parts of the time: shapes and threads have this at most if there are schedules to search,
  // confirming this at least, and schedules what is left.
  static constexpr double kForShapes = 0.35, kForConfirming = 0.08, kForDuel = 0.02;
  static constexpr double kForSchedules = 0.08;
  static constexpr double kForEdits = 0.05;                  // of each sort
  static constexpr double kShortDuel = 0.5, kLongDuel = 15;  // seconds
  static constexpr double kShortConfirming = 2;              // or a quarter of the time
  static constexpr double kSpare = 1.2;          // runs may take this many times as long as before
  static constexpr size_t kTurns = 3;            // schedules of a kernel, in the model
  static constexpr double kWorthwhile = 1.01;    // a gain that a plan is changed for
  static constexpr double kLeastOfKernel = 1.5;  // seconds: compiling and racing a few batches

  // A plan with what it was made from. Each step to its image may be stopped, so that plan(),
  // program() and image() are for those whose image was made.
  struct Contender {
    std::shared_ptr<Compilation> code;
    Heuristics heuristics;
    int64_t threads = 1;
    const Plan& plan() const { return **code->plan(); }
    const Program& program() const { return **code->program(); }
    const Image& image() const { return **code->image(); }
    GpuImage gpu_image() const {
      const std::span<const GpuKernel> kernels = code->gpu_kernels();
      return {image(), {kernels.begin(), kernels.end()}};
    }
  };
  // Schedules of a kernel that are faster alone.
  struct Found {
    double won = 0;  // seconds of a run by the fastest, by price
    uint64_t kernel = 0;
    std::string name;
    std::vector<Schedule> schedules;  // the fastest first
  };

  // ---- Time ------------------------------------------------------------------------------------

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
  // The decisions of one sort. Without schedules to search there is nothing else to do.
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
  // The activity, next to the time and the best so far.
  void show(std::string_view what) const {
    progress_.now(fmt::format("{:.2f}x; {}", best_gain_, what));
    tick();
  }
  void tick() const {
    const auto now = static_cast<int64_t>(std::min(elapsed(), options_.seconds));
    progress_.advance(now - std::exchange(ticked_, now));
  }

  // ---- Contenders ------------------------------------------------------------------------------

  Contender contender(const Graph& graph, int64_t threads, const Heuristics& heuristics,
                      const CancelToken* cancel) const;
  Contender contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                      const CancelToken* cancel) const;
  Contender contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                      const CancelToken* cancel, std::shared_ptr<const Cost> cost) const;

  Status check_memory(int64_t arena_bytes) const;
  Status begin();
  Contender default_by(const std::shared_ptr<const Cost>& cost) const;
  Status race_defaults();
  Status begin_from_log();
  Status count_known_kernels();

  Result<PlanDuel> timed(const Contender& first, const Contender& second,
                         const DuelOptions& how) const;
  Result<PlanDuel> fought(const Contender& first, const Contender& second, double share);
  static bool is_better(const PlanDuel& fight) {
    return fight.is_faster() && fight.gain() >= kWorthwhile;
  }
  Status challenge(Contender challenger, const TuneKind& kind, std::string_view what,
                   double share = kForDuel);

  Status improve();
  Status confirm();
  void remember();

  // ---- Whole plans (tuner_plans.cc) ------------------------------------------------------------

  Status rewrites();
  void take_graph();
  Status edits(std::span<const EditKind> kinds, const TuneKind& of);
  Result<bool> measure_kernels_of_one(const Contender& a, const Contender& b);
  Status shapes();
  Status threads();

  // ---- Schedules (tuner_schedules.cc) ----------------------------------------------------------

  bool has_edits() const { return options_.tries_layouts || options_.tries_groups; }
  Status unless_own(const Error& error) const {
    return hone::unless_own(error, options_.device.get());
  }
  bool weights_are_cold() const;
  Status schedules();
  // A GPU's kernels are measured by no number of threads.
  int64_t threads_of_meter(int64_t threads) const { return target_.gpu ? 1 : threads; }
  MeterOptions meter_of(const KernelUse& use) const;
  double rate(int64_t more = 0) const;
  Status tune_one(const KernelUse& use, double seconds, std::string_view what,
                  std::vector<Found>& tuned);
  Status choose_in_model(std::vector<Found>& tuned);
  Status take_schedules(std::vector<Found> tuned, const CancelToken* cancel);

  const Graph& graph_;
  const Target& target_;
  const TuneOptions& options_;
  const std::shared_ptr<const Cost> cost_;
  std::shared_ptr<const Cost> planning_;  // whose default plan has won
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  TableCost times_;  // of kernels as they were in their last race
  MeasuredKernels known_;
  std::optional<SimilarKernels> similar_;  // those of the log
  Graph prepared_;                         // of what is tuned
  uint64_t given_hash_ = 0;                // of the graph as the log knows it, before rewrites
  Plan rewrites_;                          // that have led to it; nothing else
  std::vector<Tensor> inputs_;
  std::optional<Contender> default_, best_;
  std::optional<KnownPlan> known_plan_;  // of the log
  double run_seconds_ = 0;      // of the best and a challenger; by price until a duel tells
  double compile_seconds_ = 0;  // of one whole plan, at most so far
  double best_gain_ = 1;        // over the best default plan, as duels say
  double schedules_began_ = 0;  // seconds since the beginning
  Progress& progress_;
  mutable int64_t ticked_ = 0;  // seconds that the progress knows
  Tuned result_;
};

}  // namespace hone
