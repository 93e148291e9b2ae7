#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "base/memory_hint.h"
#include "base/text.h"
#include "compile/gpu_kernels.h"
#include "cost/gpu_cost.h"
#include "cost/program_price.h"
#include "cost/table_cost.h"
#include "kernel/schedule_text.h"
#include "plan/rewritten.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "tune/gpu_race.h"
#include "tune/kernel_timer.h"
#include "tune/kernel_uses.h"
#include "tune/search_edits.h"
#include "tune/similar_kernels.h"
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
constexpr double kSpare = 1.2;          // runs may take this many times as long as before
constexpr size_t kFirstOfOthers = 4;    // schedules of similar kernels
constexpr size_t kTurns = 3;            // schedules of a kernel, in the model
constexpr int64_t kEditRounds = 3;      // of searching and measuring
constexpr double kWorthwhile = 1.01;    // a gain that a plan is changed for
constexpr int64_t kTrials = 400;        // of one kernel
constexpr double kLeastOfKernel = 1.5;  // seconds: compiling and racing a few batches
constexpr double kNegligible = 0.002;   // of a model's time: not worth a search

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

// The plan if schedules and places of values do not count.
Plan shape_of(Plan plan) {
  plan.schedule.clear();
  plan.offset.clear();
  return plan;
}

