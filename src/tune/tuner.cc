#include "tune/tuner.h"

#include <set>

#include "base/memory_hint.h"
#include "base/text.h"
#include "compile/gpu_kernels.h"
#include "cost/program_price.h"
#include "plan/rewritten.h"
#include "target/fingerprint.h"
#include "tune/best_plan.h"
#include "tune/search_edits.h"
#include "tune/tuner_run.h"
#include "zoo/inputs.h"

namespace hone {
namespace {

// The name of a Cost, for people.
std::string_view prices_of(const Cost& cost, const Target& target) {
  if (cost.learned() != nullptr || cost.baseline() != nullptr) return "learned prices";
  if (cost.version().empty()) return "times of the log";
  return cost.version() == analytic_cost(target)->version() ? "default prices" : "fitted prices";
}

}  // namespace

Result<Tuned> Tuner::run() {
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

// The planner's plan, for this number of threads. The graph is the given one, or the prepared one
// of what is tuned, which is rewritten already.
Tuner::Contender Tuner::contender(const Graph& graph, int64_t threads, const Heuristics& heuristics,
                                  const CancelToken* cancel) const {
  Plan plan;
  plan.threads = threads;
  return contender(graph, std::move(plan), heuristics, cancel);
}
Tuner::Contender Tuner::contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                                  const CancelToken* cancel) const {
  return contender(graph, std::move(plan), heuristics, cancel, planning_);
}
Tuner::Contender Tuner::contender(const Graph& graph, Plan plan, const Heuristics& heuristics,
                                  const CancelToken* cancel,
                                  std::shared_ptr<const Cost> cost) const {
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
Status Tuner::check_memory(int64_t arena_bytes) const {
  const int64_t sides = target_.gpu ? 2 : 1;
  if (arena_bytes <= options_.memory_limit / sides) return {};
  return over_limit("{} needs {} bytes for what it computes on the way; the limit is {}",
                    target_.gpu ? "each of two plans that run in turns" : "a run", arena_bytes,
                    options_.memory_limit / sides)
      .with_hint(std::string(kMemoryHint));
}

Status Tuner::begin() {
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

Tuner::Contender Tuner::default_by(const std::shared_ptr<const Cost>& cost) const {
  Plan open;
  open.threads = options_.threads;
  return contender(graph_, std::move(open), options_.heuristics, options_.cancel, cost);
}

// A gain is worth nothing over a plan that other prices would not have chosen. So the search
// starts from the fastest of the plans that all prices at hand choose, and plans by those prices;
// in doubt by those that commands plan by.
Status Tuner::race_defaults() {
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

Status Tuner::begin_from_log() {
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
Status Tuner::count_known_kernels() {
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

Result<PlanDuel> Tuner::timed(const Contender& first, const Contender& second,
                              const DuelOptions& how) const {
  if (options_.timer) return options_.timer(first.image(), second.image(), inputs_, how);
  if (options_.device == nullptr) return duel(first.image(), second.image(), inputs_, how);
  return gpu_duel(options_.device, first.gpu_image(), second.gpu_image(), inputs_, how,
                  cubin_store(options_.cache));
}

// Confirming has its time in any case.
Result<PlanDuel> Tuner::fought(const Contender& first, const Contender& second, double share) {
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

// The challenger is the best if it wins.
Status Tuner::challenge(Contender challenger, const TuneKind& kind, std::string_view what,
                        double share) {
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

// A plan that the log knew has its shape and threads from such a search.
Status Tuner::improve() {
  if (options_.tries_rewrites && !result_.was_known) HONE_TRY(rewrites());
  if (!result_.was_known) HONE_TRY(shapes());
  if (options_.tries_threads && !target_.gpu && !result_.was_known) HONE_TRY(threads());
  if (options_.tries_schedules) HONE_TRY(schedules());
  if (options_.tries_layouts) HONE_TRY(edits(kEditsOfLayout, kTuneLayouts));
  if (options_.tries_groups) HONE_TRY(edits(kEditsOfGroups, kTuneGroups));
  return {};
}

// The last word: default and best, in turns. In doubt the default stays, or what an earlier
// confirmation has said.
Status Tuner::confirm() {
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
void Tuner::remember() {
  const bool is_usual = result_.is_default && !result_.was_known && result_.start == 0;
  if (result_.stays || is_usual) return;
  const Interval ratio = result_.is_default ? Interval{1, 1} : *result_.confirmation.times.interval;
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
