#include "front/onnx/ops/heads.h"

#include <cmath>
#include <limits>

#include "front/onnx/ops/indices.h"

namespace hone::onnx_io {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

double scale_of(Node& n, const Heads& h) {
  if (h.scale) return *h.scale;
  const Dim width = h.query.dim(3);
  if (!width.is_static() || width.is(0)) {
    n.bad("scale must be given for a head size of {}", width.to_string());
  }
  return 1 / std::sqrt(static_cast<double>(width.value()));
}

// Heads of the query per head of the keys.
Dim group_size(Node& n, const Heads& h) {
  const Dim heads = h.query.dim(1), kv_heads = h.key.dim(1);
  if (heads == kv_heads) return 1;
  const std::optional<Dim> group = n.divided(heads, kv_heads);
  if (!group) {
    n.bad("the {} heads of the query are not a multiple of the {} heads of the key",
          heads.to_string(), kv_heads.to_string());
  }
  return *group;
}

}  // namespace

int64_t head_count(Node& n, std::string_view attribute) {
  const int64_t heads = n.integer(attribute);
  if (heads < 1) n.bad("{} is {}, not at least 1", attribute, heads);
  return heads;
}

Value split_heads(Node& n, Value x, std::string_view what, int64_t heads) {
  n.require_rank(x, what, 3, 3);
  const std::optional<Dim> width = n.divided(x.dim(2), heads);
  if (!width)
    n.bad("{} is {}, whose last dim is not a multiple of {} heads", what, x.type().to_string(),
          heads);
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, *width}), {0, 2, 1, 3});
}

Value merge_heads(Value x) {
  return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)});
}

Value attend(Node& n, const Heads& h) {
  return n.builder().op(
      Opcode::attention, {h.query, h.key, h.value, h.mask},
      {{"scale", h.scale.value_or(0)}, {"causal", h.causal}, {"softcap", h.softcap}});
}

Value raw_scores(Node& n, const Heads& h) {
  const Dims dims = h.query.dims();
  const Dim group = group_size(n, h), kv_heads = h.key.dim(1);
  // The heads of a group stand one below the other.
  Value query = reshape(h.query, {dims[0], kv_heads, group * dims[2], dims[3]});
  Value scores = dot_general(query, h.key, {0, 1}, {0, 1}, {3}, {3});
  return reshape(scores, {dims[0], dims[1], dims[2], h.key.dim(2)}) * scale_of(n, h);
}

Value capped(Value scores, double softcap) {
  return softcap > 0 ? softcap * tanh(scores / softcap) : scores;
}

Value masked(Value scores, Value mask) {
  if (!mask) return scores;
  if (mask.dtype() != DType::boolean) return scores + mask;
  return select(mask, scores, scores.builder().scalar(scores.dtype(), kHidden));
}

Value weighted(Value probabilities, Value value) {
  const Dims dims = probabilities.dims();
  const Dim kv_heads = value.dim(1);
  const std::optional<Dim> group = dims[1].divided_by(kv_heads);
  Value rows = reshape(probabilities, {dims[0], kv_heads, group.value_or(1) * dims[2], dims[3]});
  Value y = dot_general(rows, value, {0, 1}, {0, 1}, {3}, {2});
  return reshape(y, {dims[0], dims[1], dims[2], value.dim(3)});
}

Value as_promised(Value x, int axis, Dim size) {
  const Dim own = x.dim(axis);
  if (own == size || (own.is_static() && size.is_static())) return x;
  return looked_up(x, iota(x.builder(), DType::i64, {size}, 0), axis < 0 ? axis + x.rank() : axis);
}

Value over_scores(Value mask, const Heads& h) {
  if (mask.rank() > 0 && !mask.dim(-1).is(1)) mask = as_promised(mask, -1, h.key.dim(2));
  if (mask.rank() > 1 && !mask.dim(-2).is(1)) mask = as_promised(mask, -2, h.query.dim(2));
  return mask;
}

// Keys of the past stand at -1, before all queries: symbolic lengths need no arithmetic on values.
Value causal_mask(Builder& b, Dim queries, Dim past, Dim fresh) {
  Value keys = iota(b, DType::i64, {fresh}, 0);
  if (!past.is(0)) keys = concat({b.full(DType::i64, {past}, -1), keys}, 0);
  return compare("ge", iota(b, DType::i64, {queries, 1}, 0), keys);
}

void set_causal(Node& n, Heads& h, Dim past) {
  const Dim queries = h.query.dim(2), fresh = h.key.dim(2) - past;
  h.causal = queries == fresh;
  if (!h.causal) {
    h.mask = only_visible(h.mask, causal_mask(n.builder(), queries, past, fresh));
  }
}

Value only_visible(Value mask, Value visible) {
  if (!mask) return visible;
  if (mask.dtype() == DType::boolean) return binary(Opcode::and_, mask, visible);
  return select(visible, mask, mask.builder().scalar(mask.dtype(), kHidden));
}

Value sees_any(Value mask) {
  if (mask.dtype() == DType::boolean) return reduce("or", mask, {-1}, true);
  return compare("ne", reduce_max(mask, {-1}, true), kHidden);
}

Value as_bias(Value visible, DType dtype, double hidden) {
  Builder& b = visible.builder();
  return select(visible, b.scalar(dtype, 0), b.scalar(dtype, hidden));
}

Value sum_of(Value mask, Value other) {
  if (!mask) return other;
  return other ? mask + other : mask;
}

Value with_past(Node& n, Value past, Value x, std::string_view what) {
  if (!past) return x;
  Dims want = x.dims();
  if (past.rank() == 4) want[2] = past.dim(2);
  if (past.type() != Type::get(x.dtype(), want)) {
    n.bad("{} is {}, does not go with {}", what, past.type().to_string(), x.type().to_string());
  }
  return concat({past, x}, 2);
}

Value rotated(Node& n, Value x, Value cos, Value sin, Value positions, bool interleaved) {
  if (cos.type() != sin.type()) {
    n.bad("cos_cache is {}, sin_cache {}", cos.type().to_string(), sin.type().to_string());
  }
  n.require_rank(cos, "cos_cache", positions ? 2 : 3, positions ? 2 : 3);
  if (positions) {
    n.require_rank(positions, "position_ids", 2, 2);
    positions = broadcast_to(positions, {x.dim(0), x.dim(2)});
    cos = looked_up(cos, positions, 0);
    sin = looked_up(sin, positions, 0);
  }
  const Dims dims = {x.dim(0), x.dim(2), cos.dim(2)};
  cos = broadcast_to(cast(cos, x.dtype()), dims);
  sin = broadcast_to(cast(sin, x.dtype()), dims);
  return n.builder().op(Opcode::rotary_embedding, {x, cos, sin}, {{"interleaved", interleaved}});
}

}  // namespace hone::onnx_io
