#include "tune/tuner.h"

#include <algorithm>
#include <chrono>
#include <map>

#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "kernel/schedule_text.h"
#include "program/frame.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "tune/search_edits.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

// Parts of the time: shapes and threads have this at most, confirming this at least, and schedules
// what is left.
constexpr double kForShapes = 0.35, kForConfirming = 0.08;
constexpr double kForEdits = 0.05;                  // of each sort
constexpr double kShortDuel = 0.5, kLongDuel = 15;  // seconds
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
std::string_view kind_of(bool Heuristics::* flag) {
  const bool is_layout = flag == &Heuristics::blocked_images || flag == &Heuristics::last_images ||
                         flag == &Heuristics::weight_copies || flag == &Heuristics::weight_layouts;
  return is_layout ? "layouts" : "groups and chains";
}

// What is left if schedules and where values lie do not count.
Plan shape_of(Plan plan) {
  plan.schedule.clear();
  plan.offset.clear();
  return plan;
}

// A kernel of a program, and how much it counts.
struct KernelUse {
  uint64_t hash = 0;
  std::shared_ptr<const KernelFacts> facts;
  std::string name;
  double weight = 0;  // of all its launches, by price
  std::vector<bool> is_constant;
};

// A better schedule of a kernel.
struct Found {
  double won = 0;  // seconds of a run, by price
  uint64_t kernel = 0;
  Schedule schedule;
};

