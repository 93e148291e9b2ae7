#include <cmath>

#include "zoo/models.h"

// Transformer-XL (Dai et al. 2019), the base model: attention with relative positions over the
// sequence and a memory of the one before, and a softmax tied to the embedding.

namespace hone::zoo {
namespace {

struct Table {
  int64_t width;
  int64_t heads;
  int64_t head_width;
  int64_t hidden;
  int64_t vocabulary;
  int64_t memory;  // remembered places
};

// Sines and cosines of the distances total-1, ..., 1, 0: [total, width].
Value distances(Net& net, Dim total, int64_t width) {
  Dims dims = {total, width / 2};
  double step = -std::log(10000.0) / static_cast<double>(width / 2);
  Value place = reverse(iota(net.b, DType::f32, dims, 0), {0});
  Value angle = place * exp(iota(net.b, DType::f32, dims, 1) * step);
  return concat({unary(Opcode::sin, angle), unary(Opcode::cos, angle)}, 1);
}

// Row i of x [n, heads, length, total] counts distances from its own place. Moves it left by
// length-1-i, by reading the rows of a tensor one wider as if it were one narrower.
Value shifted(Value x) {
  Dims dims = x.dims();
  if (!x.builder().ok()) return x;
  Value wide = pad(x, {0, 0, 0, 1}, {0, 0, 0, 0});
  Value narrow = reshape(wide, {dims[0], dims[1], dims[3] + 1, dims[2]});
  return reshape(slice(narrow, 2, 1, dims[3] + 1), dims);
}

Value relative_attention(Net& net, const Table& t, Value x, Value seen, Value places, Value mask) {
  Builder::Scope scope = net.scope("attention");
  constexpr LinearSpec kPlain = {.bias = false};
  int64_t inner = t.heads * t.head_width;
  Value q = split_heads(linear(net, "query", x, inner, kPlain), t.heads);
  Value k = split_heads(linear(net, "key", seen, inner, kPlain), t.heads);
  Value v = split_heads(linear(net, "value", seen, inner, kPlain), t.heads);
  Value r = reshape(linear(net, "place", places, inner, kPlain), {-1, t.heads, t.head_width});
  Value content_bias = net.normal("content_bias", {t.heads, 1, t.head_width}, 0.1);
  Value place_bias = net.normal("place_bias", {t.heads, 1, t.head_width}, 0.1);

  Value content = einsum("nhqd,nhkd->nhqk", {q + content_bias, k});
  Value place = shifted(einsum("nhqd,khd->nhqk", {q + place_bias, r}));
  Value scores = (content + place) / std::sqrt(static_cast<double>(t.head_width));
  scores = select(mask, scores, net.b.scalar(DType::f32, -1e30));
  Value y = merge_heads(einsum("nhqk,nhkd->nhqd", {softmax(scores), v}));
  return linear(net, "output", y, t.width, kPlain);
}

}  // namespace

// Outputs the log-probabilities and what each layer remembers for the next sequence.
Outputs transformer_xl(Net& net) {
  Table t = {net.pick(410, 32),  net.pick(10, 4),       net.pick(41, 8),
             net.pick(2100, 64), net.pick(267735, 100), net.pick(150, 6)};
  Dim total = net.length + t.memory;
  Value tokens = net.tokens("tokens", {net.batch, net.length});
  Value words = net.normal("embedding/weight", {t.vocabulary, t.width},
                           1 / std::sqrt(static_cast<double>(t.width)));
  Value x = take(words, tokens) * std::sqrt(static_cast<double>(t.width));
  Value places = distances(net, total, t.width);
  // Query i stands behind the memory: it sees the keys j <= i + memory.
  Dims square = {net.length, total};
  Value mask = compare("le", iota(net.b, DType::i64, square, 1),
                       iota(net.b, DType::i64, square, 0) + static_cast<double>(t.memory));
  Outputs outputs(1);
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    Value memory = net.b.parameter("memory", DType::f32, {net.batch, t.memory, t.width});
    Value seen = concat({memory, x}, 1);
    outputs.push_back(slice(seen, 1, net.length, total).named("next_memory"));
    x = layer_norm(net, "norm1", x + relative_attention(net, t, x, seen, places, mask));
    Value y = relu(linear(net, "mlp/1", x, t.hidden, {.gain = kHe}));
    x = layer_norm(net, "norm2", x + linear(net, "mlp/2", y, t.width));
  }
  Value logits = dot_general(x, words, {}, {}, {2}, {1});
  logits = logits + net.normal("output/bias", {t.vocabulary}, 0.1);
  outputs[0] = log_softmax(logits).named("log_probabilities");
  return outputs;
}

}  // namespace hone::zoo
