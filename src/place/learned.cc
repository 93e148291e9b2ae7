#include "place/learned.h"

#include "place/policy_steps.h"

namespace hone {

namespace {

// Draws behind the most likely placement: of large graphs fewer, so that all take about as long.
constexpr size_t kMostDraws = 32;
constexpr size_t kDrawnScores = 600'000;  // of nodes on devices, in all draws

}  // namespace

// In one shot, then in steps, then in drawn steps; the best of them counts.
std::vector<double> offer_learned(PlaceRun& run) {
  const PlacePolicy* const policy =
      run.options().policy != nullptr ? run.options().policy : shipped_policy();
  if (policy == nullptr) {
    run.note("there are no weights for this build");
    return {};
  }
  const PolicyView view(run);
  const PlacePolicy::Said said = policy->look(view);
  run.build([&](double share) { return place_at_once(run, view, said, share); });
  PolicySteps steps;
  std::optional<double> fitting;  // the share of what comes and goes by which all had room
  run.build([&](double share) {
    std::optional<DevicePlacement> made =
        place_by_steps(run, view, *policy, said, {.share = share, .steps = &steps});
    fitting = made ? std::optional(share) : std::nullopt;
    return made;
  });
  if (!fitting) return {};
  const size_t draws =
      std::min(kMostDraws, kDrawnScores / std::max<size_t>(view.rows() * view.ranks(), 1));
  for (size_t i = 0; i < draws && !run.is_late(); ++i)
    if (const auto drawn =
            place_by_steps(run, view, *policy, said, {.share = *fitting, .rng = &run.rng()}))
      run.offer(*drawn);
  return unit_probabilities(run, view, *policy, said, steps);
}

void place_policy(PlaceRun& run) { offer_learned(run); }

}  // namespace hone
