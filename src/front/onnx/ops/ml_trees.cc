#include <algorithm>

#include "front/onnx/ops/ml_forest.h"
#include "front/onnx/ops/ml_scores.h"
#include "front/onnx/registry.h"

// Ensembles of decision trees: ml_forest.h reads and walks them.

namespace hone::onnx_io {
namespace {

// One number per target, or none.
Value with_base(Node& n, Value scores, const std::vector<double>& base) {
  if (base.empty()) return scores;
  if (!scores.dim(1).is(static_cast<int64_t>(base.size())))
    n.unsupported("{} base values for {} scores", base.size(), scores.dim(1).to_string());
  const Type type = Type::get(scores.dtype(), {scores.dim(1)});
  return scores + n.builder().constant(Tensor::from_reals(type, base));
}

// Two classes of which one gets all votes: class 0 in most files, and its score is that of the
// second label. It wins above one half if no weight is negative, above zero else.
void out_one_sided(Node& n, const Forest& forest, const Ints& labels, Value x,
                   const std::vector<double>& base, ScoreTransform transform) {
  const int64_t target = forest.votes.front().target;
  Forest single = forest;
  single.targets = 1;
  for (Vote& vote : single.votes) vote.target = 0;
  if (target == 1 && !base.empty())
    n.unsupported("base values where the second class alone has votes");
  Value score = with_base(n, forest_scores(n, single, x).values, base);
  const bool is_share =
      std::ranges::all_of(forest.votes, [](const Vote& vote) { return vote.weight >= 0; });
  Value wins = cast(compare("gt", squeeze(score, 1), is_share ? 0.5 : 0.0), DType::i64);
  const OtherClass other = is_share ? OtherClass::complement : OtherClass::negative;
  Value scores = target == 0 ? with_other_class(n, score, other, transform)
                             : transformed(pad(score, {0, 1}, {0, 0}), transform);
  out_classes(n, labels, wins, scores);
}

bool votes_for_one(const Forest& forest) {
  if (forest.targets != 2 || forest.votes.empty()) return false;
  const int64_t first = forest.votes.front().target;
  return std::ranges::all_of(forest.votes, [&](const Vote& v) { return v.target == first; });
}

}  // namespace

void map_tree_ensemble_regressor(Node& n) {
  const Forest forest = read_numbered_forest(n, "target", n.integer("n_targets", 1));
  Value scores = forest_scores(n, forest, real_rows(n)).values;
  scores = with_base(n, scores, exact_reals(n, "base_values"));
  n.out(cast(transformed(scores, score_transform(n)), DType::f32));
}

// The top class, the first of equals. Classes that got no vote and have no base value do not count.
void map_tree_ensemble_classifier(Node& n) {
  const Ints labels = class_labels(n, "classlabels_int64s");
  const Forest forest = read_numbered_forest(n, "class", static_cast<int64_t>(labels.size()));
  const std::vector<double> base = exact_reals(n, "base_values");
  const ScoreTransform transform = score_transform(n);
  Value x = real_rows(n);
  if (votes_for_one(forest)) return out_one_sided(n, forest, labels, x, base, transform);
  const ForestScores scores = forest_scores(n, forest, x);
  Value values = with_base(n, scores.values, base), ranked = values;
  if (scores.has_votes && base.empty()) {
    Value never = n.builder().scalar(x.dtype(), -std::numeric_limits<double>::infinity());
    ranked = select(scores.has_votes, values, never);
  }
  out_classes(n, labels, argmax(ranked, 1), transformed(values, transform));
}

void map_tree_ensemble(Node& n) {
  const Forest forest = read_listed_forest(n);
  const int64_t transform = n.integer("post_transform", 0);
  if (transform < 0 || transform > 4) n.bad("post_transform is {}", transform);
  const DType dtype = n.in().dtype();
  if (!is_real(dtype)) n.bad("the operand is {}, must have reals", n.in().type().to_string());
  Value scores = forest_scores(n, forest, real_rows(n)).values;
  n.out(cast(transformed(scores, static_cast<ScoreTransform>(transform)), dtype));
}

}  // namespace hone::onnx_io
