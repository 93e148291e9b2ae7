#include <algorithm>
#include <array>
#include <cmath>

#include "zoo/models.h"

// Recurrent networks. Sequences are [length, batch, width].

namespace hone::zoo {
namespace {

struct Recurrence {
  Value y;      // [length, batch, hidden]
  Value state;  // [1, batch, hidden]
  Value cell;
};

struct LstmWeights {  // in the layout of the lstm composite; gates i, o, f, c
  Value w;            // [1, 4*hidden, inputs]
  Value r;            // [1, 4*hidden, hidden]
  Value bias;         // [1, 8*hidden]
};

LstmWeights lstm_weights(Net& net, int64_t inputs, int64_t hidden) {
  double w = 1 / std::sqrt(static_cast<double>(inputs));
  double r = 1 / std::sqrt(static_cast<double>(hidden));
  return {net.normal("w", {1, 4 * hidden, inputs}, w), net.normal("r", {1, 4 * hidden, hidden}, r),
          net.normal("bias", {1, 8 * hidden}, 0.1)};
}

std::vector<Value> steps_of(Value x) {
  std::vector<Value> steps;
  for (int64_t t = 0; t < x.dim(0).value(); ++t) steps.push_back(squeeze(slice(x, 0, t, t + 1), 0));
  return steps;
}

Value stacked(std::span<const Value> steps) {
  std::vector<Value> rows;
  for (Value step : steps) rows.push_back(unsqueeze(step, 0));
  return concat(rows, 0);
}

// The steps that the composite stands for, one after another.
Recurrence unrolled_lstm(Value x, const LstmWeights& weights, Value state, Value cell,
                         bool reversed) {
  Value w = squeeze(weights.w, 0), r = squeeze(weights.r, 0);
  std::vector<Value> halves = split(squeeze(weights.bias, 0), 0, 2);
  Value bias = halves[0] + halves[1];
  Value h = squeeze(state, 0), c = squeeze(cell, 0);
  std::vector<Value> steps = steps_of(x);
  if (reversed) std::reverse(steps.begin(), steps.end());
  for (Value& step : steps) {
    Value gates = dot_general(step, w, {}, {}, {1}, {1}) + dot_general(h, r, {}, {}, {1}, {1});
    std::vector<Value> iofc = split(gates + bias, 1, 4);
    c = logistic(iofc[2]) * c + logistic(iofc[0]) * tanh(iofc[3]);
    h = logistic(iofc[1]) * tanh(c);
    step = h;
  }
  if (reversed) std::reverse(steps.begin(), steps.end());
  return {stacked(steps), unsqueeze(h, 0), unsqueeze(c, 0)};
}

// state, cell: [1, batch, hidden]; absent: zeros.
Recurrence lstm(Net& net, std::string_view name, Value x, int64_t hidden, Value state = {},
                Value cell = {}, bool reversed = false) {
  if (!net.b.ok()) return {x, x, x};
  Builder::Scope scope = net.scope(name);
  LstmWeights weights = lstm_weights(net, x.dim(-1).value(), hidden);
  if (net.unroll) {
    if (!state) state = cell = net.b.full(DType::f32, {1, net.batch, hidden}, 0);
    return unrolled_lstm(x, weights, state, cell, reversed);
  }
  std::vector<Value> operands = {x, weights.w, weights.r, weights.bias, Value(), state, cell};
  while (!operands.back()) operands.pop_back();
  std::vector<Value> results =
      net.b.ops(Opcode::lstm, operands, {{"direction", reversed ? "reverse" : "forward"}});
  return {squeeze(results[0], 1), results[1], results[2]};
}

Value embedded(Net& net, std::string_view name, Value tokens, int64_t vocabulary, int64_t width) {
  Builder::Scope scope = net.scope(name);
  return take(net.normal("weight", {vocabulary, width}, 1), tokens);
}

}  // namespace

// Zaremba et al. 2014, the large one.
Outputs lstm_language_model(Net& net) {
  int64_t hidden = net.pick(1500, 16), vocabulary = net.pick(10000, 100);
  Value tokens = net.tokens("tokens", {net.length, net.batch});
  Value x = embedded(net, "embedding", tokens, vocabulary, hidden);
  Outputs outputs(1);
  for (int64_t i = 0; i < net.depth; ++i) {
    std::string name = fmt::format("layer/{}", i);
    Builder::Scope scope = net.scope(name);
    Value state = net.b.parameter("state", DType::f32, {1, net.batch, hidden});
    Value cell = net.b.parameter("cell", DType::f32, {1, net.batch, hidden});
    Recurrence layer = lstm(net, "lstm", x, hidden, state, cell);
    outputs.push_back(layer.state.named("next_state"));
    outputs.push_back(layer.cell.named("next_cell"));
    x = layer.y;
  }
  outputs[0] = linear(net, "output", x, vocabulary).named("logits");
  return outputs;
}

// ---- GNMT (Wu et al. 2016) ----------------------------------------------------------------------

namespace {

// The first layer reads both ways; from the third on, shortcuts.
Value gnmt_encoder(Net& net, Value x, int64_t hidden) {
  Builder::Scope scope = net.scope("encoder");
  Value forward = lstm(net, "0/forward", x, hidden).y;
  Value backward = lstm(net, "0/backward", x, hidden, {}, {}, true).y;
  x = concat({forward, backward}, 2);
  for (int64_t i = 1; i < net.depth; ++i) {
    Value y = lstm(net, fmt::format("{}", i), x, hidden).y;
    x = i >= 2 ? x + y : y;
  }
  return x;
}

// Bahdanau's: every target place weighs the source places. [target, batch, hidden].
Value additive_attention(Net& net, Value query, Value memory, int64_t hidden) {
  Builder::Scope scope = net.scope("attention");
  constexpr LinearSpec kPlain = {.bias = false};
  Value q = unsqueeze(linear(net, "query", query, hidden), 1);            // [t, 1, n, h]
  Value k = unsqueeze(linear(net, "memory", memory, hidden, kPlain), 0);  // [1, s, n, h]
  Value scores = linear(net, "score", tanh(q + k), 1, kPlain);            // [t, s, n, 1]
  return einsum("tsn,snh->tnh", {softmax(squeeze(scores, 3), 1), memory});
}

// The first layer's result asks for the context that the others read beside it.
Value gnmt_decoder(Net& net, Value x, Value memory, int64_t hidden) {
  Builder::Scope scope = net.scope("decoder");
  x = lstm(net, "0", x, hidden).y;
  Value context = additive_attention(net, x, memory, hidden);
  for (int64_t i = 1; i < net.depth; ++i) {
    Value y = lstm(net, fmt::format("{}", i), concat({x, context}, 2), hidden).y;
    x = i >= 2 ? x + y : y;
  }
  return x;
}

}  // namespace

// Source and (given) target of the same length.
Outputs gnmt(Net& net) {
  int64_t hidden = net.pick(1024, 16), vocabulary = net.pick(32000, 100);
  Value source = net.tokens("source", {net.length, net.batch});
  Value target = net.tokens("target", {net.length, net.batch});
  Value memory =
      gnmt_encoder(net, embedded(net, "source_embedding", source, vocabulary, hidden), hidden);
  Value x = embedded(net, "target_embedding", target, vocabulary, hidden);
  x = gnmt_decoder(net, x, memory, hidden);
  return {linear(net, "output", x, vocabulary).named("logits")};
}

// ---- NAS-RNN (Zoph and Le 2016) -----------------------------------------------------------------

namespace {

// The cell found by search: a tree over eight gates, each a sum (one a product) of input and state.
// input: [batch, 8*hidden], already projected; w: [8*hidden, hidden]. The next state and cell.
std::array<Value, 2> nas_cell(Value input, Value w, Value state, Value cell) {
  std::vector<Value> x = split(input, 1, 8);
  std::vector<Value> h = split(dot_general(state, w, {}, {}, {1}, {1}), 1, 8);
  Value a = tanh(logistic(x[0] + h[0]) * relu(x[1] + h[1]));
  Value b = tanh(logistic(x[2] + h[2]) + relu(x[3] * h[3]));
  Value c = tanh(tanh(x[4] + h[4]) * logistic(x[5] + h[5]));
  Value d = logistic(tanh(x[6] + h[6]) + logistic(x[7] + h[7]));
  Value next_cell = tanh(a + cell) * b;
  return {tanh(tanh(next_cell) * tanh(c + d)), next_cell};
}

Value nas_weight(Net& net, int64_t hidden) {
  return net.normal("w", {8 * hidden, hidden}, 1 / std::sqrt(static_cast<double>(hidden)));
}

// Step by step, or by a scan whose body holds the recurrent weight under the same name.
Value nas_layer(Net& net, std::string_view name, Value x, int64_t hidden) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  Value projected = linear(net, "input", x, 8 * hidden);
  Value zeros = net.b.full(DType::f32, {net.batch, hidden}, 0);
  if (net.unroll) {
    Value w = nas_weight(net, hidden);
    std::array<Value, 2> last = {zeros, zeros};
    std::vector<Value> steps = steps_of(projected);
    for (Value& step : steps) {
      last = nas_cell(step, w, last[0], last[1]);
      step = last[0];
    }
    return stacked(steps);
  }
  auto body = [&](Builder& region, std::span<const Value> args) -> std::vector<Value> {
    Builder::Scope inner = region.scope(name);
    Net here = net.inside(region);
    auto [state, cell] = nas_cell(args[2], nas_weight(here, hidden), args[0], args[1]);
    return {state, cell, state};
  };
  return scan(std::vector{zeros, zeros}, std::vector{projected}, body)[2];
}

}  // namespace

Outputs nas_rnn(Net& net) {
  int64_t hidden = net.pick(1080, 16), vocabulary = net.pick(10000, 100);
  Value tokens = net.tokens("tokens", {net.length, net.batch});
  Value x = embedded(net, "embedding", tokens, vocabulary, hidden);
  for (int64_t i = 0; i < net.depth; ++i) x = nas_layer(net, fmt::format("layer/{}", i), x, hidden);
  return {linear(net, "output", x, vocabulary).named("logits")};
}

}  // namespace hone::zoo
