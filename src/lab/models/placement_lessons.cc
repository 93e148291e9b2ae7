#include "lab/models/placement_lessons.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

constexpr double kLeastDeviationOfGroup = 0.02;  // of logarithms of values: less is a tie
constexpr double kMostAdvantage = 3;
constexpr double kNoRoom = 0.3;  // worse than the worst that fits, as a logarithm

}  // namespace

SampledPlacements sample_placements(PlaceRun& run, const PolicyView& view,
                                    const PlacePolicy& policy, const PlacePolicy::Said& said,
                                    int64_t count, double reference, double share, Rng& rng) {
  SampledPlacements sampled;
  std::vector<double> rewards;
  double worst = 0;
  for (int64_t p = 0; p < count; ++p) {
    PlacementLesson lesson;
    std::optional<DevicePlacement> made = place_by_steps(
        run, view, policy, said, {.share = share, .rng = &rng, .steps = &lesson.steps});
    if (!made) continue;
    const double value = run.judged(*made);
    rewards.push_back(value == kCannotRun ? -kCannotRun : -std::log(value / reference));
    if (value != kCannotRun) worst = std::min(worst, rewards.back());
    sampled.values.push_back(value);
    sampled.placements.push_back(*std::move(made));
    sampled.lessons.push_back(std::move(lesson));
  }
  double sum = 0, squares = 0;
  for (double& reward : rewards) {
    reward = std::max(reward, worst - kNoRoom);
    sum += reward;
  }
  const auto all = static_cast<double>(std::max<size_t>(rewards.size(), 1));
  for (const double reward : rewards) squares += (reward - sum / all) * (reward - sum / all);
  const double spread = std::max(std::sqrt(squares / all), kLeastDeviationOfGroup);
  for (size_t p = 0; p < rewards.size(); ++p)
    sampled.lessons[p].advantage = static_cast<float>(
        std::clamp((rewards[p] - sum / all) / spread, -kMostAdvantage, kMostAdvantage));
  return sampled;
}

}  // namespace hone
