#include "cost/program_price.h"
#include "plan/rewritten.h"
#include "tune/search_edits.h"
#include "tune/tuner_run.h"

// Other plans as wholes: of a rewritten graph, edited, without a habit of the planner, and for
// fewer threads.

namespace hone {
namespace {

constexpr int64_t kEditRounds = 3;  // of searching and measuring

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

}  // namespace

// All that comes later is about the graph that wins.
Status Tuner::rewrites() {
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
void Tuner::take_graph() {
  prepared_ = **best_->code->graph();
  rewrites_ = only_rewrites(best_->plan());
}

// Edits of the best plan, by the price of the whole: measured where a kernel was, by the Cost
// elsewhere. The new kernels of the cheapest plan are measured; if they are slower than the Cost
// thought, the search begins again and knows better.
Status Tuner::edits(std::span<const EditKind> kinds, const TuneKind& of) {
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
Result<bool> Tuner::measure_kernels_of_one(const Contender& a, const Contender& b) {
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
Status Tuner::shapes() {
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

Status Tuner::threads() {
  for (int64_t fewer = options_.threads / 2; fewer >= 1; fewer /= 2) {
    if (left_for_shapes() < compile_seconds_ + least_duel()) return {};
    show(fmt::format("{} threads", fewer));
    Contender other = contender(prepared_, fewer, best_->heuristics, options_.cancel);
    HONE_TRY(other.code->image());
    HONE_TRY(challenge(std::move(other), kTuneThreads, fmt::format("{} threads", fewer)));
  }
  return {};
}

}  // namespace hone
