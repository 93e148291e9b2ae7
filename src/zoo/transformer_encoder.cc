#include "zoo/models.h"

// Stacks over whole sequences: BERT, the vision transformer, the MLP-Mixer.

namespace hone::zoo {
namespace {

struct EncoderTable {
  int64_t width;
  int64_t heads;
  int64_t hidden;
  double epsilon;
};

Value self_attention(Net& net, Value x, const EncoderTable& table, Value mask = {}) {
  Builder::Scope scope = net.scope("attention");
  Value q = split_heads(linear(net, "query", x, table.width), table.heads);
  Value k = split_heads(linear(net, "key", x, table.width), table.heads);
  Value v = split_heads(linear(net, "value", x, table.width), table.heads);
  std::vector<Value> operands = {q, k, v};
  if (mask) operands.push_back(mask);
  Value y = net.b.op(Opcode::attention, operands);
  return linear(net, "output", merge_heads(y), table.width);
}

Value feed_forward(Net& net, std::string_view name, Value x, int64_t hidden, int64_t width) {
  Builder::Scope scope = net.scope(name);
  x = gelu(linear(net, "1", x, hidden, {.gain = kHe}));
  return linear(net, "2", x, width);
}

// The patches of an image as a sequence: [n, 3, h, w] -> [n, patches, width].
Value patches(Net& net, int64_t width) {
  int64_t patch = net.pick(16, 4);
  Value x = conv(net, "patches", net.images(), width,
                 {.kernel = {patch}, .stride = patch, .padding = {0}, .bias = true, .gain = 1});
  return transpose(flatten(x, 2), {0, 2, 1});
}

}  // namespace

// Devlin et al. 2018: norms behind the residual sums.
Outputs bert_base(Net& net) {
  EncoderTable table = {net.pick(768, 32), net.pick(12, 4), net.pick(3072, 64), 1e-12};
  Dims ids = {net.batch, net.length};
  Value tokens = net.tokens("input_ids", ids);
  Value kinds = net.tokens("token_type_ids", ids);
  Value attended = net.tokens("attention_mask", ids);  // 1: a token, 0: padding

  Value x;
  {
    Builder::Scope scope = net.scope("embeddings");
    Value words = net.normal("word/weight", {net.pick(30522, 100), table.width}, 0.5);
    Value positions = net.normal("position/weight", {net.max_length, table.width}, 0.5);
    Value types = net.normal("token_type/weight", {2, table.width}, 0.5);
    x = take(words, tokens) + take(types, kinds) + slice(positions, 0, 0, net.length);
    x = layer_norm(net, "norm", x, table.epsilon);
  }
  // Added to the scores, so that a sequence of padding alone still has finite ones.
  Value mask = (1 - cast(attended, DType::f32)) * -10000;
  mask = reshape(mask, {net.batch, 1, 1, net.length});
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    x = layer_norm(net, "norm1", x + self_attention(net, x, table, mask), table.epsilon);
    Value y = feed_forward(net, "mlp", x, table.hidden, table.width);
    x = layer_norm(net, "norm2", x + y, table.epsilon);
  }
  Value first = squeeze(slice(x, 1, 0, 1), 1);
  Value pooled = tanh(linear(net, "pooler", first, table.width));
  return {x.named("last_hidden_state"), pooled.named("pooler_output")};
}

// Dosovitskiy et al. 2020: norms before the branches.
Outputs vit_b16(Net& net) {
  EncoderTable table = {net.pick(768, 32), net.pick(12, 4), net.pick(3072, 64), 1e-6};
  Value x = patches(net, table.width);
  Value token = net.normal("class_token", {1, 1, table.width}, 0.5);
  x = concat({broadcast_to(token, {net.batch, 1, table.width}), x}, 1);
  if (!net.b.ok()) return {x};
  x = x + net.normal("position_embedding", {x.dim(1).value(), table.width}, 0.5);
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    x = x + self_attention(net, layer_norm(net, "norm1", x, table.epsilon), table);
    Value y = layer_norm(net, "norm2", x, table.epsilon);
    x = x + feed_forward(net, "mlp", y, table.hidden, table.width);
  }
  x = layer_norm(net, "norm", x, table.epsilon);
  Value first = squeeze(slice(x, 1, 0, 1), 1);
  return {linear(net, "head", first, net.classes).named("logits")};
}

// Tolstikhin et al. 2021: linear layers over the patches, then over the channels.
Outputs mixer_b16(Net& net) {
  int64_t width = net.pick(768, 32);
  Value x = patches(net, width);
  if (!net.b.ok()) return {x};
  int64_t count = x.dim(1).value();
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layer", i);
    Value y = transpose(layer_norm(net, "norm1", x, 1e-6), {0, 2, 1});
    x = x + transpose(feed_forward(net, "tokens", y, net.pick(384, 24), count), {0, 2, 1});
    y = layer_norm(net, "norm2", x, 1e-6);
    x = x + feed_forward(net, "channels", y, net.pick(3072, 64), width);
  }
  x = reduce_mean(layer_norm(net, "norm", x, 1e-6), {1});
  return {linear(net, "head", x, net.classes).named("logits")};
}

}  // namespace hone::zoo
