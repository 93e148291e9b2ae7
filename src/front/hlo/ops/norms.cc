#include "base/text.h"
#include "front/hlo/importer.h"

// Normalization of features by the mean and the variance of a batch.

namespace hone::hlo {
namespace {

// Types with few bits are computed in f32.
struct Features {
  Value x;
  int axis = 0;  // of the features
  Ints others;
  double epsilon = 0;

  Value spread(Value vector) const { return broadcast(vector, x.dims(), {axis}); }
  Value mean(Value of) const { return reduce_mean(of, others); }
  Value deviation(Value variance) const { return spread(sqrt(variance + epsilon)); }
};

DType norm_type(DType type) { return type == DType::f64 ? type : DType::f32; }

// The operand i as a vector of all features.
Value vector_of(Node& n, const Features& features, size_t i) {
  const Value v = n.in(i);
  if (v.rank() != 1) n.refuse(bad_input("operand {} must be a vector", i));
  n.make_equal(v.dim(0), features.x.dim(features.axis));
  return cast(v, features.x.dtype());
}

Features features_of(Node& n, size_t operands) {
  n.need(operands);
  const DType type = n.in().dtype();
  if (!is_real(type) || is_storage_only(type))
    n.refuse(unsupported("of {} is not handled", name(type)));
  Features made;
  made.x = cast(n.in(), norm_type(type));
  made.epsilon = n.real("epsilon", 0);
  const int64_t axis = n.integer("feature_index", -1);
  if (axis < 0 || axis >= made.x.rank())
    n.refuse(bad_input("dim {} is outside of rank {}", axis, made.x.rank()));
  made.axis = static_cast<int>(axis);
  for (int64_t i = 0; i < made.x.rank(); ++i)
    if (i != axis) made.others.push_back(i);
  return made;
}

}  // namespace

std::vector<Value> map_batch_norm_inference(Node& n) {
  const Features f = features_of(n, 5);
  const Value scale = vector_of(n, f, 1), offset = vector_of(n, f, 2);
  const Value mean = vector_of(n, f, 3), variance = vector_of(n, f, 4);
  const Value made = (f.x - f.spread(mean)) / f.deviation(variance);
  return {cast(made * f.spread(scale) + f.spread(offset), n.in().dtype())};
}

std::vector<Value> map_batch_norm_training(Node& n) {
  const Features f = features_of(n, 3);
  const Value scale = vector_of(n, f, 1), offset = vector_of(n, f, 2);
  const Value mean = f.mean(f.x);
  const Value centred = f.x - f.spread(mean);
  const Value variance = f.mean(centred * centred);
  const Value made = centred / f.deviation(variance) * f.spread(scale) + f.spread(offset);
  return {cast(made, n.in().dtype()), cast(mean, n.in(1).dtype()), cast(variance, n.in(1).dtype())};
}

// For the operand, the scale and the offset. The mean and the variance depend on the operand.
std::vector<Value> map_batch_norm_grad(Node& n) {
  const Features f = features_of(n, 5);
  if (n.in(4).type() != n.in(0).type())
    n.refuse(bad_input("the operand is {}, its gradient {}", n.in(0).type().to_string(),
                       n.in(4).type().to_string()));
  const Value scale = vector_of(n, f, 1), mean = vector_of(n, f, 2);
  const Value variance = vector_of(n, f, 3);
  const Value gradient = cast(n.in(4), f.x.dtype());
  const Value normal = (f.x - f.spread(mean)) / f.deviation(variance);
  const Value along = normal * f.spread(f.mean(gradient * normal));
  const Value of_x =
      (gradient - f.spread(f.mean(gradient)) - along) * f.spread(scale) / f.deviation(variance);
  return {cast(of_x, n.in(0).dtype()),
          cast(reduce_sum(gradient * normal, f.others), n.in(1).dtype()),
          cast(reduce_sum(gradient, f.others), n.in(1).dtype())};
}

}  // namespace hone::hlo
