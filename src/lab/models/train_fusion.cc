#include "lab/models/train_fusion.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/text_table.h"
#include "lab/models/placement_lessons.h"
#include "learn/layers.h"
#include "learn/trainer.h"
#include "place/generate.h"

namespace hone {
namespace {

constexpr int64_t kWalkTrials = 300;         // of the placements that are copied
constexpr double kLeastFusionSpread = 0.01;  // of logarithms of values: less is a tie
constexpr int64_t kFusionLines = 20;

// The problem of a sample: seen families, with fusions.
PlaceProblem drawn_problem(int64_t nodes, bool is_held_out, Rng& rng) {
  for (;;) {
    DrawnPlace drawn = draw_place(nodes, is_held_out, rng);
    drawn.has_fusions = true;
    drawn.goal = PlaceGoal::step;
    PlaceProblem problem = make_place(drawn, rng);
    if (!problem.fusions.empty()) return problem;
  }
}

// Sets of fusions, and how much each is to become likelier.
struct FusionLesson {
  std::vector<uint8_t> fused;
  double weight = 0;
};

class FusionGames : public Dataset {
 public:
  FusionGames(const PlacePolicy& policy, const FusionTraining& options)
      : policy_(policy), options_(options) {}

  void play_by(const Trainer& trainer) { trainer_ = &trainer; }
  int64_t size() const override { return options_.steps; }

  Result<Batch> batch(std::span<const int64_t> samples, int64_t /*bucket*/) const override {
    Rng rng(hash_combine(options_.seed, hash_combine(77, static_cast<uint64_t>(samples[0]))));
    for (;;) {
      const PlaceProblem problem = drawn_problem(options_.nodes, false, rng);
      const PlaceJudge judge(problem);
      const PlaceOptions options = {.seconds = 1e9, .trials = INT64_MAX};
      PlaceRun run(judge, options);
      const PolicyView view(run);
      const std::vector<float> features = fusion_features(run, view, policy_.look(view));
      const bool copies =
          static_cast<double>(samples[0]) < options_.imitated * static_cast<double>(options_.steps);
      const std::vector<FusionLesson> lessons =
          copies ? copied(problem, rng) : HONE_TRY(sampled(problem, features, rng));
      if (!lessons.empty()) return batch_of(problem, features, lessons);
    }
  }

 private:
  std::vector<FusionLesson> copied(const PlaceProblem& problem, Rng& rng) const {
    JointOptions options;
    options.trials = kWalkTrials;
    options.seed = rng.next();
    const std::vector<uint8_t> all(problem.fusions.size(), 1);
    const std::optional<JointPlacement> start = quick_joint(problem, all, options, "heft");
    if (!start) return {};
    JointPlacement best = walk_jointly(problem, *start, {true, true, true}, options);
    return {{std::move(best.fused), 1.0}};
  }

  Result<std::vector<FusionLesson>> sampled(const PlaceProblem& problem,
                                            std::span<const float> features, Rng& rng) const {
    std::vector<float> logits(problem.fusions.size());
    if (trainer_ != nullptr) {
      const FusionHead head = HONE_TRY(FusionHead::make(trainer_->weights()));
      logits = head.logits(features);
    }
    std::vector<FusionLesson> lessons;
    double sum = 0, squares = 0;
    for (int64_t p = 0; p < options_.plans; ++p) {
      FusionLesson lesson;
      for (const float logit : logits)
        lesson.fused.push_back(rng.uniform() < 1 / (1 + std::exp(-double{logit})) ? 1 : 0);
      JointOptions options;
      options.trials = 1;
      const std::optional<JointPlacement> made =
          quick_joint(problem, lesson.fused, options, "heft");
      if (!made || made->value <= 0) continue;
      lesson.weight = -std::log(made->value);
      sum += lesson.weight;
      lessons.push_back(std::move(lesson));
    }
    const auto count = static_cast<double>(std::max<size_t>(lessons.size(), 1));
    for (FusionLesson& lesson : lessons) {
      lesson.weight -= sum / count;
      squares += lesson.weight * lesson.weight;
    }
    const double spread = std::max(std::sqrt(squares / count), kLeastFusionSpread);
    for (FusionLesson& lesson : lessons)
      lesson.weight = std::clamp(lesson.weight / spread, -3.0, 3.0);
    return lessons;
  }

  // Padded: fusions that are not there have no weight.
  Result<Batch> batch_of(const PlaceProblem& problem, std::span<const float> features,
                         std::span<const FusionLesson> lessons) const {
    const auto most = static_cast<size_t>(options_.nodes),
               plans = static_cast<size_t>(options_.plans);
    const size_t count = problem.fusions.size();
    HONE_CHECK(count <= most && lessons.size() <= plans, "{} fusions of {} nodes", count, most);
    std::vector<float> all(most * FusionHead::kFeatures), wanted(plans * most),
        weight(plans * most);
    std::ranges::copy(features, all.begin());
    for (size_t p = 0; p < lessons.size(); ++p)
      for (size_t k = 0; k < count; ++k) {
        wanted[p * most + k] = static_cast<float>(lessons[p].fused[k]);
        weight[p * most + k] =
            static_cast<float>(lessons[p].weight / static_cast<double>(count * lessons.size()));
      }
    const auto tensor = [](std::vector<float>& values, int64_t rows, int64_t columns) {
      return Tensor::of(Type::get(DType::f32, {rows, columns}), std::span<const float>(values));
    };
    Batch batch;
    batch["features"] = tensor(all, options_.nodes, static_cast<int64_t>(FusionHead::kFeatures));
    batch["wanted"] = tensor(wanted, options_.plans, options_.nodes);
    batch["weight"] = tensor(weight, options_.plans, options_.nodes);
    return batch;
  }

