#include "learn/layers.h"

#include <cmath>

#include "base/hash.h"

namespace hone {
namespace {

// The number of features; 1, and an error, if it is open.
int64_t features(Network& net, Value x) {
  const Dim last = x.dim(-1);
  if (net.b.ok() && last.is_static()) return last.value();
  net.b.fail(bad_input("a layer needs to know how many features {} has", x.type().to_string()));
  return 1;
}

// [batch, length, heads * size] -> [batch, heads, length, size]
Value split_heads(Value x, int64_t heads) {
  const int64_t size = x.dim(-1).value() / heads;
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, size}), {0, 2, 1, 3});
}

Value self_attention(Network& net, Value x, int64_t heads, Value mask) {
  const Builder::Scope scope = net.scope("attention");
  const int64_t width = features(net, x);
  std::vector<Value> operands;
  for (std::string_view part : {"query", "key", "value"})
    operands.push_back(split_heads(linear(net, part, x, width), heads));
  if (mask) operands.push_back(mask);
  const Value mixed = transpose(net.b.op(Opcode::attention, operands), {0, 2, 1, 3});
  return linear(net, "output", reshape(mixed, x.dims()), width);
}

}  // namespace

Value linear(Network& net, std::string_view name, Value x, int64_t outputs, bool has_bias) {
  if (!net.b.ok()) return x;
  const Builder::Scope scope = net.scope(name);
  const int64_t inputs = features(net, x);
  Value y = matmul(x, net.weight("weight", {inputs, outputs}, Initializer::he(inputs)));
  if (has_bias) y = y + net.weight("bias", {outputs}, Initializer::constant(0));
  return net.named(y, "y");
}

Value mlp(Network& net, std::string_view name, Value x, std::span<const int64_t> widths) {
  const Builder::Scope scope = net.scope(name);
  for (size_t i = 0; i < widths.size(); ++i)
    x = linear(net, std::to_string(i), i == 0 ? x : relu(x), widths[i]);
  return x;
}

Value mlp(Network& net, std::string_view name, Value x, std::initializer_list<int64_t> widths) {
  return mlp(net, name, x, std::span(widths.begin(), widths.size()));
}

Value embedding(Network& net, std::string_view name, Value indices, int64_t rows, int64_t width) {
  const Builder::Scope scope = net.scope(name);
  return take(net.weight("weight", {rows, width}, Initializer::normal(1)), indices);
}

Value layer_norm(Network& net, std::string_view name, Value x, double epsilon) {
  if (!net.b.ok()) return x;
  const Builder::Scope scope = net.scope(name);
  const Dims dims = {features(net, x)};
  return layer_norm(x, net.weight("scale", dims, Initializer::constant(1)),
                    net.weight("bias", dims, Initializer::constant(0)), -1, epsilon);
}

Value rms_norm(Network& net, std::string_view name, Value x, double epsilon) {
  if (!net.b.ok()) return x;
  const Builder::Scope scope = net.scope(name);
  return rms_norm(x, net.weight("scale", {features(net, x)}, Initializer::constant(1)), -1,
                  epsilon);
}

Value dropout(Network& net, Value x, double probability) {
  if (!net.b.ok()) return x;
  if (!(probability >= 0 && probability < 1)) {
    net.b.fail(
        bad_input("the probability of a dropout is {}; it is at least 0 and below 1", probability));
    return x;
  }
  if (!net.is_training() || probability == 0) return x;
  const auto threshold = static_cast<int64_t>(std::floor(probability * 0x1p32));
  const Value limit =
      net.b.constant(Tensor::from_integers(Type::scalar(DType::u32), std::vector{threshold}));
  const Value stays = compare("ge", net.random_bits(x.dims()), limit);
  return select(stays, x * (1 / (1 - probability)), net.b.scalar(x.dtype(), 0));
}

Value lstm(Network& net, std::string_view name, Value x, int64_t hidden) {
  if (!net.b.ok()) return x;
  const Builder::Scope scope = net.scope(name);
  const Initializer begin = Initializer::uniform(1 / std::sqrt(static_cast<double>(hidden)));
  const Value w = net.weight("weight", {1, 4 * hidden, features(net, x)}, begin);
  const Value r = net.weight("recurrent", {1, 4 * hidden, hidden}, begin);
  const Value bias = net.weight("bias", {1, 8 * hidden}, Initializer::constant(0));
  return squeeze(net.b.ops(Opcode::lstm, std::vector{x, w, r, bias})[0], 1);
}

Value transformer_layer(Network& net, std::string_view name, Value x,
                        const TransformerOptions& options, Value mask) {
  if (!net.b.ok()) return x;
  const Builder::Scope scope = net.scope(name);
  const int64_t width = features(net, x);
  if (x.rank() != 3 || options.heads < 1 || width % options.heads != 0) {
    net.b.fail(
        bad_input("a transformer layer takes [batch, length, width] with a width that {} "
                  "heads divide, not {}",
                  options.heads, x.type().to_string()));
    return x;
  }
  const Value mixed = self_attention(net, layer_norm(net, "norm1", x), options.heads, mask);
  x = x + dropout(net, mixed, options.dropout);
  const Value wide = gelu(linear(net, "wide", layer_norm(net, "norm2", x),
                                 options.hidden > 0 ? options.hidden : 4 * width));
  return x + dropout(net, linear(net, "narrow", wide, width), options.dropout);
}

}  // namespace hone
