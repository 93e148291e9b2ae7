#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Normalizations as ONNX Runtime's fusions write them.

namespace hone::onnx_io {
namespace {

// x + skip + bias; skip may lack the batch or have it once.
Value summed(Node& n, Value x, Value skip, Value bias) {
  n.require_rank(x, "the input", 2);
  n.require_rank(skip, "skip", 1, x.rank());
  Value sum = x + broadcast_to(skip, x.dims());
  if (!bias) return sum;
  n.require_rank(bias, "the bias", 1, 1);
  return sum + bias;
}

// Statistics that training stores are not made.
void skip_norm(Node& n, Value sum, Value normalized) {
  n.out(0, normalized);
  if (n.wants(3)) n.out(3, sum);
}

Value layer_norm_of(Node& n, Value x, Value scale, Value bias, double epsilon) {
  std::vector<Value> operands = {x, scale};
  if (bias) operands.push_back(bias);
  return n.builder().op(Opcode::layer_norm, operands,
                        {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
}

}  // namespace

void map_simplified_layer_normalization(Node& n) {
  Value x = n.in(0), scale = n.in(1);
  n.require_rank(x, "the input", 1);
  const int axis = n.axis("axis", x.rank(), -1);
  const double epsilon = n.real("epsilon", 1e-5);
  const DType stash = n.dtype("stash_type", DType::f32);
  if (!is_real(stash)) n.bad("stash_type is {}, want reals", name(stash));
  // The scale may have a type of its own, which is the result's.
  const DType result = scale.dtype();
  const DType inner = result == x.dtype() ? x.dtype() : stash;
  n.out(0, cast(rms_norm(cast(x, inner), cast(scale, inner), axis, epsilon), result));
  if (!n.wants(1)) return;
  Ints axes;
  for (int64_t i = axis; i < x.rank(); ++i) axes.push_back(i);
  Value wide = cast(x, stash);
  n.out(1, rsqrt(reduce_mean(wide * wide, axes, true) + epsilon));
}

void map_skip_layer_normalization(Node& n) {
  Value sum = summed(n, n.in(0), n.in(1), n.optional(4));
  skip_norm(n, sum, layer_norm_of(n, sum, n.in(2), n.optional(3), n.real("epsilon", 1e-12)));
}

void map_skip_simplified_layer_normalization(Node& n) {
  Value sum = summed(n, n.in(0), n.in(1), n.optional(3));
  skip_norm(n, sum, rms_norm(sum, n.in(2), -1, n.real("epsilon", 1e-12)));
}

namespace {

// Rows of a table; a table without ids takes its first rows, one per position.
Value positions_of(Node& n, Value table, Value ids, Dim length) {
  n.require_rank(table, "position_embedding", 2, 2);
  if (ids) return looked_up(table, ids, 0);
  if (!provably_le(length, table.dim(0))) {
    n.bad("{} positions, position_embedding has {}", length.to_string(), table.dim(0).to_string());
  }
  return slice(table, 0, 0, length);
}

}  // namespace

void map_embed_layer_normalization(Node& n) {
  Value ids = n.in(0), words = n.in(2), segments = n.optional(4);
  n.require_rank(ids, "input_ids", 2, 2);
  n.require_rank(words, "word_embedding", 2, 2);
  n.ignore("mask_index_type");
  Value sum = looked_up(words, ids, 0) + positions_of(n, n.in(3), n.optional(8), ids.dim(1));
  if (segments) {
    n.require_rank(segments, "segment_embedding", 2, 2);
    sum = sum + looked_up(segments, n.in(1), 0);
  }
  n.out(0, layer_norm_of(n, sum, n.in(5), n.in(6), n.real("epsilon", 1e-12)));
  if (n.wants(1)) {
    // How many positions of each sequence are not masked.
    Value mask = n.optional(7);
    n.out(1, mask ? reduce_sum(cast(compare("eq", mask, 1), DType::i32), {1})
                  : n.builder().full(DType::i32, {ids.dim(0)}, 0));
  }
  if (n.wants(2)) n.out(2, sum);
}

namespace {

// Channels last or second; the parameters may have a wider type than the input.
Value grouped_norm(Node& n, Value x, Value scale, Value bias) {
  n.require_rank(x, "the input", 3);
  const bool last = n.flag("channels_last", true);
  const int64_t groups = n.integer("groups"), activation = n.integer("activation");
  if (groups < 1) n.bad("groups is {}, not at least 1", groups);
  if (activation != 0 && activation != 1) n.bad("activation is {}, want 0 or 1", activation);
  Ints first = {0, x.rank() - 1}, back = {0};
  for (int64_t i = 1; i + 1 < x.rank(); ++i) first.push_back(i), back.push_back(i + 1);
  back.push_back(1);
  const DType dtype = x.dtype();
  x = cast(last ? transpose(x, first) : x, scale.dtype());
  Value y = group_norm(x, scale, bias, groups, n.real("epsilon", 1e-5));
  if (activation == 1) y = silu(y);
  return cast(last ? transpose(y, back) : y, dtype);
}

}  // namespace

void map_contributed_group_norm(Node& n) { n.out(grouped_norm(n, n.in(0), n.in(1), n.in(2))); }

// The channels of skip and bias stand as those of x do.
void map_skip_group_norm(Node& n) {
  Value x = n.in(0), skip = n.in(3), bias = n.optional(4);
  n.require_rank(x, "the input", 4, 4);
  const bool last = n.flag("channels_last", true);
  // One skip per image and channel.
  if (skip.rank() == 2) {
    skip = last ? reshape(skip, {skip.dim(0), 1, 1, skip.dim(1)})
                : reshape(skip, {skip.dim(0), skip.dim(1), 1, 1});
  }
  Value sum = x + broadcast_to(skip, x.dims());
  if (bias) {
    n.require_rank(bias, "the bias", 1, 1);
    sum = sum + broadcast(bias, x.dims(), {last ? 3 : 1});
  }
  n.out(0, grouped_norm(n, sum, n.in(1), n.in(2)));
  if (n.wants(1)) n.out(1, sum);
}

}  // namespace hone::onnx_io
