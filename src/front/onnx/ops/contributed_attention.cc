#include "front/onnx/ops/heads.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Attention as ONNX Runtime's fusions write it.

namespace hone::onnx_io {
namespace {

void refuse_result(Node& n, size_t i, std::string_view what) {
  if (n.wants(i)) n.unsupported("the result {}", what);
}

void refuse_flag(Node& n, std::string_view attribute) {
  if (n.flag(attribute)) n.unsupported("the attribute {}", attribute);
}

void read_scale(Node& n, Heads& h) {
  const double scale = n.real("scale", 0);
  if (scale != 0) h.scale = scale;
}

// ---- Masks --------------------------------------------------------------------------------------

// Which keys a mask lets be seen, broadcastable to [batch, heads, queries, keys]:
//   [batch]: keys before an end; [2 * batch]: and from a start on, all starts after all ends;
//   [batch, keys], [batch, queries, keys]: not 0; [batch, 1, most, most]: rows by position.
Value visible_by(Node& n, Value mask, const Heads& h, Dim past) {
  Builder& b = n.builder();
  const Dim batch = h.query.dim(0), queries = h.query.dim(2), keys = h.key.dim(2);
  n.require_rank(mask, "the mask", 1, 4);
  if (mask.rank() > 1) {
    if (mask.rank() == 4) {
      mask = slice(slice(mask, 2, past, past + queries), 3, 0, keys);
    } else {
      const bool by_query = mask.rank() == 3;
      mask = as_promised(mask, -1, keys);
      if (by_query) mask = as_promised(mask, 1, queries);
      const Dims want = by_query ? Dims{batch, queries, keys} : Dims{batch, keys};
      if (mask.dims() != want) {
        n.bad("the mask is {}, want {}", mask.type().to_string(),
              Type::get(mask.dtype(), want).to_string());
      }
      mask = reshape(mask, {batch, 1, by_query ? queries : Dim(1), keys});
    }
    return compare("gt", mask, 0);
  }
  Value key = iota(b, DType::i64, {keys}, 0);
  mask = cast(mask, DType::i64);
  const Dims per_batch = {batch, 1, 1, 1};
  if (mask.dim(0) == batch) return compare("lt", key, reshape(mask, per_batch));
  if (!(mask.dim(0) == batch * 2)) {
    n.unsupported("a mask of shape {} for batch {}", mask.type().to_string(), batch.to_string());
  }
  Value end = reshape(slice(mask, 0, 0, batch), per_batch);
  Value start = reshape(slice(mask, 0, batch, batch * 2), per_batch);
  return binary(Opcode::and_, compare("lt", key, end), compare("ge", key, start));
}

// Positions that a mask hides get mask_filter_value added.
Value filter(Node& n, Value mask, const Heads& h, Dim past) {
  const double hidden = n.real("mask_filter_value", -10000);
  if (!mask) return mask;
  return as_bias(visible_by(n, mask, h, past), h.query.dtype(), hidden);
}

// ---- Attention ----------------------------------------------------------------------------------

// One of the two halves of a tensor [2, ...].
Value half(Value both, int64_t which) { return squeeze(slice(both, 0, which, which + 1), 0); }

// Attention and QAttention share this, from the packed products on.
void packed_attention(Node& n, Value product, const Dims& widths, Value mask, Value past,
                      Value bias) {
  const int64_t heads = head_count(n, "num_heads");
  std::vector<Value> parts = split(product, 2, widths);
  Heads h;
  h.query = split_heads(n, parts[0], "the query", heads);
  Value key = split_heads(n, parts[1], "the key", heads);
  Value value = split_heads(n, parts[2], "the value", heads);
  Dim past_length = 0;
  if (past) {
    n.require_rank(past, "past", 5, 5);
    if (!past.dim(0).is(2)) n.bad("past is {}, want keys and values", past.type().to_string());
    past_length = past.dim(3);
    key = with_past(n, half(past, 0), key, "past");
    value = with_past(n, half(past, 1), value, "past");
  }
  h.key = key, h.value = value;
  read_scale(n, h);
  refuse_flag(n, "do_rotary");
  refuse_flag(n, "past_present_share_buffer");
  if (bias) bias = over_scores(bias, h);
  h.mask = sum_of(filter(n, mask, h, past_length), bias);
  if (n.flag("unidirectional")) set_causal(n, h, past_length);
  n.out(0, merge_heads(attend(n, h)));
  if (n.wants(1)) n.out(1, concat({unsqueeze(key, 0), unsqueeze(value, 0)}, 0));
}

// Three equal parts of the product, or what qkv_hidden_sizes says.
Dims packed_widths(Node& n, Value product) {
  const Ints sizes = n.ints("qkv_hidden_sizes");
  if (sizes.empty()) {
    const std::optional<Dim> third = n.divided(product.dim(2), 3);
    if (!third) n.bad("{} columns are not three equal parts", product.dim(2).to_string());
    return {*third, *third, *third};
  }
  if (sizes.size() != 3) n.bad("qkv_hidden_sizes has {} entries, want 3", sizes.size());
  for (int64_t size : sizes) {
    if (size < 1 || size > kMaxElements) n.bad("qkv_hidden_sizes has an entry {}", size);
  }
  return {sizes.begin(), sizes.end()};
}

}  // namespace

void map_packed_attention(Node& n) {
  Value x = n.in(0), weights = n.in(1);
  n.require_rank(x, "the input", 3, 3);
  n.require_rank(weights, "the weights", 2, 2);
  n.ignore("rotary_embedding_dim");
  Value product = matmul(x, weights);
  if (Value bias = n.optional(2)) product = product + bias;
  packed_attention(n, product, packed_widths(n, product), n.optional(3), n.optional(4),
                   n.optional(5));
}

void map_quantized_attention(Node& n) {
  Value x = n.in(0), weights = n.in(1), bias = n.in(2);
  n.require_rank(x, "the input", 3, 3);
  n.require_rank(weights, "the weights", 2, 2);
  x = dequantized(n, x, n.in(3), n.optional(6));
  weights = dequantized(n, weights, n.in(4), n.optional(7), {.axis = 1});
  Value product = matmul(x, weights) + bias;
  packed_attention(n, product, packed_widths(n, product), n.optional(5), n.optional(8), Value());
}

// ---- MultiHeadAttention -------------------------------------------------------------------------

namespace {

// Query, key and value of [batch, length, heads * dim] out of the packed forms.
std::vector<Value> unpacked(Node& n, int64_t heads) {
  Value query = n.in(0), key = n.optional(1), value = n.optional(2);
  std::vector<Value> parts;
  const bool all = query.rank() == 5;  // [batch, length, heads, 3, dim]
  if (!all && !(key && key.rank() == 5)) return {query, key, value};
  Value packed = all ? query : key;
  const int64_t count = all ? 3 : 2;
  if (!packed.dim(3).is(count) || !packed.dim(2).is(heads)) {
    n.bad("packed operands are {}, want [batch, length, {} heads, {}, dim]",
          packed.type().to_string(), heads, count);
  }
  if (all ? static_cast<bool>(key) || value : static_cast<bool>(value)) {
    n.bad("packed operands leave no place for others");
  }
  if (!all) parts.push_back(query);
  for (int64_t i = 0; i < count; ++i) {
    Value part = slice(packed, 3, i, i + 1);
    parts.push_back(reshape(part, {packed.dim(0), packed.dim(1), packed.dim(2) * packed.dim(4)}));
  }
  return parts;
}

// Adds the parts of [query + key + value] to those that are still to be split in heads.
void add_bias(Node& n, std::vector<Value>& parts, Value bias, int64_t heads) {
  if (!bias) return;
  n.require_rank(bias, "the bias", 1, 1);
  Dims widths;
  for (Value p : parts) widths.push_back(p.rank() == 4 ? p.dim(3) * heads : p.dim(2));
  std::vector<Value> pieces = split(bias, 0, widths);
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].rank() == 3) parts[i] = parts[i] + pieces[i];
  }
}

}  // namespace