class Tuner {
 public:
  Tuner(const Graph& graph, const Target& target, const TuneOptions& options)
      : graph_(graph),
        target_(target),
        options_(options),
        cost_(options.cost != nullptr ? options.cost : std::make_shared<AnalyticCost>(target)),
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
    result_.reused = known_.reused();
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
    const Image& image() const { return **code->image(); }
  };

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  double left(double share = 1) const { return share * options_.seconds - elapsed(); }
  template <class... Args>
  void tell(fmt::format_string<Args...> text, Args&&... args) const {
    if (options_.told) options_.told(fmt::format(text, std::forward<Args>(args)...));
    tick();
  }
  void tick() const {
    const auto now = static_cast<int64_t>(std::min(elapsed(), options_.seconds));
    progress_.advance(now - std::exchange(ticked_, now));
  }

  // ---- Contenders ------------------------------------------------------------------------------

  // Of the planner, for so many threads.
  Contender contender(const Graph& graph, int64_t threads, const Heuristics& heuristics,
                      const CancelToken* cancel) const {
    Plan plan;
    plan.threads = threads;
    return contender(graph, std::move(plan), heuristics, cancel);
  }
  Contender contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                      const CancelToken* cancel) const {
    CompileOptions compile;
    compile.prepare = options_.prepare;
    compile.heuristics = heuristics;
    compile.cost = cost_;
    compile.cache = options_.cache;
    compile.cancel = cancel;
    const int64_t threads = *plan.threads;
    compile.plan = std::move(plan);
    return {std::make_shared<Compilation>(graph, target_, compile), heuristics, threads};
  }

  Status begin() {
    default_ = contender(graph_, options_.threads, options_.heuristics, nullptr);
    prepared_ = *HONE_TRY(default_->code->graph());
    result_.before = *HONE_TRY(default_->code->plan());
    HONE_TRY(default_->code->image());
    inputs_ = HONE_TRY(random_inputs(graph_, options_.seed));
    best_ = default_;
    if (options_.log == nullptr) return {};
    const auto known = best_plan(*options_.log, prepared_, target_, options_.threads);
    if (!known) return {};
    Contender other = contender(prepared_, known->plan, options_.heuristics, nullptr);
    if (!other.code->image().ok()) return {};  // it does not fit any more
    tell("the log knows a plan that was {:.3f}x as fast as the default", known->gain);
    result_.was_known = true;
    best_ = std::move(other);
    return {};
  }

  // The challenger is the best if it wins.
  Status challenge(Contender challenger, std::string_view kind, std::string_view what) {
    const double seconds = std::clamp(0.02 * options_.seconds, kShortDuel, kLongDuel);
    const PlanDuel fight = HONE_TRY(duel(best_->image(), challenger.image(), inputs_,
                                         {.seconds = seconds, .cancel = options_.cancel}));
    if (fight.outcome != Outcome::measured) {
      tell("{}: {}: {}", what, name(fight.outcome), fight.detail);
      return {};
    }
    tell("{}: {:.3f}x", what, fight.gain());
    if (!fight.is_faster() || fight.gain() < kWorthwhile) return {};
    best_ = std::move(challenger);
    result_.shares.push_back({std::string(kind), fight.gain(), elapsed()});
    return {};
  }

  // ---- The steps -------------------------------------------------------------------------------

  // A plan that the log knew has its shape and threads from such a search.
  Status improve() {
    if (options_.tries_shapes && !result_.was_known) HONE_TRY(shapes());
    if (options_.tries_threads && !result_.was_known) HONE_TRY(threads());
    if (options_.tries_schedules) HONE_TRY(schedules());
    if (!options_.tries_shapes) return {};
    HONE_TRY(edits(kEditsOfLayout, "layouts"));
    return edits(kEditsOfGroups, "groups and chains");
  }

  // Edits of the best plan, by the price of the whole: measured where a kernel was, by the Cost
  // elsewhere.
  Status edits(std::span<const EditKind> kinds, std::string_view what) {
    const double seconds = std::min(left(1 - kForConfirming), kForEdits * options_.seconds);
    if (seconds <= 0) return {};
    const std::optional<Plan> plan = HONE_TRY(search_edits(
        prepared_, best_->plan(), target_, times_, kinds, best_->heuristics,
        {.budget = {.seconds = seconds}, .seed = options_.seed, .cancel = options_.cancel}));
    if (!plan) return {};
    Contender other = contender(prepared_, *plan, best_->heuristics, options_.cancel);
    const Result<const Image*> image = other.code->image();
    if (!image.ok()) return unless_cancelled(image.error());
    return challenge(std::move(other), what, fmt::format("edits of {}", what));
  }

  // Leaves out one habit of the planner after another. What has won stays out.
  Status shapes() {
    for (bool Heuristics::* flag : kShapes) {
      if (left(kForShapes) < 0) return {};
      Heuristics without = best_->heuristics;
      if (!(without.*flag)) continue;
      without.*flag = false;
      Contender other = contender(prepared_, best_->threads, without, options_.cancel);
      const Plan* plan = HONE_TRY(other.code->plan());
      if (shape_of(*plan) == shape_of(best_->plan())) continue;
      const Result<const Image*> image = other.code->image();
      if (!image.ok()) HONE_TRY(unless_cancelled(image.error()));
      if (!image.ok()) continue;
      HONE_TRY(
          challenge(std::move(other), kind_of(flag), fmt::format("without '{}'", name_of(flag))));
    }
    return {};
  }

  Status threads() {
    for (int64_t fewer = options_.threads / 2; fewer >= 1; fewer /= 2) {
      if (left(kForShapes) < 0) return {};
      Contender other = contender(prepared_, fewer, best_->heuristics, options_.cancel);
      HONE_TRY(other.code->image());
      HONE_TRY(challenge(std::move(other), "threads", fmt::format("{} threads", fewer)));
    }
    return {};
  }

  static Status unless_cancelled(const Error& error) {
    return error.code() == ErrorCode::interrupted ? Status(error) : Status();
  }

  std::vector<KernelUse> kernels() const {
    const Program& program = **best_->code->program();
    std::map<uint64_t, KernelUse> uses;
    for (const program::FrameRef& frame : program::all_frames(program.main))
      for (const program::Command& command : frame->commands) {
        const auto* const launch = std::get_if<program::Launch>(&command.kind);
        if (launch == nullptr) continue;
        const program::Kernel& kernel = program.kernels[launch->kernel];
        // No search over what is one piece.
        if (kernel.body == nullptr || kernel.schedule->algorithm() == Algorithm::generic) continue;
        KernelUse& use = uses[kernel_hash(*kernel.body)];
        if (use.facts == nullptr) {
          use.hash = kernel_hash(*kernel.body);
          use.facts = std::make_shared<const KernelFacts>(*kernel.body, use.hash);
          use.name = kernel.tiles.name;
          for (program::BufferId input : launch->inputs)
            use.is_constant.push_back(frame->buffers[program::base_of(*frame, input)].role ==
                                      program::Role::constant);
        }
        use.weight += cost_->kernel(use.facts, best_->threads)->seconds(*kernel.schedule);
      }
    std::vector<KernelUse> sorted;
    for (auto& [hash, use] : uses) sorted.push_back(std::move(use));
    std::ranges::sort(sorted, std::greater(), &KernelUse::weight);
    return sorted;
  }

  // Weights that no cache holds come from memory in every run.
  bool weights_are_cold() const {
    int64_t bytes = 0;
    for (const Tensor& constant : best_->image().constants) bytes += constant.type().static_bytes();
    return !target_.caches.empty() && bytes > target_.caches.back().bytes;
  }

  Status schedules() {
    const std::vector<KernelUse> all = kernels();
    double weight = 0;
    for (const KernelUse& use : all) weight += use.weight;
    const bool is_cold = weights_are_cold();
    std::vector<Found> tuned;
    Status status;
    double rest = weight;
    for (size_t i = 0; i < all.size() && status.ok(); ++i) {
      const KernelUse& use = all[i];
      const double time = left(1 - 2 * kForConfirming - 2 * kForEdits);
      if (time < kLeastOfKernel || use.weight < kNegligible * weight) break;
      ++result_.kernels;
      status = tune_one(use, is_cold, std::max(kLeastOfKernel, time * use.weight / rest),
                        fmt::format("kernel {} of {}, {}", i + 1, all.size(), use.name), tuned);
      rest -= use.weight;
    }
    if (!status.ok())
      HONE_TRY(unless_cancelled(status.error()).ok() ? std::move(status) : Status());
    HONE_TRY(take_schedules(std::move(tuned), status.ok() ? options_.cancel : nullptr));
    return status;
  }

  Status tune_one(const KernelUse& use, bool is_cold, double seconds, std::string_view what,
                  std::vector<Found>& tuned) {
    TuneKernelOptions options;
    options.by = options_.search;
    options.meter.conditions.threads = best_->threads;
    if (is_cold) options.meter.conditions.cold = use.is_constant;
    options.meter.seed = options_.seed;
    options.meter.cancel = options_.cancel;
    options.search = {.budget = {.seconds = seconds, .trials = kTrials},
                      .seed = options_.seed ^ use.hash,
                      .cancel = options_.cancel};
    const Schedule& now = best_->plan().schedule.at(use.hash);
    Result<TunedKernel> kernel = tune_kernel(use.facts, now, target_, *cost_, known_, options);
    if (!kernel.ok()) {
      HONE_TRY(unless_cancelled(kernel.error()));
      tell("{}: {}", what, kernel.error().what());
      return {};
    }
    result_.trials += kernel->trials;
    result_.measured += kernel->measured;
    result_.compiles += kernel->compiles;
    tell("{}: {:.3f}x ({} measured)", what, kernel->before / kernel->seconds, kernel->measured);
    times_.set(use.hash, now, kernel->before);
    if (!kernel->is_changed()) return {};
    times_.set(use.hash, kernel->schedule, kernel->seconds);
    ++result_.improved;
    tuned.push_back(
        {use.weight * (1 - kernel->seconds / kernel->before), use.hash, kernel->schedule});
    return {};
  }

  // All of them, or, as kernels beside others may take another time than alone, those that win
  // most.
  Status take_schedules(std::vector<Found> tuned, const CancelToken* cancel) {
    std::ranges::sort(tuned, std::greater(), &Found::won);
    for (size_t count = tuned.size(); count > 0; count /= 2) {
      const size_t shares = result_.shares.size();
      Plan plan = best_->plan();
      for (size_t i = 0; i < count; ++i) plan.schedule[tuned[i].kernel] = tuned[i].schedule;
      Contender other = contender(prepared_, std::move(plan), best_->heuristics, cancel);
      HONE_TRY(other.code->image());
      HONE_TRY(challenge(std::move(other), "schedules", fmt::format("{} schedules", count)));
      if (result_.shares.size() > shares) return {};
    }
    return {};
  }

  // The last word: default and best, in turns. In doubt the default stays.
  Status confirm() {
    result_.plan = result_.before;
    if (best_->code == default_->code) return {};
    const double seconds =
        result_.was_cancelled ? 2 : std::clamp(kForConfirming * options_.seconds, 2.0, kLongDuel);
    result_.confirmation =
        HONE_TRY(duel(default_->image(), best_->image(), inputs_, {.seconds = seconds}));
    const PlanDuel& last = result_.confirmation;
    result_.is_default = !last.is_faster();
    if (!result_.is_default) result_.plan = best_->plan();
    // A plan of the log that has turned out to be slower is forgotten.
    const bool is_slower = last.outcome != Outcome::measured || last.times.interval->low > 1;
    if (options_.log == nullptr || (result_.is_default && !(result_.was_known && is_slower)))
      return {};
    const Interval ratio = result_.is_default ? Interval{1, 1} : *last.times.interval;
    return options_.log->set_best({.graph = hash_without_weights(prepared_),
                                   .target = fingerprint(target_),
                                   .threads = options_.threads,
                                   .plan = print(result_.plan),
                                   .gain = result_.gain(),
                                   .low = 1 / ratio.high,
                                   .high = 1 / ratio.low,
                                   .version = options_.version});
  }

  const Graph& graph_;
  const Target& target_;
  const TuneOptions& options_;
  const std::shared_ptr<const Cost> cost_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  TableCost times_;  // of kernels as they were in their last race
  MeasuredKernels known_;
  Graph prepared_;
  std::vector<Tensor> inputs_;
  std::optional<Contender> default_, best_;
  Progress& progress_;
  mutable int64_t ticked_ = 0;  // seconds that the progress knows
  Tuned result_;
};

}  // namespace

Result<Tuned> tune(const Graph& graph, const Target& target, const TuneOptions& options) {
  if (options.seconds <= 0)
    return usage_error("a budget of {} s is no time to tune in", options.seconds);
  if (options.threads < 1 || options.threads > target.cores)
    return usage_error("{} threads are outside of 1..{}, the target's cores", options.threads,
                       target.cores);
  HONE_TRY(find_search(options.search));
  if (!graph.symbols().empty())
    return bad_input("sizes are open, and how long it takes depends on them");
  return Tuner(graph, target, options).run();
}

}  // namespace hone