  const PlacePolicy& policy_;
  const FusionTraining& options_;
  const Trainer* trainer_ = nullptr;
};

// -log of the probability of each set, by its weight: what is to be likelier has a weight above 0.
Objective fusion_objective(Network& net) {
  const Value hidden =
      relu(linear(net, "fusion", net.input("features"), static_cast<int64_t>(FusionHead::kHidden)));
  const Value logit = squeeze(linear(net, "pays", hidden, 1), 1);  // [fusions]
  const Value softplus = maximum(logit, 0.0) + log(exp(minimum(logit, -logit)) + 1.0);
  const Value wanted = net.input("wanted");
  const Value unlikely = softplus - wanted * logit;
  const Value loss = reduce_sum(unlikely * net.input("weight"), {0, 1});
  return {loss, {{"loss", loss}}};
}

}  // namespace

Result<std::vector<NamedTensor>> train_fusion(const PlacePolicy& policy,
                                              const FusionTraining& options) {
  if (options.steps < 1) return usage_error("training takes at least one step");
  FusionGames games(policy, options);
  TrainingOptions training = trained_by_problems(options);
  const int64_t line = std::max<int64_t>(options.steps / kFusionLines, 1);
  double sum = 0;
  training.on_step = [&](const StepResult& step) {
    sum += step.loss / static_cast<double>(line);
    if (step.step % line != 0 || !options.told) return;
    options.told(fmt::format("step {} of {}: loss {:.3f}", step.step, options.steps, sum));
    sum = 0;
  };
  const Target here = HONE_TRY(host_target());
  Trainer trainer = HONE_TRY(Trainer::make(fusion_objective, games, here, training));
  games.play_by(trainer);
  if (!options.folder.empty()) HONE_TRY(trainer.resume());
  HONE_TRY(trainer.train());
  return trainer.weights();
}

// ---- Judging -----------------------------------------------------------------------------------

Result<std::vector<JointVerdicts>> judge_joint(const PlacePolicy& policy, const FusionHead* head,
                                               const JointTrial& options) {
  std::vector<JointVerdicts> verdicts;
  for (const bool is_held_out : {false, true}) {
    JointVerdicts all = {is_held_out ? "held out" : "seen"};
    for (int64_t g = 0; g < options.graphs; ++g) {
      if (options.cancel != nullptr) HONE_TRY(options.cancel->check());
      Rng rng(hash_combine(options.seed, ~static_cast<uint64_t>(2 * g + (is_held_out ? 1 : 0))));
      const PlaceProblem problem = drawn_problem(options.nodes, is_held_out, rng);
      const Result<std::vector<JointRow>> rows = joint_rows(problem, {.trials = options.trials,
                                                                      .seed = options.seed,
                                                                      .policy = &policy,
                                                                      .head = head,
                                                                      .cancel = options.cancel});
      if (!rows.ok() && rows.error().code() == ErrorCode::limit) continue;
      if (!rows.ok()) return rows.error();
      ++all.count;
      all.rows.resize(rows->size());
      const auto value_of = [&](std::string_view name) {
        return std::ranges::find(*rows, name, &JointRow::name)->value;
      };
      for (size_t r = 0; r < rows->size(); ++r) {
        all.rows[r].row = (*rows)[r].name;
        all.rows[r].over_default += std::log((*rows)[r].value / value_of(kDefaultRow));
        all.rows[r].over_stages += std::log((*rows)[r].value / value_of(kStagesRow));
      }
    }
    const auto count = static_cast<double>(std::max<int64_t>(all.count, 1));
    for (JointVerdict& row : all.rows) {
      row.over_default = std::exp(row.over_default / count);
      row.over_stages = std::exp(row.over_stages / count);
    }
    verdicts.push_back(std::move(all));
  }
  return verdicts;
}

std::string verdicts_text(const std::vector<JointVerdicts>& verdicts) {
  TextTable table("llrr", {"graphs", "decided", "over default", "over one after another"});
  for (const JointVerdicts& all : verdicts)
    for (const JointVerdict& row : all.rows)
      table.add_row(
          {fmt::format("{} {}", all.count, all.problems), std::string(row.row),
           std::isfinite(row.over_default) ? fmt::format("{:.3f}", row.over_default) : "-",
           std::isfinite(row.over_stages) ? fmt::format("{:.3f}", row.over_stages) : "-"});
  return table.to_string();
}

}  // namespace hone
