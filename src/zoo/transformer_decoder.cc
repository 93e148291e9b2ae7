#include <array>
#include <cmath>

#include "zoo/models.h"

// Stacks that see the past alone: GPT-2 and a Llama.

namespace hone::zoo {
namespace {

// ---- GPT-2 (Radford et al. 2019) ----------------------------------------------------------------

struct Gpt2 {
  int64_t width;
  int64_t heads;
  int64_t vocabulary;
  Value words;  // [vocabulary, width], for the embedding and for the logits
  Value positions;
};

Gpt2 gpt2_tables(Net& net) {
  Gpt2 model = {net.pick(768, 32), net.pick(12, 4), net.pick(50257, 100), {}, {}};
  model.words = net.normal("wte/weight", {model.vocabulary, model.width}, 0.1);
  model.positions = net.normal("wpe/weight", {net.max_length, model.width}, 0.1);
  return model;
}

struct Heads {
  Value query, key, value;  // [n, heads, length, head width]
};

Heads gpt2_heads(Net& net, const Gpt2& model, Value x) {
  std::vector<Value> parts = split(linear(net, "attn/qkv", x, 3 * model.width), 2, 3);
  return {split_heads(parts[0], model.heads), split_heads(parts[1], model.heads),
          split_heads(parts[2], model.heads)};
}

// attend(heads): the attention's result [n, heads, length, head width].
template <class Attend>
Value gpt2_block(Net& net, const Gpt2& model, Value x, Attend attend) {
  Value y = attend(gpt2_heads(net, model, layer_norm(net, "norm1", x)));
  x = x + linear(net, "attn/output", merge_heads(y), model.width);
  y = linear(net, "mlp/1", layer_norm(net, "norm2", x), 4 * model.width, {.gain = kHe});
  return x + linear(net, "mlp/2", gelu(y, true), model.width);
}

Value gpt2_logits(Net& net, const Gpt2& model, Value x) {
  return dot_general(layer_norm(net, "norm", x), model.words, {}, {}, {2}, {1}).named("logits");
}

}  // namespace

// A whole prompt: the logits, and every layer's keys and values.
Outputs gpt2(Net& net) {
  Gpt2 model = gpt2_tables(net);
  Value tokens = net.tokens("tokens", {net.batch, net.length});
  Value x = take(model.words, tokens) + slice(model.positions, 0, 0, net.length);
  Outputs outputs(1);
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    x = gpt2_block(net, model, x, [&](const Heads& heads) {
      outputs.push_back(heads.key.named("key"));
      outputs.push_back(heads.value.named("value"));
      return net.b.op(Opcode::attention, {heads.query, heads.key, heads.value}, {{"causal", true}});
    });
  }
  outputs[0] = gpt2_logits(net, model, x);
  return outputs;
}

// One more token at `position` for caches of `length` places, which are updated in place.
Outputs gpt2_decode(Net& net) {
  Gpt2 model = gpt2_tables(net);
  Value tokens = net.tokens("tokens", {net.batch, 1});
  Value position = net.b.parameter("position", DType::i64, {});
  Dims cache_dims = {net.batch, model.heads, net.length, model.width / model.heads};
  Value seen = compare("le", iota(net.b, DType::i64, {1, 1, 1, net.length}, 3), position);
  Value zero = net.b.scalar(DType::i64, 0);

  Value x = take(model.words, tokens) + take(model.positions, position);
  Outputs outputs(1);
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    auto updated = [&](std::string_view name, Value row) {
      Value cache = net.b.parameter(fmt::format("{}_cache", name), DType::f32, cache_dims);
      Value next = net.b.op(Opcode::dynamic_update, {cache, row, zero, zero, position, zero});
      net.b.donate(cache, static_cast<int>(outputs.size()));
      outputs.push_back(next.named(name));
      return next;
    };
    x = gpt2_block(net, model, x, [&](const Heads& heads) {
      Value keys = updated("key", heads.key);
      Value values = updated("value", heads.value);
      return net.b.op(Opcode::attention, {heads.query, keys, values, seen});
    });
  }
  outputs[0] = gpt2_logits(net, model, x);
  return outputs;
}

// ---- Llama (Touvron et al. 2023; the sizes are those of TinyLlama 1.1B) -------------------------

namespace {

Value llama_norm(Net& net, std::string_view name, Value x) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  return rms_norm(x, net.normal("weight", {x.dim(-1).value()}, 0.1, 1), -1, 1e-5);
}

// cos and sin of position / 10000^(i / pairs): [length, pairs].
std::array<Value, 2> rotations(Net& net, int64_t pairs) {
  Dims dims = {net.length, pairs};
  double step = -std::log(10000.0) / static_cast<double>(pairs);
  Value angle = iota(net.b, DType::f32, dims, 0) * exp(iota(net.b, DType::f32, dims, 1) * step);
  return {unary(Opcode::cos, angle), unary(Opcode::sin, angle)};
}

}  // namespace

Outputs llama(Net& net) {
  int64_t width = net.pick(2048, 32), heads = net.pick(32, 4), shared_heads = net.pick(4, 2);
  int64_t head_width = width / heads, vocabulary = net.pick(32000, 100);
  constexpr LinearSpec kPlain = {.bias = false};

  Value tokens = net.tokens("tokens", {net.batch, net.length});
  Value x = take(net.normal("embedding/weight", {vocabulary, width}, 0.5), tokens);
  auto [cosines, sines] = rotations(net, head_width / 2);
  auto rotated = [&, cosines = cosines, sines = sines](Value v) {
    return net.b.op(Opcode::rotary_embedding, {v, cosines, sines});
  };
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    Value y = llama_norm(net, "attention_norm", x);
    Value q = rotated(split_heads(linear(net, "query", y, width, kPlain), heads));
    Value k = linear(net, "key", y, shared_heads * head_width, kPlain);
    k = rotated(split_heads(k, shared_heads));
    Value v = linear(net, "value", y, shared_heads * head_width, kPlain);
    v = split_heads(v, shared_heads);
    y = net.b.op(Opcode::attention, {q, k, v}, {{"causal", true}});
    x = x + linear(net, "output", merge_heads(y), width, kPlain);

    y = llama_norm(net, "mlp_norm", x);
    Value gate = silu(linear(net, "gate", y, net.pick(5632, 88), kPlain));
    y = gate * linear(net, "up", y, net.pick(5632, 88), kPlain);
    x = x + linear(net, "down", y, width, kPlain);
  }
  return {linear(net, "head", llama_norm(net, "norm", x), vocabulary, kPlain).named("logits")};
}

}  // namespace hone::zoo
