#include <map>

#include "base/text.h"
#include "tune/tuner_run.h"

// Schedules of the kernels of the best plan: each kernel is tuned alone, and its fastest schedules
// are then tried in the model.

namespace hone {
namespace {

constexpr double kMostForEdits = 0.5;  // of what schedules would have without them
constexpr size_t kFirstOfOthers = 4;   // schedules of similar kernels
constexpr int64_t kTrials = 400;       // of one kernel
constexpr double kNegligible = 0.002;  // of a model's time: not worth a search

}  // namespace

// Weights that no cache holds come from memory in every run.
bool Tuner::weights_are_cold() const {
  int64_t bytes = 0;
  for (const Tensor& constant : best_->image().constants) bytes += constant.type().static_bytes();
  return !target_.caches.empty() && bytes > target_.caches.back().bytes;
}

Status Tuner::schedules() {
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

// As it runs in the model. A GPU's cache is one for all of a kernel's operands: kernels that read
// cold weights find nothing in it.
MeterOptions Tuner::meter_of(const KernelUse& use) const {
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
double Tuner::rate(int64_t more) const {
  return static_cast<double>(result_.measured + more) / (elapsed() - schedules_began_);
}

Status Tuner::tune_one(const KernelUse& use, double seconds, std::string_view what,
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
Status Tuner::choose_in_model(std::vector<Found>& tuned) {
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
Status Tuner::take_schedules(std::vector<Found> tuned, const CancelToken* cancel) {
  std::ranges::sort(tuned, std::greater(), &Found::won);
  for (size_t count = tuned.size(); count > 0; count /= 2) {
    const size_t shares = result_.shares.size();
    Plan plan = best_->plan();
    for (size_t i = 0; i < count; ++i) plan.schedule[tuned[i].kernel] = tuned[i].schedules.front();
    Contender other = contender(prepared_, std::move(plan), best_->heuristics, cancel);
    HONE_TRY(other.code->image());
    HONE_TRY(challenge(std::move(other), kTuneSchedules, fmt::format("{} schedules", count),
                       kForSchedules));
    if (result_.shares.size() > shares) return {};
  }
  return {};
}

}  // namespace hone