void map_multi_head_attention(Node& n) {
  const int64_t heads = head_count(n, "num_heads");
  if (n.has(8)) n.unsupported("the operand past_sequence_length: caches that are shared");
  if (n.has(9)) n.unsupported("the operand cache_indirection: caches of a beam search");
  refuse_result(n, 3, "qk");
  std::vector<Value> parts = unpacked(n, heads);
  if (!parts[1] || !parts[2]) n.bad("key and value are missing");
  add_bias(n, parts, n.optional(3), heads);
  Heads h;
  h.query = split_heads(n, parts[0], "query", heads);
  // It has rank 4: kept from an earlier run, [batch, heads, length, dim].
  auto heads_of = [&](Value x, std::string_view what) {
    return x.rank() == 4 ? x : split_heads(n, x, what, heads);
  };
  Value past_key = n.optional(6), past_value = n.optional(7);
  const Dim past = past_key && past_key.rank() == 4 ? past_key.dim(2) : Dim(0);
  h.key = with_past(n, past_key, heads_of(parts[1], "key"), "past_key");
  h.value = with_past(n, past_value, heads_of(parts[2], "value"), "past_value");
  read_scale(n, h);
  Value bias = n.optional(5);
  if (bias) bias = over_scores(bias, h);
  h.mask = sum_of(filter(n, n.optional(4), h, past), bias);
  if (n.flag("unidirectional")) set_causal(n, h, past);
  n.out(0, merge_heads(attend(n, h)));
  if (n.wants(1)) n.out(1, h.key);
  if (n.wants(2)) n.out(2, h.value);
}

