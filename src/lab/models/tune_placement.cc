#include "lab/models/tune_placement.h"

#include <algorithm>

#include "base/hash.h"
#include "lab/models/placement_lessons.h"
#include "lab/models/train_placement.h"
#include "learn/trainer.h"

namespace hone {
namespace {

// Nodes times devices times placements of a step: a few copies of that many rows of features.
constexpr int64_t kMostChoices = int64_t{1} << 22;
constexpr float kCopied = 0.5F;  // the weight of the best placement among those that are drawn

int64_t whole_segments(size_t rows) {
  constexpr auto kSegment = static_cast<int64_t>(PolicyShape::kSegment);
  return std::max<int64_t>(2, (static_cast<int64_t>(rows) + kSegment - 1) / kSegment) * kSegment;
}

// Each sample is the graph, with placements that the policy draws as it is then, and the best one.
class TuningGames : public Dataset {
 public:
  TuningGames(const PlaceJudge& judge, const PlacePolicy& policy, const PlacementTuning& options)
      : judge_(judge),
        policy_(policy),
        options_(options),
        place_options_{.goal = options.goal, .seconds = 1e9, .trials = INT64_MAX},
        run_(judge, place_options_),
        view_(run_) {
    sizes_ = {.nodes = whole_segments(view_.rows()),
              .devices = static_cast<int64_t>(view_.ranks()),
              .edges = std::max<int64_t>(std::ssize(view_.sources), 1),
              .plans = options.plans + 1};
  }

  const PlacementSizes& sizes() const { return sizes_; }
  const DevicePlacement& best() const { return best_; }
  double value() const { return value_; }
  void play_by(const Trainer& trainer) { trainer_ = &trainer; }

  // Without tuning: the start, and what the policy thinks likeliest.
  Status begin() {
    const PlacePolicy::Said said = policy_.look(view_);
    if (options_.start) take(*options_.start, run_.judged(*options_.start));
    bool is_placed = false;
    for (const double share : {1.0, 0.5, 0.25, 0.1, 0.0}) {
      const auto made = place_by_steps(run_, view_, policy_, said, {.share = share});
      if (!made) continue;
      share_ = share;
      const double value = run_.judged(*made);
      is_placed = value != kCannotRun;
      if (is_placed) {
        take(*made, value);
        break;
      }
    }
    if (is_placed || value_ != kCannotRun) return {};
    return over_limit("the policy has no placement that fits the memory of the devices");
  }

  int64_t size() const override { return options_.steps; }

  Result<Batch> batch(std::span<const int64_t> samples, int64_t /*bucket*/) const override {
    Rng rng(hash_combine(options_.seed, static_cast<uint64_t>(samples[0])));
    const PlacePolicy policy =
        trainer_ != nullptr ? HONE_TRY(PlacePolicy::make(trainer_->weights())) : policy_;
    const PlacePolicy::Said said = policy.look(view_);
    SampledPlacements sampled =
        sample_placements(run_, view_, policy, said, options_.plans, value_, share_, rng);
    for (size_t p = 0; p < sampled.values.size(); ++p)
      take(sampled.placements[p], sampled.values[p]);
    HONE_TRY(add_copy_of_best(policy, said, sampled.lessons));
    const DevicePlacement ordered = in_order_of_use(judge_, best_);
    std::vector<uint32_t> target;
    for (const uint32_t node : view_.node_of) target.push_back(view_.rank_of[ordered.device[node]]);
    return placement_batch(view_, sizes_, sampled.lessons, target);
  }

 private:
  void take(const DevicePlacement& placement, double value) const {
    if (value >= value_) return;
    value_ = value;
    best_ = placement;
  }

  Status add_copy_of_best(const PlacePolicy& policy, const PlacePolicy::Said& said,
                          std::vector<PlacementLesson>& lessons) const {
    const PlaceTimeline timeline = HONE_TRY(judge_.timeline(best_));
    std::vector<double> starts;
    for (uint32_t i = 0; i < best_.device.size(); ++i)
      starts.push_back(seconds_of(timeline.start(i)));
    PlacementLesson lesson = {.imitated = kCopied};
    if (place_by_steps(run_, view_, policy, said,
                       {.share = 0, .steps = &lesson.steps, .follow = &best_, .starts = starts}))
      lessons.push_back(std::move(lesson));
    return {};
  }

  const PlaceJudge& judge_;
  const PlacePolicy& policy_;
  const PlacementTuning& options_;
  const PlaceOptions place_options_;
  mutable PlaceRun run_;
  const PolicyView view_;
  PlacementSizes sizes_;
  const Trainer* trainer_ = nullptr;
  double share_ = 0;
  mutable DevicePlacement best_;
  mutable double value_ = kCannotRun;
};

}  // namespace

Result<TunedPlacement> tune_placement(const PlaceJudge& judge, const PlacePolicy& policy,
                                      const PlacementTuning& options) {
  if (options.steps < 1 || options.steps > kMostTuningSteps)
    return usage_error("a policy is tuned in 1 to {} steps, not {}", kMostTuningSteps,
                       options.steps);
  TuningGames games(judge, policy, options);
  const PlacementSizes& sizes = games.sizes();
  if (sizes.nodes * sizes.devices * sizes.plans > kMostChoices)
    return over_limit("a graph of {} nodes on {} devices is too large to tune the policy for",
                      judge.problem().nodes.size(), sizes.devices)
        .with_hint("the policy places it as it is, and 'guided' searches by it");
  HONE_TRY(games.begin());
  TunedPlacement tuned = {.policy = policy, .placement = {}, .before = games.value()};
  TrainingOptions training;
  training.loader = {.batch_size = 1, .shuffles = false};
  training.epochs = 1;
  training.seed = options.seed;
  training.update.clip_norm = 1;
  training.rate = cosine_rate(options.rate, 1, options.steps);
  training.compile = options.compile;
  training.on_step = [&](const StepResult& step) {
    if (options.told) options.told(step.step, games.value());
  };
  const Target here = HONE_TRY(host_target());
  Trainer trainer = HONE_TRY(Trainer::make(placement_objective, games, here, training));
  const std::vector<NamedTensor> known = policy.weights();
  HONE_TRY(trainer.begin_with(known));
  games.play_by(trainer);
  HONE_TRY(trainer.train());
  tuned.policy = HONE_TRY(PlacePolicy::make(trainer.weights()));
  tuned.placement = games.best();
  tuned.value = games.value();
  return tuned;
}

}  // namespace hone
