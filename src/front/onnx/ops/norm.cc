#include <algorithm>

#include "front/onnx/ops/windows.h"
#include "front/onnx/registry.h"

// Normalizations.

namespace hone::onnx_io {
namespace {

Ints range(int64_t begin, int64_t end) {
  Ints result;
  for (int64_t i = begin; i < end; ++i) result.push_back(i);
  return result;
}

// The wider one of two real types.
DType wider(DType a, DType b) {
  if (a == b) return a;
  return a == DType::f64 || b == DType::f64 ? DType::f64 : DType::f32;
}

// ---- Batch --------------------------------------------------------------------------------------

// Statistics and parameters of a batch normalization. Each stands along the channels, or has the
// dims of one batch element where the op was told not to be spatial.
struct Batch {
  Value x, scale, bias, mean, variance;
  double epsilon = 0;
  bool spatial = true;

  Value laid(Value v) const {
    return v.rank() == 1 ? per_channel(v, x) : broadcast_to(v, x.dims());
  }
  // The axes of the statistics.
  Ints axes() const {
    Ints all = {0};
    for (int64_t i = 2; spatial && i < x.rank(); ++i) all.push_back(i);
    return all;
  }
  Value normalized() const {
    if (mean.rank() == 1 && variance.rank() == 1 && scale.rank() == 1 && bias.rank() == 1)
      return batch_norm(x, scale, bias, mean, variance, epsilon);
    return (x - laid(mean)) * laid(scale / sqrt(variance + epsilon)) + laid(bias);
  }
};

Batch read_batch(Node& n) {
  Batch b;
  b.x = n.in(0), b.scale = n.in(1), b.bias = n.in(2), b.mean = n.in(3), b.variance = n.in(4);
  b.epsilon = n.real("epsilon", 1e-5);
  if (n.version() < 9) b.spatial = n.flag("spatial", true);
  n.require_rank(b.x, "the input", 1);
  if (b.x.rank() == 1) b.x = unsqueeze(b.x, 1);  // the batch alone: one channel
  DType dtype = b.x.dtype();
  for (Value v : {b.scale, b.bias, b.mean, b.variance}) dtype = wider(dtype, v.dtype());
  for (Value* v : {&b.x, &b.scale, &b.bias, &b.mean, &b.variance}) {
    if (!is_real(v->dtype())) n.bad("an operand is {}", v->type().to_string());
    *v = cast(*v, dtype);
  }
  const int most = b.spatial ? 1 : b.x.rank() - 1;
  for (Value v : {b.scale, b.bias, b.mean, b.variance})
    n.require_rank(v, "a parameter of the normalization", 1, std::max(1, most));
  return b;
}

// In training mode the batch's own statistics normalize it; the running ones move towards them.
void train(Node& n, Batch b, double momentum, DType out, DType statistics) {
  const Value running_mean = b.mean, running_variance = b.variance;
  Value mean = reduce_mean(b.x, b.axes(), true);
  Value centered = b.x - mean;
  Value variance = reduce_mean(centered * centered, b.axes(), true);
  b.mean = reshape(mean, running_mean.dims());
  b.variance = reshape(variance, running_variance.dims());
  n.out(cast(reshape(b.normalized(), n.in(0).dims()), out));
  auto moved = [&](Value running, Value now) {
    return cast(running * momentum + now * (1 - momentum), statistics);
  };
  if (n.wants(1)) n.out(1, moved(running_mean, b.mean));
  if (n.wants(2)) n.out(2, moved(running_variance, b.variance));
  if (n.wants(3)) n.out(3, cast(b.mean, statistics));
  if (n.wants(4)) n.out(4, cast(b.variance, statistics));
}

bool trains(Node& n) {
  if (n.version() < 7) return !n.flag("is_test");
  if (n.version() >= 14) return n.flag("training_mode");
  return n.wants(1) || n.wants(2) || n.wants(3) || n.wants(4);
}

// ---- Layers -------------------------------------------------------------------------------------

// Stage one of LayerNormalization and its kin is computed in the stash type. A type that holds more
// than that type loses nothing: the composites compute in no less than 32 bits.
DType stage_one(Node& n, DType dtype) {
  const DType stash = n.dtype("stash_type", DType::f32);
  if (!is_real(stash)) n.bad("stash_type is {}", name(stash));
  return stash == DType::f32 ? dtype : stash;
}

bool covers(Value parameter, const Dims& inner) { return !parameter || parameter.dims() == inner; }

Value affine(Value x, Value scale, Value bias) {
  x = x * broadcast_to(scale, x.dims());
  return bias ? x + broadcast_to(bias, x.dims()) : x;
}

Value with_attributes(Opcode opcode, std::vector<Value> operands, int axis, double epsilon) {
  while (!operands.back()) operands.pop_back();
  return operands[0].builder().op(
      opcode, operands,
      {{"axis", int64_t{axis == operands[0].rank() - 1 ? -1 : axis}}, {"epsilon", epsilon}});
}

// The composite where its operands fit; otherwise stage one and, in x's own type, stage two.
Value normalized(Node& n, Opcode opcode, Value x, Value scale, Value bias, int axis, DType stage,
                 double epsilon) {
  const Dims dims = x.dims(), inner(dims.begin() + axis, dims.end());
  for (Value v : {scale, bias}) {
    if (v && v.dtype() != x.dtype())
      n.bad("a parameter is {}, the input is {}", v.type().to_string(), x.type().to_string());
  }
  if (stage == x.dtype() && covers(scale, inner) && covers(bias, inner)) {
    if (opcode == Opcode::rms_norm) return with_attributes(opcode, {x, scale}, axis, epsilon);
    return with_attributes(opcode, {x, scale, bias}, axis, epsilon);
  }
  Value y = with_attributes(opcode, {cast(x, stage)}, axis, epsilon);
  return affine(cast(y, x.dtype()), scale, bias);
}

// One number per group of channels as one per channel.
Value repeated(Node& n, Value v, Dim channels, int64_t groups) {
  n.require_rank(v, "scale and bias", 1, 1);
  const std::optional<Dim> size = n.divided(channels, groups);
  if (!size) n.bad("{} channels are not a multiple of {} groups", channels.to_string(), groups);
  if (!v.dim(0).is(groups))
    n.bad("scale and bias have {} entries for {} groups", v.dim(0).to_string(), groups);
  return reshape(broadcast(v, {groups, *size}, {0}), {channels});
}

}  // namespace

void map_batch_normalization(Node& n) {
  const Batch b = read_batch(n);
  const DType out = n.in(0).dtype(), statistics = n.in(3).dtype();
  if (n.version() < 6) n.ignore("consumed_inputs");
  const double momentum = n.real("momentum", 0.9);
  if (trains(n)) {
    train(n, b, momentum, out, statistics);
    return;
  }
  n.out(cast(reshape(b.normalized(), n.in(0).dims()), out));
  // Where nothing is trained, the statistics stay as they are.
  if (n.wants(1)) n.out(1, n.in(3));
  if (n.wants(2)) n.out(2, n.in(4));
  if (n.wants(3)) n.out(3, n.in(3));
  if (n.wants(4)) n.out(4, n.in(4));
}

void map_instance_normalization(Node& n) {
  if (n.version() < 6) n.ignore("consumed_inputs");
  n.require_rank(n.in(0), "the input", 3);
  n.out(n.builder().op(Opcode::instance_norm, {n.in(0), n.in(1), n.in(2)},
                       {{"epsilon", n.real("epsilon", 1e-5)}}));
}

void map_layer_normalization(Node& n) {
  Value x = n.in(0);
  n.require_rank(x, "the input", 1);
  const int axis = n.axis("axis", x.rank(), -1);
  const double epsilon = n.real("epsilon", 1e-5);
  const DType stage = stage_one(n, x.dtype()), stash = n.dtype("stash_type", DType::f32);
  n.out(normalized(n, Opcode::layer_norm, x, n.in(1), n.optional(2), axis, stage, epsilon));
  if (!n.wants(1) && !n.wants(2)) return;
  Value wide = cast(x, wider(stage, stash));
  Value mean = reduce_mean(wide, range(axis, x.rank()), true);
  if (n.wants(1)) n.out(1, cast(mean, stash));
  if (!n.wants(2)) return;
  Value centered = wide - mean;
  Value variance = reduce_mean(centered * centered, range(axis, x.rank()), true);
  n.out(2, cast(1 / sqrt(variance + epsilon), stash));
}

void map_rms_normalization(Node& n) {
  Value x = n.in(0);
  n.require_rank(x, "the input", 1);
  const int axis = n.axis("axis", x.rank(), -1);
  n.out(normalized(n, Opcode::rms_norm, x, n.in(1), Value(), axis, stage_one(n, x.dtype()),
                   n.real("epsilon", 1e-5)));
}

void map_group_normalization(Node& n) {
  Value x = n.in(0), scale = n.in(1), bias = n.in(2);
  n.require_rank(x, "the input", 2);
  const int64_t groups = n.integer("num_groups");
  if (groups < 1) n.bad("num_groups is {}, not at least 1", groups);
  const double epsilon = n.real("epsilon", 1e-5);
  DType stage = x.dtype();
  if (n.version() < 21) {
    scale = repeated(n, scale, x.dim(1), groups);
    bias = repeated(n, bias, x.dim(1), groups);
  } else {
    stage = stage_one(n, x.dtype());
  }
  if (stage == x.dtype()) {
    n.out(group_norm(x, scale, bias, groups, epsilon));
    return;
  }
  n.require_rank(scale, "the scale", 1, 1);
  n.require_rank(bias, "the bias", 1, 1);
  Builder& b = n.builder();
  Value y = group_norm(cast(x, stage), b.full(stage, {x.dim(1)}, 1), b.full(stage, {x.dim(1)}, 0),
                       groups, epsilon);
  n.out(cast(y, x.dtype()) * per_channel(scale, x) + per_channel(bias, x));
}

void map_lrn(Node& n) {
  Value x = n.in();
  n.require_rank(x, "the input", 2);
  int64_t size = n.integer("size");
  if (size < 1) n.bad("size is {}, not at least 1", size);
  double alpha = n.real("alpha", 1e-4);
  // Every window that long sees all channels.
  if (x.dim(1).is_static() && size > 2 * x.dim(1).value() + 1) {
    const int64_t all = 2 * x.dim(1).value() + 1;
    alpha *= static_cast<double>(all) / static_cast<double>(size);
    size = all;
  }
  n.out(n.builder().op(Opcode::lrn, {x},
                       {{"size", size},
                        {"alpha", alpha},
                        {"beta", n.real("beta", 0.75)},
                        {"bias", n.real("bias", 1)}}));
}

}  // namespace hone::onnx_io
