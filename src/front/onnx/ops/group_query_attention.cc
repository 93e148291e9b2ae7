#include <algorithm>

#include "front/onnx/ops/heads.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Attention with a cache of keys and values that grows, or that has room for the longest sequence.

namespace hone::onnx_io {
namespace {

struct Step {
  Heads heads;
  Value key, value;            // what is new: [batch, kv heads, length, dim]
  Value past_key, past_value;  // [batch, kv heads, past length, dim]; absent: none
  Dim batch, length;
  Dim present;            // rows of the new cache
  bool is_plain = false;  // it is the old one, followed by what is new
  Value past;             // valid rows of the old cache: i64[batch], or i64[] for all
  Value total;            // the same of the new one
};

void refuse_variants(Node& n) {
  for (std::string_view attribute : {"k_quant_type", "v_quant_type"}) {
    if (n.word(attribute, "NONE") != "NONE") n.unsupported("quantized caches ({})", attribute);
  }
  n.ignore("kv_cache_bit_width");
  if (n.has(12) || n.has(13)) n.unsupported("quantized caches");
  if (n.flag("sliding_window_cache")) n.unsupported("caches that drop what leaves the window");
  if (n.integer("qk_output", 0) != 0 || n.wants(3)) n.unsupported("the result output_qk");
}

void read_operands(Node& n, Step& s) {
  const int64_t heads = head_count(n, "num_heads"), kv_heads = head_count(n, "kv_num_heads");
  Value query = n.in(0), key = n.optional(1), value = n.optional(2);
  n.require_rank(query, "query", 3, 3);
  if (!key && !value) {
    const std::optional<Dim> width = n.divided(query.dim(2), Dim(heads) + Dim(kv_heads) * 2);
    if (!width) {
      n.bad("query is {}, which {} + 2 * {} heads do not divide", query.type().to_string(), heads,
            kv_heads);
    }
    std::vector<Value> parts =
        split(query, 2, Dims{*width * heads, *width * kv_heads, *width * kv_heads});
    query = parts[0], key = parts[1], value = parts[2];
  } else if (!key || !value) {
    n.bad("key and value come together");
  }
  s.heads.query = split_heads(n, query, "query", heads);
  s.key = split_heads(n, key, "key", kv_heads);
  s.value = split_heads(n, value, "value", kv_heads);
  s.past_key = n.optional(3), s.past_value = n.optional(4);
  if (static_cast<bool>(s.past_key) != static_cast<bool>(s.past_value)) {
    n.bad("past_key and past_value come together");
  }
  if (s.past_key) n.require_rank(s.past_key, "past_key", 4, 4);
  s.batch = s.heads.query.dim(0), s.length = s.heads.query.dim(2);
  if (!(s.key.dim(2) == s.length)) {
    n.bad("{} new keys for {} queries", s.key.dim(2).to_string(), s.length.to_string());
  }
}

std::optional<Dim> known_total(Node& n) {
  if (!n.in(6).type().elements().is(1)) {
    n.bad("total_sequence_length is {}, want one number", n.in(6).type().to_string());
  }
  const std::optional<Dims> total = n.known(6);
  return total ? std::optional<Dim>(total->front()) : std::nullopt;
}

// How many rows the total has beyond `least`, as a size; the segment ends where that is data.
Dim rows_beyond(Node& n, const Step& s, Dim least) {
  Value total = cast(as_scalar(n.in(6)), DType::i64);
  return n.size(maximum(total - size_value(n.builder(), least), 0),
                room_for_each(s.heads.query.type().elements(), 1));
}

// All sequences are as long as the cache.
bool are_full(Node& n, const Step& s) {
  const std::optional<Dims> lengths = n.known(5);
  return lengths &&
         std::all_of(lengths->begin(), lengths->end(), [&](Dim d) { return d + 1 == s.present; });
}

// The new cache has room for all that is valid, and at least the size of the old one.
void size_cache(Node& n, Step& s) {
  const Dim old = s.past_key ? s.past_key.dim(2) : Dim(0);
  const std::optional<Dim> total = known_total(n);
  if (!s.past_key || old.is(0)) {
    s.present = s.length;
    s.is_plain = true;
  } else if (total && provably_le(*total, old)) {
    s.present = old;
  } else if (total && provably_le(old, *total)) {
    s.present = *total;
    s.is_plain = s.present == old + s.length && (s.batch.is(1) || are_full(n, s));
  } else if (old.is_static()) {
    const Dim least = provably_le(s.length, old) ? old : s.length;
    s.present = least + rows_beyond(n, s, least);
  } else {
    // Only the run knows whether there is room, so there is room for all.
    s.present = old + s.length;
  }
}

void count_rows(Node& n, Step& s) {
  Builder& b = n.builder();
  if (s.is_plain) {
    s.total = size_value(b, s.present);
    s.past = size_value(b, s.past_key ? s.past_key.dim(2) : Dim(0));
    return;
  }
  Value lengths = n.in(5);
  s.total = reshape(cast(lengths, DType::i64), {s.batch}) + 1;
  // A first prompt may be padded: it is longer than what is valid then.
  s.past = maximum(s.total - size_value(b, s.length), 0);
}

// [batch, 1, 1, 1], or the number for all.
Value per_batch(const Step& s, Value v) {
  return v.rank() == 0 ? v : reshape(v, {s.batch, 1, 1, 1});
}

Value turned(Node& n, const Step& s, Value x) {
  Value positions = n.optional(9);
  if (!positions) {
    Value start = s.past.rank() == 0 ? s.past : reshape(s.past, {s.batch, 1});
    positions = start + iota(n.builder(), DType::i64, {1, s.length}, 1);
  }
  return rotated(n, x, n.in(7), n.in(8), positions, n.flag("rotary_interleaved"));
}

// Norm of each head, then the turn by the positions.
void prepare(Node& n, Step& s) {
  const double epsilon = n.real("qk_norm_epsilon", 1e-6);
  Value query_norm = n.optional(14), key_norm = n.optional(15);
  if (query_norm) s.heads.query = rms_norm(s.heads.query, query_norm, -1, epsilon);
  if (key_norm) s.key = rms_norm(s.key, key_norm, -1, epsilon);
  if (n.flag("do_rotary")) {
    s.heads.query = turned(n, s, s.heads.query);
    s.key = turned(n, s, s.key);
  } else {
    n.ignore("rotary_interleaved");
  }
}

// The new cache: each sequence's new rows follow its valid ones.
Value cached(Node& n, const Step& s, Value past, Value fresh, std::string_view what) {
  if (s.is_plain) return with_past(n, past, fresh, what);
  Builder& b = n.builder();
  Dims want = fresh.dims();
  if (past.rank() == 4) want[2] = past.dim(2);
  if (past.type() != Type::get(fresh.dtype(), want)) {
    n.bad("{} is {}, does not go with {}", what, past.type().to_string(), fresh.type().to_string());
  }
  Value room = b.op(Opcode::pad, {past, b.scalar(past.dtype(), 0)},
                    {{"low", Dims{0, 0, 0, 0}}, {"high", Dims{0, 0, s.present - past.dim(2), 0}}});
  Value start = reshape(s.past, {s.batch, 1});
  return b.op(Opcode::scatter, {room, start, fresh},
              {{"window_dims", Ints{1, 2, 3}},
               {"inserted_dims", Ints{}},
               {"operand_batch_dims", Ints{0}},
               {"index_batch_dims", Ints{0}},
               {"index_map", Ints{2}},
               {"index_vector_dim", int64_t{1}}});
}

// Which rows of the cache a query sees; absent if the causal rule alone says it.
Value visible_rows(Node& n, const Step& s, bool causal, int64_t window) {
  if (s.is_plain && window < 0) return Value();
  Builder& b = n.builder();
  Value row = iota(b, DType::i64, {s.present}, 0);
  Value visible = compare("lt", row, per_batch(s, s.total));
  Value position = per_batch(s, s.past) + iota(b, DType::i64, {1, 1, s.length, 1}, 2);
  if (causal) visible = binary(Opcode::and_, visible, compare("le", row, position));
  if (window < 0) return visible;
  Value oldest = position - static_cast<double>(window);
  return binary(Opcode::and_, visible, compare("gt", row, oldest));
}

// A bias of [.., total] over the rows of the cache.
Value row_bias(Node& n, const Step& s) {
  Value bias = n.optional(10);
  if (!bias) return bias;
  n.require_rank(bias, "attention_bias", 4, 4);
  const Dim missing = s.present - bias.dim(3);
  if (missing.is(0)) return bias;
  Builder& b = n.builder();
  return b.op(Opcode::pad, {bias, b.scalar(bias.dtype(), 0)},
              {{"low", Dims{0, 0, 0, 0}}, {"high", Dims{0, 0, 0, missing}}});
}

// Softmax with a further score per head, of a key without value.
Value attend_with_sink(Node& n, Heads h, Value sink) {
  if (h.causal) {
    const Dim past = h.key.dim(2) - h.query.dim(2);
    h.mask = only_visible(h.mask, causal_mask(n.builder(), h.query.dim(2), past, h.query.dim(2)));
  }
  Value scores = masked(capped(raw_scores(n, h), h.softcap), h.mask);
  const Dim keys = h.key.dim(2);
  Dims column = scores.dims();
  column[3] = 1;
  sink = sink.rank() == 0 ? broadcast_to(sink, column) : broadcast(sink, column, {1});
  Value all = softmax(concat({scores, cast(sink, scores.dtype())}, 3));
  return weighted(slice(all, 3, 0, keys), h.value);
}

}  // namespace

void map_group_query_attention(Node& n) {
  refuse_variants(n);
  const bool causal = n.flag("causal", true);
  const int64_t window = n.integer("local_window_size", -1);
  if (window != -1 && window < 1) n.bad("local_window_size is {}, want -1 or at least 1", window);
  Step s;
  read_operands(n, s);
  size_cache(n, s);
  count_rows(n, s);
  prepare(n, s);
  Heads& h = s.heads;
  h.key = cached(n, s, s.past_key, s.key, "past_key");
  h.value = cached(n, s, s.past_value, s.value, "past_value");
  if (const double scale = n.real("scale", 0); scale != 0) h.scale = scale;
  h.softcap = std::max(0.0, n.real("softcap", 0));
  h.mask = row_bias(n, s);
  if (Value visible = visible_rows(n, s, causal, window)) {
    h.mask = only_visible(h.mask, visible);
  } else {
    h.causal = causal;
  }
  Value sink = n.optional(11);
  if (sink) n.require_rank(sink, "head_sink", 1, 1);
  if (n.flag("smooth_softmax") && !sink) sink = n.builder().scalar(h.query.dtype(), 0);
  n.out(0, merge_heads(sink ? attend_with_sink(n, h, sink) : attend(n, h)));
  if (n.wants(1)) n.out(1, h.key);
  if (n.wants(2)) n.out(2, h.value);
}

}  // namespace hone::onnx_io
