#include "lab/models/train_placement.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "lab/models/placement_lessons.h"
#include "place/sort_by.h"
#include "place/text.h"

namespace hone {
namespace {

constexpr int64_t kTeacherTrials = 300;
constexpr double kLeastSpread = 0.02;  // of logarithms of values: less is a tie
constexpr int64_t kLinesOfTraining = 40;

// A policy that knows nothing: for the types of the first batch, before there are weights.
PlacePolicy empty_policy() {
  std::vector<NamedTensor> weights;
  for (const auto& [name, dims] : PlacePolicy::shapes()) {
    Dims all;
    for (const int64_t dim : dims) all.push_back(dim);
    weights.push_back({name, Tensor::zeros(Type::get(DType::f32, all))});
  }
  return PlacePolicy::make(weights).value();
}

// Each sample is a drawn problem with placements of it. They depend on the policy as it
// is when the sample is asked for.
class PlacementGames : public Dataset {
 public:
  explicit PlacementGames(const PlacementTraining& options) : options_(options) {}

  void play_by(const Trainer& trainer) { trainer_ = &trainer; }
  // The mean logarithm of how much slower samples are than the best rival, since it was asked.
  double take_slowness() const {
    const double mean = count_ > 0 ? slowness_ / static_cast<double>(count_) : 0;
    slowness_ = 0;
    count_ = 0;
    return mean;
  }

  int64_t size() const override { return options_.steps; }

  Result<Batch> batch(std::span<const int64_t> samples, int64_t /*bucket*/) const override {
    const int64_t sample = samples[0];
    Rng rng(hash_combine(options_.seed, static_cast<uint64_t>(sample)));
    for (;;) {
      const DrawnPlace drawn = draw_place(options_.sizes.nodes, false, rng, options_.sizes.devices);
      const Result<PlaceProblem> posed = pose(drawn, rng);
      if (!posed.ok() && posed.error().code() != ErrorCode::limit) return posed.error();
      if (!posed.ok()) continue;
      const PlaceProblem& problem = *posed;
      size_t uses = 0;
      for (const PlaceTensor& tensor : problem.tensors) uses += tensor.users.size();
      if (std::cmp_greater(uses, options_.sizes.edges)) continue;
      Result<Batch> made = game(problem, drawn.goal, sample, rng);
      if (made.ok() || made.error().code() != ErrorCode::limit) return made;
    }
  }

 private:
  Result<PlaceProblem> pose(const DrawnPlace& drawn, Rng& rng) const {
    if (options_.graphs.empty() || rng.chance(0.5)) return make_place(drawn, rng);
    return place_on_drawn(rng.pick(options_.graphs), drawn, rng);
  }

  bool copies(int64_t sample) const {
    return static_cast<double>(sample) < options_.imitated * static_cast<double>(options_.steps);
  }

  // The best that quick rivals find; with some annealing behind them if it is to be copied.
  Result<PlaceResult> teacher(const PlaceJudge& judge, PlaceGoal goal, bool is_copied,
                              uint64_t seed) const {
    std::optional<PlaceResult> best;
    std::optional<Error> failed;
    const auto take = [&](std::string_view by, int64_t trials) {
      PlaceOptions options = {
          .goal = goal, .by = std::string(by), .seconds = 1e9, .trials = trials, .seed = seed};
      if (best) options.start = best->placement;
      Result<PlaceResult> found = place(judge, options);
      if (!found.ok())
        failed = found.error();
      else if (!best || found->value < best->value)
        best = *std::move(found);
    };
    for (const std::string_view by : {"contiguous", "heft", "critical", "etf"})
      if (is_copied || by != "etf") take(by, kTeacherTrials);
    if (is_copied && best)
      take("annealing", goal == PlaceGoal::load ? 10 * kTeacherTrials : kTeacherTrials);
    if (!best) return *failed;
    return *std::move(best);
  }

  Result<Batch> game(const PlaceProblem& problem, PlaceGoal goal, int64_t sample, Rng& rng) const {
    const PlaceJudge judge(problem);
    const PlaceResult best = HONE_TRY(teacher(judge, goal, copies(sample), rng.next()));
    DevicePlacement wanted = in_order_of_use(judge, best.placement);
    if (judge.value(wanted, goal) > best.value * (1 + kLeastSpread)) wanted = best.placement;
    const PlaceOptions options = {.goal = goal, .seconds = 1e9, .trials = INT64_MAX};
    PlaceRun run(judge, options);
    const PolicyView view(run);
    const PlacePolicy policy =
        trainer_ != nullptr ? HONE_TRY(PlacePolicy::make(trainer_->weights())) : empty_policy();
    const PlacePolicy::Said said = policy.look(view);
    std::vector<PlacementLesson> lessons;
    if (copies(sample))
      HONE_TRY(add_copied(run, judge, view, policy, said, wanted, lessons));
    else
      add_sampled(run, view, policy, said, best.value, rng, wanted, lessons);
    std::vector<uint32_t> target;
    for (const uint32_t node : view.node_of) target.push_back(view.rank_of[wanted.device[node]]);
    return placement_batch(view, options_.sizes, lessons, target);
  }

