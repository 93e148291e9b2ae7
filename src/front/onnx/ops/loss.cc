#include <optional>

#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

// Scores [batch, classes, d...] and the class of each place [batch, d...].
struct Problem {
  Value scores;
  Value target;
  Value is_target;  // [batch, classes, d...]: whether this is the place's class
  Value ignored;    // [batch, d...]: places without a loss; absent: none

  // For each place the number that belongs to its class; 0 where it has none.
  Value pick(Value numbers) const {
    Value zero = numbers.builder().scalar(numbers.dtype(), 0);
    return without_ignored(reduce_sum(select(is_target, numbers, zero), {1}));
  }
  Value without_ignored(Value v) const {
    return ignored ? select(ignored, v.builder().scalar(v.dtype(), 0), v) : v;
  }
};

Problem problem(Node& n) {
  Value scores = n.in(0), target = n.in(1);
  n.require_rank(scores, "the scores", 2);
  Dims places = scores.dims();
  places.erase(places.begin() + 1);
  if (target.dims() != places || !is_integer(target.dtype()))
    n.bad("the target is {}, for scores {} it must have integers and the dims {}",
          target.type().to_string(), scores.type().to_string(), to_string(AttrValue(places)));
  Dims classes(static_cast<size_t>(scores.rank()), 1);
  classes[1] = scores.dim(1);
  Value number = iota(n.builder(), target.dtype(), classes, 1);
  Problem p = {scores, target, compare("eq", unsqueeze(target, 1), number), Value()};
  if (n.has_attribute("ignore_index")) {
    Tensor index = Tensor::from_integers(Type::scalar(DType::i64), {{n.integer("ignore_index")}});
    p.ignored = compare("eq", cast(target, DType::i64), n.builder().constant(index));
  }
  return p;
}

// The weight of each place; absent if all count the same.
Value weights(Node& n, const Problem& p) {
  DType dtype = p.scores.dtype();
  if (!n.has(2))
    return p.ignored ? p.without_ignored(n.builder().full(dtype, p.target.dims(), 1)) : Value();
  Value by_class = n.in(2);
  if (by_class.rank() != 1 || !(by_class.dim(0) == p.scores.dim(1)))
    n.bad("the weights are {}, must be one for each of {} classes", by_class.type().to_string(),
          p.scores.dim(1).to_string());
  Dims dims(static_cast<size_t>(p.scores.rank()), 1);
  dims[1] = by_class.dim(0);
  return p.pick(reshape(by_class, dims));
}

// The loss of places whose logarithms of probabilities are given, reduced as the node says.
Value likelihood_loss(Node& n, const Problem& p, Value log_probabilities) {
  std::string reduction = n.word("reduction", "mean");
  Value loss = -p.pick(log_probabilities), weight = weights(n, p);
  if (weight) loss = loss * weight;
  if (reduction == "none") return loss;
  Ints axes(static_cast<size_t>(loss.rank()));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  if (reduction == "sum") return reduce_sum(loss, axes);
  if (reduction != "mean") n.bad("reduction is '{}', must be none, sum or mean", reduction);
  if (!weight) return reduce_mean(loss, axes);
  return reduce_sum(loss, axes) / reduce_sum(weight, axes);
}

}  // namespace

void map_negative_log_likelihood_loss(Node& n) {
  Problem p = problem(n);
  n.out(likelihood_loss(n, p, p.scores));
}

void map_softmax_cross_entropy_loss(Node& n) {
  Problem p = problem(n);
  Value log_probabilities = log_softmax(p.scores, 1);
  n.out(likelihood_loss(n, p, log_probabilities));
  if (n.wants(1)) n.out(1, log_probabilities);
}

}  // namespace hone::onnx_io
