#include <cmath>
#include <limits>

#include "ir/composites/expansion.h"
#include "tensor/demand.h"

// Attention and rotary position embedding.

namespace hone {
namespace {

using In = std::span<const Value>;

// ---- Attention ----------------------------------------------------------------------------------

struct Parts {
  Value query, key, value, mask;
  Dim batch, heads, kv_heads, queries, keys;
  Dim group;  // query heads per key head
};

bool check_past(Builder& b, std::string_view name, Value past, Value present) {
  if (!past || !present) {
    b.fail(bad_input("past_key and past_value must be given together"));
    return false;
  }
  return need_rank(b, name, past, 4, "[batch, heads, past length, dim]") &&
         need_type(b, name, past, present.dtype(), with_dim(present.dims(), 2, past.dim(2)));
}

bool check_heads(Builder& b, Value q, Value k, Value v) {
  const std::string_view layout = "[batch, heads, length, dim]";
  if (!need_rank(b, "query", q, 4, layout) || !need_rank(b, "key", k, 4, layout) ||
      !need_rank(b, "value", v, 4, layout)) {
    return false;
  }
  if (k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
    b.fail(bad_input("query, key and value are {}, {} and {}, want one element type",
                     name(q.dtype()), name(k.dtype()), name(v.dtype())));
    return false;
  }
  const DType dtype = q.dtype();
  return need_type(b, "key", k, dtype, {q.dim(0), k.dim(1), k.dim(2), q.dim(3)}) &&
         need_type(b, "value", v, dtype, {q.dim(0), k.dim(1), k.dim(2), v.dim(3)});
}

// The number of query heads that share a key head.
std::optional<Dim> group_size(Builder& b, Dim heads, Dim kv_heads) {
  if (heads == kv_heads) return Dim(1);
  std::optional<Dim> group;
  if (kv_heads.is_static() && kv_heads.value() > 0) group = heads.divided_by(kv_heads);
  if (!group) {
    demand(Demand::Kind::multiple, heads, kv_heads);
    b.fail(bad_input("the {} heads of the query are not divisible by the {} heads of the key",
                     heads.to_string(), kv_heads.to_string()));
  }
  return group;
}

std::optional<Parts> checked_parts(Builder& b, In in, Value& present_key, Value& present_value) {
  Parts p{in[0], in[1], in[2], operand_or_none(in, 3), 0, 0, 0, 0, 0, 0};
  if (!check_heads(b, p.query, p.key, p.value)) return std::nullopt;
  Value past_key = operand_or_none(in, 4), past_value = operand_or_none(in, 5);
  if (past_key || past_value) {
    if (!check_past(b, "past_key", past_key, p.key) ||
        !check_past(b, "past_value", past_value, p.value) ||
        !need_type(b, "past_value", past_value, p.value.dtype(),
                   with_dim(p.value.dims(), 2, past_key.dim(2)))) {
      return std::nullopt;
    }
    p.key = present_key = concat({past_key, p.key}, 2);
    p.value = present_value = concat({past_value, p.value}, 2);
  }
  p.batch = p.query.dim(0), p.heads = p.query.dim(1), p.kv_heads = p.key.dim(1);
  p.queries = p.query.dim(2), p.keys = p.key.dim(2);
  const std::optional<Dim> group = group_size(b, p.heads, p.kv_heads);
  if (!group) return std::nullopt;
  p.group = *group;
  const Dims scores = {p.batch, p.heads, p.queries, p.keys};
  if (!need_broadcastable(b, "mask", p.mask, scores)) return std::nullopt;
  if (p.mask && p.mask.dtype() != DType::boolean && p.mask.dtype() != p.query.dtype()) {
    b.fail(
        bad_input("mask is {}, want bool or {}", p.mask.type().to_string(), name(p.query.dtype())));
    return std::nullopt;
  }
  return p;
}

// True where key j <= i + keys - queries. Both are counted from the end, so that symbolic lengths
// need no arithmetic on values: keys - 1 - j >= queries - 1 - i.
Value causal_mask(Builder& b, Dim queries, Dim keys) {
  const Dims dims = {queries, keys};
  Value key_from_end = reverse(iota(b, DType::i64, dims, 1), {1});
  Value query_from_end = reverse(iota(b, DType::i64, dims, 0), {0});
  return compare("ge", key_from_end, query_from_end);
}

Value softmax_of(Value x) {
  Value e = exp(x - reduce_max(x, {-1}, true));
  return e / reduce_sum(e, {-1}, true);
}

// Over the dims of a group's scores: [batch, heads, ...], or [batch, key heads, group, ...] where
// several query heads share a key head. Nothing between both products moves an element then.
Value over_groups(Value x, const Parts& p) {
  if (p.group.is(1)) return x;
  return reshape(x, {p.batch, p.kv_heads, p.group, x.dim(2), x.dim(3)});
}

// A mask that broadcasts to [batch, heads, queries, keys], over the dims of a group's scores.
Value mask_over_groups(Value mask, const Parts& p) {
  if (p.group.is(1) || mask.rank() < 3) return mask;
  Dims dims = mask.dims();
  const auto heads = dims.end() - 3;
  if (heads->is(1)) {
    dims.insert(heads, 1);
  } else {
    *heads = p.group;
    dims.insert(dims.end() - 3, p.kv_heads);
  }
  return reshape(mask, dims);
}

// Batched over [batch, key heads]; the query heads of a group stand one below the other.
Value grouped_dot(Value x, Value kv, int64_t kv_contract) {
  return dot_general(x, kv, {0, 1}, {0, 1}, {x.rank() - 1}, {kv_contract});
}

std::vector<Value> expand_attention(Builder& b, Op op, In in) {
  Value present_key, present_value;
  const std::optional<Parts> p = checked_parts(b, in, present_key, present_value);
  if (!p) return {};
  double scale = op.real("scale");
  if (scale == 0) {
    const Dim width = p->query.dim(3);
    if (!width.is_static() || width.is(0)) {
      return failed(b, bad_input("a head dim of {} needs the attribute scale", width.to_string()));
    }
    scale = 1 / std::sqrt(static_cast<double>(width.value()));
  }
  const double softcap = op.real("softcap");
  const double hidden = -std::numeric_limits<double>::infinity();

  Value scores = grouped_dot(over_groups(p->query, *p), p->key, 3) * scale;
  if (softcap != 0) scores = softcap * tanh(scores / softcap);
  const Value mask = p->mask ? mask_over_groups(p->mask, *p) : Value();
  if (mask && mask.dtype() == DType::boolean) {
    scores = select(mask, scores, b.scalar(scores.dtype(), hidden));
  } else if (mask) {
    scores = scores + broadcast_to(mask, scores.dims());
  }
  if (op.flag("causal")) {
    Value visible = causal_mask(b, p->queries, p->keys);
    scores = select(visible, scores, b.scalar(scores.dtype(), hidden));
  }
  Value output = grouped_dot(softmax_of(scores), p->value, 2);
  if (output.rank() == 5) output = reshape(output, {p->batch, p->heads, p->queries, output.dim(4)});
  std::vector<Value> results = {output};
  if (present_key) results.insert(results.end(), {present_key, present_value});
  return results;
}

// ---- Rotary embedding ---------------------------------------------------------------------------

// cos or sin over [batch, heads, length, pairs].
Value angles(Value x, const Dims& dims) {
  return x.rank() == 2 ? broadcast(x, dims, {2, 3}) : broadcast(x, dims, {0, 2, 3});
}

// Element 2 i is turned with element 2 i + 1.
Value turned_pairs(Value x, Value cos, Value sin) {
  Dims as_pairs = cos.dims();
  as_pairs.push_back(2);
  const Value paired = reshape(x, as_pairs);
  const Value first = part(paired, 4, 0), second = part(paired, 4, 1);
  const Value real = first * cos - second * sin, imaginary = second * cos + first * sin;
  return reshape(concat({unsqueeze(real, 4), unsqueeze(imaginary, 4)}, 4), x.dims());
}

// Element i is turned with element i + pairs. The whole row is computed alike: so a kernel writes
// it in one go.
Value turned_halves(Value x, Value cos, Value sin) {
  const Dim pairs = cos.dim(-1);
  const Value other = concat({-slice(x, 3, pairs, 2 * pairs), slice(x, 3, 0, pairs)}, 3);
  const auto twice = [&](Value angle) { return angles(concat({angle, angle}, -1), x.dims()); };
  return x * twice(cos) + other * twice(sin);
}

std::vector<Value> expand_rotary_embedding(Builder& b, Op op, In in) {
  Value x = in[0], cos = in[1], sin = in[2];
  if (!need_rank(b, "x", x, 4, "[batch, heads, length, dim]")) return {};
  if (cos.rank() != 2 && !need_rank(b, "cos", cos, 3, "[batch, length, pairs], or rank 2")) {
    return {};
  }
  const Dim pairs = cos.dim(-1), rotated = 2 * pairs, width = x.dim(3);
  const Dims table = cos.rank() == 2 ? Dims{x.dim(2), pairs} : Dims{x.dim(0), x.dim(2), pairs};
  if (!need_type(b, "cos", cos, x.dtype(), table) || !need_type(b, "sin", sin, cos.type())) {
    return {};
  }
  if (!provably_le(rotated, width)) {
    demand(Demand::Kind::at_least, width, rotated);
    return failed(b, bad_input("cos turns {} elements, but the head dim has only {}",
                               rotated.to_string(), width.to_string()));
  }
  const Dims dims = with_dim(x.dims(), 3, pairs);
  Value turned = rotated == width ? x : slice(x, 3, 0, rotated);
  const Value y = op.flag("interleaved")
                      ? turned_pairs(turned, angles(cos, dims), angles(sin, dims))
                      : turned_halves(turned, cos, sin);
  return {rotated == width ? y : concat({y, slice(x, 3, rotated, width)}, 3)};
}

constexpr AttrSpec kAttentionAttrs[] = {
    {"scale", AttrKind::real, "0", "factor of the scores; 0: 1/sqrt(head dim)"},
    {"causal", AttrKind::flag, "false",
     "query i of q sees the keys up to i + kv - q: the last query sees all"},
    {"softcap", AttrKind::real, "0", "scores become softcap * tanh(scores / softcap); 0: do not"}};
constexpr AttrSpec kRotaryAttrs[] = {
    {"interleaved", AttrKind::flag, "false",
     "pairs are (0, 1), (2, 3), ... instead of (0, r/2), (1, r/2 + 1), ..."}};

}  // namespace

extern const OpDef op_def_attention;
const OpDef op_def_attention = {
    .opcode = Opcode::attention,
    .summary = "softmax(query key^T * scale + mask) value, per head",
    .semantics =
        "query is [batch, heads, length, dim], key and value likewise with heads that divide the "
        "query's: head h reads key head h / (heads / key heads). mask broadcasts to [batch, "
        "heads, query length, key length]; bool: true may be seen, real: added. Order: scale, "
        "softcap, mask, causal, softmax. Keys that must not be seen get -inf: a query that sees "
        "no key gives NaN. With past_key and past_value, the keys are past_key followed by key, "
        "and the results are output, present_key, present_value.",
    .operands = "query, key, value, mask?, past_key?, past_value?",
    .results = "output, present*",
    .attrs = kAttentionAttrs,
    .dtypes = kReal,
    .expand = expand_attention};

extern const OpDef op_def_rotary_embedding;
const OpDef op_def_rotary_embedding = {
    .opcode = Opcode::rotary_embedding,
    .summary = "turns pairs of elements by position-dependent angles",
    .semantics =
        "x is [batch, heads, length, dim]; cos and sin are [length, r/2] or [batch, "
        "length, r/2] with r <= dim. A pair (a, b) becomes (a cos - b sin, b cos + a sin); "
        "elements from r on stay as they are.",
    .operands = "x, cos, sin",
    .attrs = kRotaryAttrs,
    .dtypes = kReal,
    .expand = expand_rotary_embedding};

}  // namespace hone