  static Status add_copied(PlaceRun& run, const PlaceJudge& judge, const PolicyView& view,
                           const PlacePolicy& policy, const PlacePolicy::Said& said,
                           const DevicePlacement& wanted, std::vector<PlacementLesson>& lessons) {
    const PlaceTimeline timeline = HONE_TRY(judge.timeline(wanted));
    std::vector<double> starts;
    for (uint32_t i = 0; i < wanted.device.size(); ++i)
      starts.push_back(seconds_of(timeline.start(i)));
    PlacementLesson lesson = {.imitated = 1};
    if (place_by_steps(run, view, policy, said,
                       {.share = 0, .steps = &lesson.steps, .follow = &wanted, .starts = starts}))
      lessons.push_back(std::move(lesson));
    return {};
  }

  void add_sampled(PlaceRun& run, const PolicyView& view, const PlacePolicy& policy,
                   const PlacePolicy::Said& said, double best, Rng& rng, DevicePlacement& wanted,
                   std::vector<PlacementLesson>& lessons) const {
    SampledPlacements sampled =
        sample_placements(run, view, policy, said, options_.sizes.plans, best, 1, rng);
    double least = best;
    for (size_t p = 0; p < sampled.values.size(); ++p) {
      const double value = sampled.values[p];
      if (value < least) {
        least = value;
        wanted = in_order_of_use(run.judge(), sampled.placements[p]);
        if (run.judged(wanted) > value * (1 + kLeastSpread)) wanted = sampled.placements[p];
      }
      if (value == kCannotRun) continue;
      slowness_ += std::log(value / best);
      ++count_;
    }
    lessons = std::move(sampled.lessons);
  }

  const PlacementTraining& options_;
  const Trainer* trainer_ = nullptr;
  mutable double slowness_ = 0;  // only told, never learned from
  mutable int64_t count_ = 0;
};

// Checkpoints know the seed and refuse another one. Other graphs, weights and sizes count as
// another seed, so that training goes on with its own lessons alone.
uint64_t seed_of_lessons(const PlacementTraining& options) {
  const PlacementSizes usual;
  const PlacementSizes& sizes = options.sizes;
  const bool is_usual = options.graphs.empty() && options.first_weights.empty() &&
                        sizes.nodes == usual.nodes && sizes.devices == usual.devices;
  if (is_usual) return options.seed;
  Hasher hasher;
  hasher.add(std::to_string(sizes.nodes)).add(std::to_string(sizes.devices));
  for (const PlaceProblem& graph : options.graphs) hasher.add(print(graph));
  for (const NamedTensor& weight : options.first_weights) hasher.add(weight.tensor.bytes());
  return hash_combine(options.seed, hasher.value());
}

}  // namespace

DevicePlacement in_order_of_use(const PlaceJudge& judge, const DevicePlacement& placement) {
  for (const PlaceNode& node : judge.problem().nodes)
    if (node.pinned != kAnywhere) return placement;
  const std::vector<PlaceDevice>& devices = judge.devices();
  std::vector<double> sum(devices.size()), count(devices.size());
  for (size_t k = 0; k < judge.order().size(); ++k) {
    const uint32_t device = placement.device[judge.order()[k]];
    sum[device] += static_cast<double>(k);
    ++count[device];
  }
  std::vector<uint32_t> becomes(devices.size());
  std::vector<bool> done(devices.size());
  for (uint32_t d = 0; d < devices.size(); ++d) {
    if (done[d]) continue;
    std::vector<uint32_t> alike;
    for (uint32_t other = d; other < devices.size(); ++other)
      if (devices[other] == devices[d]) alike.push_back(other), done[other] = true;
    std::vector<uint32_t> by_use = alike;
    sort_by(by_use, [&](uint32_t one) {
      return count[one] > 0 ? sum[one] / count[one] : static_cast<double>(judge.order().size());
    });
    for (size_t k = 0; k < alike.size(); ++k) becomes[by_use[k]] = alike[k];
  }
  DevicePlacement moved = placement;
  for (uint32_t& device : moved.device) device = becomes[device];
  return moved;
}

Result<std::vector<NamedTensor>> train_placement(const PlacementTraining& options) {
  if (options.steps < 1) return usage_error("training takes at least one step");
  PlacementGames games(options);
  TrainingOptions training = trained_by_problems(options);
  training.seed = seed_of_lessons(options);
  const int64_t line = std::max<int64_t>(options.steps / kLinesOfTraining, 1);
  double once = 0, copied = 0;
  training.on_step = [&](const StepResult& step) {
    once += step.metrics[0].second / static_cast<double>(line);
    copied += step.metrics[1].second / static_cast<double>(line);
    if (step.step % line != 0 || !options.told) return;
    const double slower = 100 * (std::exp(games.take_slowness()) - 1);
    options.told(
        fmt::format("step {} of {}: once {:.3f}, copied {:.3f}, samples {:.2f} % slower "
                    "than quick rivals",
                    step.step, options.steps, once, copied, slower));
    once = copied = 0;
  };
  const Target here = HONE_TRY(host_target());
  Trainer trainer = HONE_TRY(Trainer::make(placement_objective, games, here, training));
  if (!options.first_weights.empty()) HONE_TRY(trainer.begin_with(options.first_weights));
  games.play_by(trainer);
  if (!options.folder.empty()) HONE_TRY(trainer.resume());
  HONE_TRY(trainer.train());
  return trainer.weights();
}

}  // namespace hone