// ---- DecoderMaskedMultiHeadAttention ------------------------------------------------------------

namespace {

// Query, key and value of one token, with their biases; the query alone if the keys are given in
// heads.
std::vector<Value> decoder_parts(Node& n, int64_t heads, bool has_keys) {
  const Value query = n.in(0), key = n.optional(1), value = n.optional(2);
  n.require_rank(query, "query", 3, 3);
  if (!query.dim(1).is(1)) n.bad("query is {}, want one token", query.type().to_string());
  std::vector<Value> parts = {query, key, value};
  if (has_keys) {
    parts = {query};
  } else if (!key && !value) {
    parts = split(query, 2, packed_widths(n, query));
  } else if (!key || !value) {
    n.bad("key and value come together");
  }
  const Value bias = n.optional(10);
  if (!bias) return parts;
  if (has_keys) {
    n.require_rank(bias, "the bias", 1, 1);
    if (!provably_le(query.dim(2), bias.dim(0)))
      n.bad("the bias is {}, query is {}", bias.type().to_string(), query.type().to_string());
    return {query + slice(bias, 0, 0, query.dim(2))};
  }
  add_bias(n, parts, bias, heads);
  return parts;
}

// A cache [batch, heads, most, dim] with one row at a position.
Value with_row(Value cache, Value row, Value at) {
  const Value zero = cache.builder().scalar(DType::i64, 0);
  return cache.builder().op(Opcode::dynamic_update, {cache, row, zero, zero, at, zero});
}

// The cache as each beam sees it: position t is that of the beam which `beams`, i32[batch, beams,
// most], names.
Value seen_by_beams(Node& n, Value cache, Value beams) {
  n.require_rank(beams, "cache_indirection", 3, 3);
  const Dim rows = cache.dim(0), most = cache.dim(2), width = beams.dim(1);
  if (!(beams.dim(0) * width == rows) || !provably_le(most, beams.dim(2)) || !width.is_static())
    n.bad("cache_indirection is {} for a cache of {}", beams.type().to_string(),
          cache.type().to_string());
  Builder& b = n.builder();
  const Dims table = {rows, most};
  const Value group = iota(b, DType::i64, table, 0) / static_cast<double>(width.value());
  const Value beam = reshape(slice(cast(beams, DType::i64), 2, 0, most), table);
  const Value row = group * static_cast<double>(width.value()) + beam;
  const Value place = row * size_value(b, most) + iota(b, DType::i64, table, 1);
  const Value by_place =
      reshape(transpose(cache, {0, 2, 1, 3}), {rows * most, cache.dim(1), cache.dim(3)});
  return transpose(looked_up(by_place, place, 0), {0, 2, 1, 3});
}

// x with `size` elements along its last dim: more of them are 0.
Value with_zeros(Node& n, Value x, Dim size, std::string_view what) {
  Dims more = x.dims();
  if (more.back() == size) return x;
  if (!provably_le(more.back(), size))
    n.bad("{} is {}, the cache has {} rows", what, x.type().to_string(), size.to_string());
  more.back() = size - more.back();
  return concat({x, n.builder().full(x.dtype(), more, 0)}, x.rank() - 1);
}

// Keys and values with those of the past; which of them are there: absent for all.
struct Cached {
  Value key, value;                  // as the query sees them
  Value present_key, present_value;  // as they are kept
  Value is_there;
};

Cached with_cache(Node& n, Value key, Value value) {
  const Value past_key = n.optional(5), past_value = n.optional(6);
  if (static_cast<bool>(past_key) != static_cast<bool>(past_value))
    n.bad("past_key and past_value come together");
  const Value beams = n.optional(9);
  const auto seen = [&](Value cache) { return beams ? seen_by_beams(n, cache, beams) : cache; };
  if (!n.flag("past_present_share_buffer")) {
    Cached c;
    c.present_key = with_past(n, past_key, key, "past_key");
    c.present_value = with_past(n, past_value, value, "past_value");
    c.key = past_key ? with_past(n, seen(past_key), key, "past_key") : key;
    c.value = past_value ? with_past(n, seen(past_value), value, "past_value") : value;
    return c;
  }
  if (!past_key) n.bad("a shared buffer needs past_key and past_value");
  n.require_rank(past_key, "past_key", 4, 4);
  n.require_rank(past_value, "past_value", 4, 4);
  const Value at = cast(as_scalar(n.in(7)), DType::i64);
  if (at.rank() != 0) n.bad("past_sequence_length is {}, not a number", n.in(7).type().to_string());
  const Value place = iota(n.builder(), DType::i64, {past_key.dim(2)}, 0);
  return {.key = with_row(seen(past_key), key, at),
          .value = with_row(seen(past_value), value, at),
          .present_key = with_row(past_key, key, at),
          .present_value = with_row(past_value, value, at),
          .is_there = compare("le", place, at)};
}

}  // namespace

