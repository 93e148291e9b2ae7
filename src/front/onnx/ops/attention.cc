#include <algorithm>
#include <limits>

#include "front/onnx/ops/heads.h"
#include "front/onnx/registry.h"

namespace hone::onnx_io {
namespace {

enum class Shown { raw, capped, masked, probabilities };  // what qk_matmul_output is

struct Operands {
  Heads heads;
  Value present_key, present_value;
  Dim past;   // keys
  bool flat;  // operands of rank 3
};

Operands read_operands(Node& n) {
  Value q = n.in(0), k = n.in(1), v = n.in(2);
  Operands o;
  n.require_rank(q, "Q", 3, 4);
  o.flat = q.rank() == 3;
  n.require_rank(k, "K", q.rank(), q.rank());
  n.require_rank(v, "V", q.rank(), q.rank());
  if (o.flat) {
    const int64_t heads = head_count(n, "q_num_heads"), kv_heads = head_count(n, "kv_num_heads");
    q = split_heads(n, q, "Q", heads);
    k = split_heads(n, k, "K", kv_heads);
    v = split_heads(n, v, "V", kv_heads);
  } else {
    // Only operands of rank 3 need to be told.
    n.ignore("q_num_heads");
    n.ignore("kv_num_heads");
  }
  Value past_key = n.optional(4), past_value = n.optional(5);
  if (static_cast<bool>(past_key) != static_cast<bool>(past_value)) {
    n.bad("past_key and past_value come together");
  }
  o.past = past_key && past_key.rank() == 4 ? past_key.dim(2) : 0;
  o.present_key = with_past(n, past_key, k, "past_key");
  o.present_value = with_past(n, past_value, v, "past_value");
  o.heads.query = q;
  o.heads.key = o.present_key;
  o.heads.value = cast(o.present_value, q.dtype());
  if (n.has_attribute("scale")) o.heads.scale = n.real("scale");
  o.heads.softcap = std::max(0.0, n.real("softcap", 0));
  return o;
}

// The last keys, which the mask may lack, are hidden.
Value with_last_keys(Node& n, Value mask, const Heads& h) {
  Builder& b = n.builder();
  const Dim given = mask.dim(-1), missing = h.key.dim(2) - given;
  if (missing.is(0)) return over_scores(mask, h);
  if (!provably_le(0, missing)) {
    if (missing.is_static()) return mask;  // too long, which is refused
    Value key = iota(b, DType::i64, {h.key.dim(2)}, 0);
    return only_visible(over_scores(mask, h), compare("lt", key, size_value(b, given)));
  }
  Value hidden = mask.dtype() == DType::boolean
                     ? b.scalar(DType::boolean, 0)
                     : b.scalar(mask.dtype(), -std::numeric_limits<double>::infinity());
  Dims low(static_cast<size_t>(mask.rank()), 0), high = low;
  high.back() = missing;
  return b.op(Opcode::pad, {mask, hidden}, {{"low", low}, {"high", high}});
}

// The operand attn_mask; from version 24 on it may lack the last keys, which are hidden then.
Value given_mask(Node& n, const Heads& h) {
  Value mask = n.optional(3);
  if (!mask) return mask;
  // Numbers of any type are added to the scores.
  if (mask.dtype() != DType::boolean) mask = cast(mask, h.query.dtype());
  n.require_rank(mask, "attn_mask", 0, 4);
  if (mask.rank() == 0) return reshape(mask, {1});
  if (n.version() < 24) return over_scores(mask, h);
  return with_last_keys(n, mask, h);
}

// True for the keys that are not padding, with `causal` for those up to i + length - queries. They
// are counted from the last query, so that the number of queries is not needed.
Value without_padding(Node& n, Value lengths, const Heads& h, bool causal) {
  Builder& b = n.builder();
  n.require_rank(lengths, "nonpad_kv_seqlen", 1, 1);
  lengths = reshape(cast(lengths, DType::i64), {lengths.dim(0), 1, 1, 1});
  Value keys = iota(b, DType::i64, {h.key.dim(2)}, 0);
  if (causal) keys = keys + reverse(iota(b, DType::i64, {h.query.dim(2), 1}, 0), {0});
  return compare("lt", keys, lengths);
}

void add_masks(Node& n, Operands& o) {
  Heads& h = o.heads;
  h.mask = given_mask(n, h);
  const bool causal = n.flag("is_causal");
  Value lengths = n.version() >= 24 ? n.optional(6) : Value();
  if (lengths) {
    if (!o.past.is(0)) n.bad("nonpad_kv_seqlen and past_key exclude each other");
    h.mask = only_visible(h.mask, without_padding(n, lengths, h, causal));
  } else if (causal) {
    const Dim queries = h.query.dim(2), fresh = h.key.dim(2) - o.past;
    h.causal = !h.mask && queries == fresh;
    if (!h.causal) {
      h.mask = only_visible(h.mask, causal_mask(n.builder(), queries, o.past, fresh));
    }
  }
}

// A query that may see no key at all gives 0.
Value guarded(Value y, Value mask) {
  if (!mask) return y;
  return select(sees_any(mask), y, y.builder().scalar(y.dtype(), 0));
}

// Step by step: what happens between the products is shown, or has a type of its own.
Value spelled_out(Node& n, Heads h, Shown shown, DType precision) {
  if (h.causal) {
    h.mask =
        causal_mask(n.builder(), h.query.dim(2), h.key.dim(2) - h.query.dim(2), h.query.dim(2));
  }
  Value raw = raw_scores(n, h);
  Value capped_scores = capped(raw, h.softcap);
  Value scores = masked(capped_scores, h.mask);
  Value probabilities = guarded(softmax(cast(scores, precision)), h.mask);
  if (n.wants(3)) {
    Value all[] = {raw, capped_scores, scores, probabilities};
    n.out(3, cast(all[static_cast<size_t>(shown)], h.query.dtype()));
  }
  return cast(weighted(probabilities, cast(h.value, precision)), h.query.dtype());
}

}  // namespace

void map_attention(Node& n) {
  Operands o = read_operands(n);
  add_masks(n, o);
  const int64_t mode = n.integer("qk_matmul_output_mode", 0);
  if (mode < 0 || mode > 3) n.bad("qk_matmul_output_mode is {}, not 0 to 3", mode);
  const DType dtype = o.heads.query.dtype();
  DType precision = dtype;
  if (n.integer("softmax_precision", 0) != 0) precision = n.dtype("softmax_precision", dtype);
  if (!is_real(precision)) n.bad("softmax_precision is {}, want reals", name(precision));
  Value y;
  if (n.wants(3) || precision != dtype || o.heads.scale == 0.0) {
    y = spelled_out(n, o.heads, static_cast<Shown>(mode), precision);
  } else {
    y = guarded(attend(n, o.heads), o.heads.mask);
  }
  n.out(0, o.flat ? merge_heads(y) : y);
  if (n.wants(1)) n.out(1, o.present_key);
  if (n.wants(2)) n.out(2, o.present_value);
}

void map_rotary_embedding(Node& n) {
  Value x = n.in(0);
  n.require_rank(x, "the input", 3, 4);
  const bool flat = x.rank() == 3;
  if (flat) {
    x = split_heads(n, x, "the input", head_count(n, "num_heads"));
  } else {
    n.ignore("num_heads");
  }
  const int64_t turned = n.integer("rotary_embedding_dim", 0);
  Value cos = n.in(1);
  n.require_rank(cos, "cos_cache", 2, 3);
  const Dim want = turned == 0 ? x.dim(3) : Dim(turned);
  if (!(cos.dim(-1) * 2 == want)) {
    n.bad("cos_cache has {} angles, {} elements need half as many", cos.dim(-1).to_string(),
          want.to_string());
  }
  Value y = rotated(n, x, cos, n.in(2), n.optional(3), n.flag("interleaved"));
  n.out(flat ? merge_heads(y) : y);
}

}  // namespace hone::onnx_io