// The name of a Cost, for people.
std::string_view prices_of(const Cost& cost, const Target& target) {
  if (cost.learned() != nullptr || cost.baseline() != nullptr) return "learned prices";
  if (cost.version().empty()) return "times of the log";
  return cost.version() == analytic_cost(target)->version() ? "default prices" : "fitted prices";
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
        cost_(options.cost != nullptr ? options.cost : analytic_cost(target)),
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

  // The planner's plan, for this number of threads. The graph is the given one, or the prepared one
  // of what is tuned, which is rewritten already.
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
    compile.device = options_.device;
    compile.cancel = cancel;
    const int64_t threads = *plan.threads;
    compile.plan = &graph == &graph_ ? std::move(plan) : without_rewrites(std::move(plan));
    return {std::make_shared<Compilation>(graph, target_, compile), heuristics, threads};
  }

  // On a GPU both sides of a duel lie beside each other.
  Status check_memory(int64_t arena_bytes) const {
    const int64_t sides = target_.gpu ? 2 : 1;
    if (arena_bytes <= options_.memory_limit / sides) return {};
    return over_limit("{} needs {} bytes for what it computes on the way; the limit is {}",
                      target_.gpu ? "each of two plans that run in turns" : "a run", arena_bytes,
                      options_.memory_limit / sides)
        .with_hint(std::string(kMemoryHint));
  }

  Status begin() {
    show("the default plan");
    default_ = default_by(cost_);
    prepared_ = *HONE_TRY(default_->code->graph());
    given_hash_ = hash_without_weights(prepared_);
    HONE_TRY(check_memory(HONE_TRY(default_->code->image())->arena_bytes));
    // The time of two runs, by a price that may be twice too high.
    run_seconds_ = HONE_TRY(price(default_->program(), *cost_)).total();
    inputs_ = HONE_TRY(random_inputs(graph_, options_.seed));
    result_.defaults.push_back({.prices = prices_of(*cost_, target_), .is_best = true});
    HONE_TRY(race_defaults());
    result_.before = default_->plan();
    best_ = default_;
    if (options_.log == nullptr) return {};
    HONE_TRY(begin_from_log());
    if (options_.tries_schedules)
      similar_.emplace(
          HONE_TRY(SimilarKernels::of(*options_.log, target_, threads_of_meter(options_.threads))));
    return count_known_kernels();
  }

  Contender default_by(const std::shared_ptr<const Cost>& cost) const {
    Plan open;
    open.threads = options_.threads;
    return contender(graph_, std::move(open), options_.heuristics, options_.cancel, cost);
  }

  // A gain is worth nothing over a plan that other prices would not have chosen. So the search
  // starts from the fastest of the plans that all prices at hand choose, and plans by those prices;
  // in doubt by those that commands plan by.
  Status race_defaults() {
    std::vector<std::shared_ptr<const Cost>> others;
    if (cost_->baseline() != nullptr) others.emplace_back(cost_, cost_->baseline());
    others.push_back(analytic_cost(target_));
    std::set<std::string> versions = {cost_->version()};  // equal ones choose equal plans
    std::vector<Plan> seen = {default_->plan()};
    for (const std::shared_ptr<const Cost>& cost : others) {
      if (!versions.insert(cost->version()).second) continue;
      if (left_for_shapes() < least_duel()) break;
      const std::string_view prices = prices_of(*cost, target_);
      show(fmt::format("the plan by {}", prices));
      Contender other = default_by(cost);
      const Result<const Plan*> plan = other.code->plan();
      if (plan.ok() && std::ranges::find(seen, **plan) != seen.end()) continue;
      const Result<const Image*> image = other.code->image();
      if (!image.ok()) HONE_TRY(unless_own(image.error()));
      if (!image.ok()) continue;
      seen.push_back(other.plan());
      const PlanDuel fight = HONE_TRY(fought(*default_, other, kForDuel));
      if (fight.outcome != Outcome::measured) continue;
      tell("the plan by {}: {:.3f}x that by {}", prices, fight.gain(),
           result_.defaults[result_.start].prices);
      result_.defaults.push_back({prices, fight, is_better(fight)});
      if (!is_better(fight)) continue;
      result_.start = result_.defaults.size() - 1;
      default_ = std::move(other);
      planning_ = cost;
    }
    if (result_.defaults.size() > 1)
      tell("starts from the plan by {}", result_.defaults[result_.start].prices);
    return {};
  }

  Status begin_from_log() {
    const auto known = best_plan(*options_.log, prepared_, target_, options_.threads);
    // One that assumes a range of inputs is not taken unasked.
    if (!known || assumed_range(known->plan) > 0) return {};
    if (known->plan == result_.before) return {};
    show("the log's plan");
    Contender other = contender(graph_, known->plan, options_.heuristics, options_.cancel);
    if (const Result<const Image*> image = other.code->image(); !image.ok()) {
      HONE_TRY(unless_own(image.error()));
      tell("the log's plan does not fit any more");
      return {};
    }
    tell("the log knows a plan that was {:.3f}x as fast as the default", known->gain);
    result_.was_known = true;
    best_ = std::move(other);
    take_graph();
    best_gain_ = known->gain;
    known_plan_ = KnownPlan{best_->plan(), known->gain, known->low, known->high};
    return {};
  }

  // The times that other models have left in the log.
  Status count_known_kernels() {
    double all = 0, known = 0;
    for (const KernelUse& use : kernel_uses(best_->program(), *cost_)) {
      ++result_.overlap.kernels;
      all += use.weight;
      if (!HONE_TRY(known_.has_kernel(use.hash))) continue;
      ++result_.overlap.known;
      known += use.weight;
    }
    if (all > 0) result_.overlap.share = known / all;
    return {};
  }

  Result<PlanDuel> timed(const Contender& first, const Contender& second,
                         const DuelOptions& how) const {
    if (options_.timer) return options_.timer(first.image(), second.image(), inputs_, how);
    if (options_.device == nullptr) return duel(first.image(), second.image(), inputs_, how);
    return gpu_duel(options_.device, first.gpu_image(), second.gpu_image(), inputs_, how,
                    cubin_store(options_.cache));
  }

  // Confirming has its time in any case.
  Result<PlanDuel> fought(const Contender& first, const Contender& second, double share) {
    const double most = left() - for_confirming();
    PlanDuel fight = {.lacks_time = true};
    if (most > least_duel())
      fight = HONE_TRY(timed(first, second,
                             {.seconds = std::min(most, for_duel(share)),
                              .most_seconds = most,
                              .cancel = options_.cancel}));
    if (fight.run_seconds > 0) run_seconds_ = fight.run_seconds;
    return fight;
  }
  static bool is_better(const PlanDuel& fight) {
    return fight.is_faster() && fight.gain() >= kWorthwhile;
  }

  // The challenger is the best if it wins.
  Status challenge(Contender challenger, const TuneKind& kind, std::string_view what,
                   double share = kForDuel) {
    const PlanDuel fight = HONE_TRY(fought(*best_, challenger, share));
    if (fight.lacks_time) {
      ++result_.untried;
      tell("{}: no time is left to try it", what);
      return {};
    }
    if (fight.outcome != Outcome::measured) {
      tell("{}: {}: {}", what, name(fight.outcome), fight.detail);
      return {};
    }
    const bool wins = is_better(fight);
    tell("{}: {:.3f}x; best so far {:.3f}x", what, fight.gain(),
         best_gain_ * (wins ? fight.gain() : 1));
    if (!wins) return {};
    best_ = std::move(challenger);
    best_gain_ *= fight.gain();
    result_.shares.push_back({&kind, fight.gain(), elapsed()});
    return {};
  }

  // ---- The steps -------------------------------------------------------------------------------

  // A plan that the log knew has its shape and threads from such a search.
  Status improve() {
    if (options_.tries_rewrites && !result_.was_known) HONE_TRY(rewrites());
    if (!result_.was_known) HONE_TRY(shapes());
    if (options_.tries_threads && !target_.gpu && !result_.was_known) HONE_TRY(threads());
    if (options_.tries_schedules) HONE_TRY(schedules());
    if (options_.tries_layouts) HONE_TRY(edits(kEditsOfLayout, kTuneLayouts));
    if (options_.tries_groups) HONE_TRY(edits(kEditsOfGroups, kTuneGroups));
    return {};
  }

  // All that comes later is about the graph that wins.
  Status rewrites() {
    if (!options_.find_rewrites) return {};
    show("rewrites");
    Plan plan = HONE_TRY(options_.find_rewrites(graph_, target_, options_.threads));
    if (!has_rewrites(plan)) return {};
    plan.threads = best_->threads;
    Contender other = contender(graph_, std::move(plan), best_->heuristics, options_.cancel);
    const Result<const Image*> image = other.code->image();
    if (!image.ok()) return unless_own(image.error());
    HONE_TRY(challenge(std::move(other), kTuneRewrites, "rewrites"));
    take_graph();
    return {};
  }
  // The schedules of the best.
  void take_graph() {
    prepared_ = **best_->code->graph();
    rewrites_ = only_rewrites(best_->plan());
  }

  // Edits of the best plan, by the price of the whole: measured where a kernel was, by the Cost
  // elsewhere. The new kernels of the cheapest plan are measured; if they are slower than the Cost
  // thought, the search begins again and knows better.
  Status edits(std::span<const EditKind> kinds, const TuneKind& of) {
    for (int64_t round = 0; round < kEditRounds; ++round) {
      const double seconds = std::min(left() - for_confirming() - for_duel(), for_edits_of_one());
      if (seconds <= 0) return {};
      show(fmt::format("edits of {}", of.name));
      const std::optional<Plan> plan = HONE_TRY(search_edits(
          prepared_, best_->plan(), target_, times_, kinds, best_->heuristics,
          {.budget = {.seconds = seconds}, .seed = options_.seed, .cancel = options_.cancel}));
      if (!plan) return {};
      Contender other = contender(prepared_, *plan, best_->heuristics, options_.cancel);
      const Result<const Image*> image = other.code->image();
      if (!image.ok()) return unless_own(image.error());
      const bool learned = HONE_TRY(measure_kernels_of_one(*best_, other));
      const double now = HONE_TRY(price(best_->program(), times_)).total();
      const double then = HONE_TRY(price(other.program(), times_)).total();
      if (then <= kCheaper * now || !learned)
        return challenge(std::move(other), of, fmt::format("edits of {}", of.name));
      tell("edits of {}: {:.3f}x, as their kernels were measured", of.name, now / then);
    }
    return {};
  }

  // The kernels that only one of the plans has, each alone, unless their time is known. True if
  // there was one.
  Result<bool> measure_kernels_of_one(const Contender& a, const Contender& b) {
    const std::vector<KernelUse> of_a = kernel_uses(a.program(), times_),
                                 of_b = kernel_uses(b.program(), times_);
    const auto has = [](const std::vector<KernelUse>& uses, const KernelUse& wanted) {
      return std::ranges::any_of(uses, [&](const KernelUse& use) {
        return use.hash == wanted.hash && use.schedule == wanted.schedule;
      });
    };
    bool learned = false;
    for (const auto& [uses, others] : {std::pair(&of_a, &of_b), std::pair(&of_b, &of_a)})
      for (const KernelUse& use : *uses) {
        if (has(*others, use) || times_.has(use.hash, use.schedule)) continue;
        if (left() < for_confirming() + for_duel()) return learned;
        KernelTimer timer(use.facts, use.schedule, target_, known_, meter_of(use));
        const Result<std::vector<double>> seconds = timer.seconds({&use.schedule, 1});
        if (!seconds.ok()) HONE_TRY(unless_own(seconds.error()));
        if (!seconds.ok()) continue;  // it has its price
        times_.set(use.hash, use.schedule, seconds->front());
        learned = true;
      }
    return learned;
  }

  // Leaves out one habit of the planner after another. A heuristic that has won stays out.
  Status shapes() {
    for (bool Heuristics::* flag : kShapes) {
      if (left_for_shapes() < compile_seconds_ + least_duel()) return {};
      if (!(options_.*kind_of(flag).flag)) continue;
      Heuristics without = best_->heuristics;
      if (!(without.*flag)) continue;
      without.*flag = false;
      show(fmt::format("without {}", name_of(flag)));
      const double began = elapsed();
      Contender other = contender(prepared_, best_->threads, without, options_.cancel);
      const Plan* plan = HONE_TRY(other.code->plan());
      if (shape_of(*plan) == shape_of(best_->plan())) continue;
      const Result<const Image*> image = other.code->image();
      compile_seconds_ = std::max(compile_seconds_, elapsed() - began);
      if (!image.ok()) HONE_TRY(unless_own(image.error()));
      if (!image.ok()) continue;
      HONE_TRY(
          challenge(std::move(other), kind_of(flag), fmt::format("without '{}'", name_of(flag))));
    }
    return {};
  }

  Status threads() {
    for (int64_t fewer = options_.threads / 2; fewer >= 1; fewer /= 2) {
      if (left_for_shapes() < compile_seconds_ + least_duel()) return {};
      show(fmt::format("{} threads", fewer));
      Contender other = contender(prepared_, fewer, best_->heuristics, options_.cancel);
      HONE_TRY(other.code->image());
      HONE_TRY(challenge(std::move(other), kTuneThreads, fmt::format("{} threads", fewer)));
    }
    return {};
  }

  bool has_edits() const { return options_.tries_layouts || options_.tries_groups; }

  Status unless_own(const Error& error) const {
    return hone::unless_own(error, options_.device.get());
  }

  // Weights that no cache holds come from memory in every run.
  bool weights_are_cold() const {
    int64_t bytes = 0;
    for (const Tensor& constant : best_->image().constants) bytes += constant.type().static_bytes();
    return !target_.caches.empty() && bytes > target_.caches.back().bytes;
  }

  Status schedules() {
    const std::vector<KernelUse> all = kernel_uses(best_->program(), *cost_);
    double weight = 0;
    for (const KernelUse& use : all) weight += use.weight;
    std::vector<Found> tuned;
    Status status;
    schedules_began_ = elapsed();
    double rest = weight;
    for (size_t i = 0; i < all.size() && status.ok(); ++i) {
      const KernelUse& use = all[i];
      double time = left() - for_confirming() - for_duels_of_schedules();
      if (has_edits() && for_edits() < kMostForEdits * time) time -= for_edits();
      if (time < kLeastOfKernel || use.weight < kNegligible * weight) break;
      ++result_.kernels;
      status = tune_one(use, std::max(kLeastOfKernel, time * use.weight / rest),
                        fmt::format("kernel {} of {}", i + 1, all.size()), tuned);
      rest -= use.weight;
    }
    if (!status.ok() && status.error().code() != ErrorCode::interrupted) return status;
    if (status.ok()) HONE_TRY(choose_in_model(tuned));
    HONE_TRY(take_schedules(std::move(tuned), status.ok() ? options_.cancel : nullptr));
    return status;
  }

  // A GPU's kernels are measured by no number of threads.
  int64_t threads_of_meter(int64_t threads) const { return target_.gpu ? 1 : threads; }

  // As it runs in the model. A GPU's cache is one for all of a kernel's operands: kernels that read
  // cold weights find nothing in it.
  MeterOptions meter_of(const KernelUse& use) const {
    MeterOptions meter;
    meter.device = options_.device;
    meter.conditions.threads = threads_of_meter(best_->threads);
    if (weights_are_cold() && target_.gpu)
      meter.conditions.all_cold = std::ranges::find(use.is_constant, true) != use.is_constant.end();
    else if (weights_are_cold())
      meter.conditions.cold = use.is_constant;
    meter.seed = options_.seed;
    meter.cancel = options_.cancel;
    return meter;
  }

  // Candidates a second, with `more` of the kernel at hand.
  double rate(int64_t more = 0) const {
    return static_cast<double>(result_.measured + more) / (elapsed() - schedules_began_);
  }

  Status tune_one(const KernelUse& use, double seconds, std::string_view what,
                  std::vector<Found>& tuned) {
    TuneKernelOptions options;
    options.by = options_.search;
    options.own_search = options_.own_search.get();
    if (similar_) options.first = similar_->of(*use.facts, kFirstOfOthers);
    options.meter = meter_of(use);
    options.search = {.budget = {.seconds = seconds, .trials = kTrials},
                      .seed = options_.seed ^ use.hash,
                      .cancel = options_.cancel};
    tell("{}: {}", what, use.name);
    show(what);
    options.stepped = [&](int64_t measured) {
      show(fmt::format("{}, {}/s", what, format_count(rate(measured))));
    };
    Result<TunedKernel> kernel =
        tune_kernel(use.facts, use.schedule, target_, *cost_, known_, options);
    if (!kernel.ok()) {
      HONE_TRY(unless_own(kernel.error()));
      tell("{}: {}", what, kernel.error().what());
      return {};
    }
    result_.trials += kernel->trials;
    result_.measured += kernel->measured;
    result_.needed += kernel->needed;
    result_.compiles += kernel->compiles;
    tell("{}: {:.3f}x ({} measured, {}/s); best so far {:.3f}x", what,
         kernel->before / kernel->seconds, kernel->measured, format_count(rate()), best_gain_);
    times_.set(use.hash, use.schedule, kernel->before);
    if (!kernel->is_changed()) return {};
    times_.set(use.hash, kernel->schedule, kernel->seconds);
    ++result_.improved;
    tuned.push_back({use.weight * (1 - kernel->seconds / kernel->before), use.hash, use.name,
                     std::move(kernel->faster)});
    return {};
  }

  // Alone a kernel finds other data in the caches than among others, so its time in the model
  // decides. The fastest schedule of each kernel is tried, then the second ones, and so on. Changes
  // that win nothing go.
  Status choose_in_model(std::vector<Found>& tuned) {
    std::map<uint64_t, std::pair<double, Schedule>> chosen;
    size_t turn = 0;
    for (; turn < kTurns; ++turn) {
      const double most = left() - for_confirming() - for_duel(kForSchedules);
      Plan plan = best_->plan();
      for (const Found& found : tuned)
        if (turn < found.schedules.size()) plan.schedule[found.kernel] = found.schedules[turn];
      if (plan.schedule == best_->plan().schedule || most < least_duel()) break;
      show(fmt::format("schedules in the model, {} of {}", turn + 1, kTurns));
      const Contender other = contender(prepared_, plan, best_->heuristics, options_.cancel);
      HONE_TRY(other.code->image());
      const PlanDuel fight = HONE_TRY(timed(*best_, other,
                                            {.seconds = for_turn(),
                                             .most_seconds = most,
                                             .by_kernel = true,
                                             .cancel = options_.cancel}));
      if (fight.outcome != Outcome::measured) break;
      for (const Found& found : tuned) {
        const auto kernel = fight.kernels.find(found.name);
        if (turn >= found.schedules.size() || kernel == fight.kernels.end()) continue;
        auto& [ratio, schedule] = chosen.try_emplace(found.kernel, 1, Schedule()).first->second;
        if (kernel->second.ratio >= ratio) continue;
        ratio = kernel->second.ratio;
        schedule = found.schedules[turn];
      }
    }
    if (turn == 0) return {};
    std::erase_if(tuned, [&](Found& found) {
      const auto& [ratio, schedule] = chosen.try_emplace(found.kernel, 1, Schedule()).first->second;
      found.schedules = {schedule};
      return !(ratio < 1);
    });
    tell("schedules: {} are faster in the model, too", tuned.size());
    return {};
  }

  // All of them, or, as kernels beside others may take another time than alone, those that win
  // most.
  Status take_schedules(std::vector<Found> tuned, const CancelToken* cancel) {
    std::ranges::sort(tuned, std::greater(), &Found::won);
    for (size_t count = tuned.size(); count > 0; count /= 2) {
      const size_t shares = result_.shares.size();
      Plan plan = best_->plan();
      for (size_t i = 0; i < count; ++i)
        plan.schedule[tuned[i].kernel] = tuned[i].schedules.front();
      Contender other = contender(prepared_, std::move(plan), best_->heuristics, cancel);
      HONE_TRY(other.code->image());
      HONE_TRY(challenge(std::move(other), kTuneSchedules, fmt::format("{} schedules", count),
                         kForSchedules));
      if (result_.shares.size() > shares) return {};
    }
    return {};
  }

  // The last word: default and best, in turns. In doubt the default stays, or what an earlier
  // confirmation has said.
  Status confirm() {
    result_.plan = result_.before;
    if (best_->code == default_->code) {
      if (options_.log != nullptr) remember();
      return {};
    }
    show("confirming");
    // Who has cancelled waits for a short one alone.
    DuelOptions last_duel = {.seconds = std::min(for_confirming(), kLongDuel),
                             .most_seconds = std::max(left(), kShortDuel)};
    if (result_.was_cancelled) last_duel = {.seconds = kShortConfirming, .most_seconds = kLongDuel};
    PlanDuel& last = result_.confirmation;
    if (known_plan_ && best_->plan() == known_plan_->plan && least_duel() > last_duel.most_seconds)
      last.lacks_time = true;  // it was confirmed before
    else
      last = HONE_TRY(timed(*default_, *best_, last_duel));
    const bool is_in_doubt = last.lacks_time || last.outcome == Outcome::measured;
    if (last.is_faster()) {
      result_.plan = best_->plan();
      set_rewrites(result_.plan, rewrites_);
    } else if (is_in_doubt && !last.is_slower())
      result_.stays = known_plan_;
    if (result_.stays) result_.plan = result_.stays->plan;
    result_.is_default = !last.is_faster() && !result_.stays;
    if (options_.log != nullptr) remember();
    return {};
  }

  // The plan, if it is better than the default. One of the log that has turned out to be slower is
  // forgotten; the default is remembered where commands would plan by prices that have lost.
  void remember() {
    const bool is_usual = result_.is_default && !result_.was_known && result_.start == 0;
    if (result_.stays || is_usual) return;
    const Interval ratio =
        result_.is_default ? Interval{1, 1} : *result_.confirmation.times.interval;
    Status status = options_.log->set_best({.graph = given_hash_,
                                            .target = fingerprint(target_),
                                            .threads = options_.threads,
                                            .plan = print(result_.plan),
                                            .gain = result_.gain(),
                                            .low = 1 / ratio.high,
                                            .high = 1 / ratio.low,
                                            .version = options_.version});
    if (!status.ok()) result_.unwritten = std::move(status).error();
  }

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

}  // namespace

Status try_only(TuneOptions& options, std::string_view words) {
  std::vector<std::string_view> known;
  for (const TuneKind& kind : kTuneKinds) {
    known.push_back(kind.word);
    options.*kind.flag = false;
  }
  for (std::string_view word : split(words, ',')) {
    const auto* const kind = std::ranges::find(kTuneKinds, word, &TuneKind::word);
    if (kind == std::end(kTuneKinds))
      return usage_error("there are no decisions '{}' to search alone", excerpt(word))
          .with_hint(fmt::format("there are {}", join(known, ", ")));
    options.*kind->flag = true;
  }
  return {};
}

Result<Tuned> tune(const Graph& graph, const Target& target, const TuneOptions& options) {
  if (options.seconds <= 0)
    return usage_error("a budget of {} s is too short to tune in", options.seconds);
  if (options.threads < 1 || options.threads > target.cores)
    return usage_error("{} threads are outside of 1..{}, the target's cores", options.threads,
                       target.cores);
  if (options.own_search == nullptr) HONE_TRY(find_search(options.search));
  if (!graph.symbols().empty())
    return bad_input("sizes are open, and how long it takes depends on them");
  return Tuner(graph, target, options).run();
}

}  // namespace hone