// One token of each sequence by all that were before. The keys of a cache lie as its dims say.
void map_decoder_attention(Node& n) {
  const int64_t heads = head_count(n, "num_heads");
  refuse_result(n, 3, "qk");
  refuse_flag(n, "output_qk");
  const bool is_cross = n.has(1) && n.in(1).rank() == 4;
  const std::vector<Value> parts = decoder_parts(n, heads, is_cross);
  Heads h;
  h.query = split_heads(n, parts[0], "query", heads);
  Cached c;
  if (is_cross) {
    c.key = n.in(1), c.value = n.in(2);
    n.require_rank(c.value, "value", 4, 4);
    if (n.has(5) || n.has(6)) n.bad("keys in heads have no past");
    for (size_t i : {size_t{7}, size_t{9}})
      if (n.has(i)) n.ignore_operand(i);
    n.ignore("past_present_share_buffer");
  } else {
    c = with_cache(n, split_heads(n, parts[1], "key", heads),
                   split_heads(n, parts[2], "value", heads));
  }
  if (n.has(8)) n.ignore_operand(8);  // the beams' number, which cache_indirection has too
  h.key = c.key, h.value = c.value;
  read_scale(n, h);
  Value mask = n.optional(3), bias = n.optional(4);
  if (mask) n.require_rank(mask, "the mask", 2, 2);
  if (c.is_there) {
    const Dim most = h.key.dim(2);
    if (mask) mask = with_zeros(n, mask, most, "the mask");
    if (bias) bias = with_zeros(n, bias, most, "the bias");
  }
  if (bias) bias = over_scores(bias, h);
  h.mask = sum_of(filter(n, mask, h, 0), bias);
  if (c.is_there) h.mask = only_visible(h.mask, c.is_there);
  n.out(0, merge_heads(attend(n, h)));
  if (!is_cross && n.wants(1)) n.out(1, c.present_key);
  if (!is_cross && n.wants(2)) n.out(2, c.present_value);
  if (is_cross && (n.wants(1) || n.wants(2))) n.unsupported("a cache of keys in heads");
}

// ---- RotaryEmbedding ----------------------------------------------------------------------------

void map_contributed_rotary_embedding(Node& n) {
  Value x = n.in(0), positions = n.in(1), cos = n.in(2), sin = n.in(3);
  n.require_rank(x, "the input", 3, 4);
  n.require_rank(cos, "cos_cache", 2, 2);
  refuse_flag(n, "is_packed_batching");
  if (n.real("scale", 1) != 1) n.unsupported("a scale of {}", n.real("scale", 1));
  const int64_t turned = n.integer("rotary_embedding_dim", 0);
  int64_t heads = n.integer("num_heads", 0);
  const bool flat = x.rank() == 3;
  if (flat && turned == 0 && heads == 0) {
    // All of a head is turned, so the tables tell its size.
    const std::optional<Dim> count = x.dim(2).divided_by(cos.dim(1) * 2);
    if (!count || !count->is_static()) {
      n.bad("the input is {}, cos_cache {}: no whole number of heads", x.type().to_string(),
            cos.type().to_string());
    }
    heads = count->value();
  }
  if (flat && heads < 1) n.bad("num_heads is {}, not at least 1", heads);
  if (flat) x = split_heads(n, x, "the input", heads);
  if (turned != 0 && !(cos.dim(1) * 2).is(turned)) {
    n.bad("cos_cache has {} angles for {} elements", cos.dim(1).to_string(), turned);
  }
  // One number is where all sequences start.
  if (positions.rank() <= 1) {
    Value step = iota(n.builder(), DType::i64, {1, x.dim(2)}, 1);
    positions = cast(as_scalar(positions), DType::i64) + step;
  }
  Value y = rotated(n, x, cos, sin, positions, n.flag("interleaved"));
  n.out(flat ? merge_heads(y) : y);
}

}  // namespace hone::onnx_io
