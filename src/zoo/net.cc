#include "zoo/net.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/rng.h"

namespace hone {
namespace {

std::span<float> as_floats(std::span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

Type f32_type(const Ints& dims) { return Type::get(DType::f32, Dims(dims.begin(), dims.end())); }

// `values` for each of `rank` dims, from one number for all, or one for each.
Ints per_dim(const Ints& values, size_t rank) {
  return values.size() == 1 ? Ints(rank, values[0]) : values;
}

// The op itself allows an empty result, but no model means one.
void need_pixels(Value y, Value x) {
  for (int i = 2; i < y.rank(); ++i)
    if (y.dim(i).is(0))
      y.builder().fail(bad_input("nothing is left of {}: the image or length is too small",
                                 x.type().to_string()));
}

Ints twice(const Ints& values) {
  Ints both = values;
  both.insert(both.end(), values.begin(), values.end());
  return both;
}

}  // namespace

Net Net::inside(Builder& region) const {
  Net net(region, seed_);
  net.tiny = tiny;
  net.batch = batch;
  net.length = length;
  net.max_length = max_length;
  net.image = image;
  net.depth = depth;
  net.classes = classes;
  net.unroll = unroll;
  return net;
}

int64_t Net::width(int64_t channels) const {
  return tiny ? std::max<int64_t>(8, (channels / 8 + 3) / 4 * 4) : channels;
}

Builder::Scope Net::scope(std::string_view name, int64_t index) {
  return b.scope(fmt::format("{}/{}", name, index));
}

Value Net::normal(std::string_view name, const Ints& dims, double deviation, double mean) {
  Type type = f32_type(dims);
  uint64_t seed = Hasher(seed_).add(b.prefix()).add(name).value();
  uint64_t identity = Hasher(seed).add("normal").add(deviation).add(mean).value();
  auto fill = [=](std::span<std::byte> bytes) {
    std::span<float> out = as_floats(bytes);
    fill_normal(out, seed, static_cast<float>(deviation));
    if (mean != 0)
      for (float& x : out) x += static_cast<float>(mean);
  };
  return b.constant(Tensor::lazy(type, identity, fill), name);
}

Value Net::uniform(std::string_view name, const Ints& dims, double low, double high) {
  Type type = f32_type(dims);
  uint64_t seed = Hasher(seed_).add(b.prefix()).add(name).value();
  uint64_t identity = Hasher(seed).add("uniform").add(low).add(high).value();
  auto fill = [=](std::span<std::byte> bytes) {
    fill_uniform(as_floats(bytes), seed, static_cast<float>(low), static_cast<float>(high));
  };
  return b.constant(Tensor::lazy(type, identity, fill), name);
}

Value Net::images(int64_t channels) {
  return b.parameter("image", DType::f32, {batch, channels, image, image});
}

Value Net::tokens(std::string_view name, const Dims& dims) {
  return b.parameter(name, DType::i64, dims);
}

// ---- Layers -------------------------------------------------------------------------------------

Value conv(Net& net, std::string_view name, Value x, int64_t channels, const ConvSpec& spec) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  size_t rank = static_cast<size_t>(x.rank() - 2);
  Ints kernel = per_dim(spec.kernel, rank);
  Ints padding = per_dim(spec.padding, rank);
  if (padding.empty())
    for (int64_t k : kernel) padding.push_back((k - 1) / 2 * spec.dilation);

  Ints dims = {channels, x.dim(1).value() / spec.groups};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  int64_t inputs = dims[1];
  for (int64_t k : kernel) inputs *= k;
  Value w = net.normal("weight", dims, spec.gain / std::sqrt(static_cast<double>(inputs)));
  Value y = conv(x, w,
                 ConvOptions{.stride = Ints(rank, spec.stride),
                             .padding = twice(padding),
                             .dilation = Ints(rank, spec.dilation),
                             .groups = spec.groups});
  need_pixels(y, x);
  if (!spec.bias) return y;
  Dims channel_dims(rank + 1, 1);
  channel_dims[0] = channels;
  return y + reshape(net.normal("bias", {channels}, 0.1, spec.bias_mean), channel_dims);
}

Value batch_norm(Net& net, std::string_view name, Value x, const BatchNormSpec& spec) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  Ints channels = {x.dim(1).value()};
  Value scale = net.normal("weight", channels, 0.1 * spec.gain, spec.gain);
  Value bias = net.normal("bias", channels, 0.1);
  Value mean = net.normal("running_mean", channels, 0.1);
  Value variance = net.uniform("running_var", channels, 0.6, 1.4);
  return batch_norm(x, scale, bias, mean, variance, spec.epsilon);
}

Value conv_bn(Net& net, std::string_view name, Value x, int64_t channels, const ConvSpec& spec,
              const BatchNormSpec& norm) {
  Builder::Scope scope = net.scope(name);
  return batch_norm(net, "bn", conv(net, "conv", x, channels, spec), norm);
}

Value linear(Net& net, std::string_view name, Value x, int64_t outputs, const LinearSpec& spec) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  int64_t inputs = x.dim(-1).value();
  double deviation = spec.gain / std::sqrt(static_cast<double>(inputs));
  Value w = net.normal("weight", {outputs, inputs}, deviation);
  Value y = dot_general(x, w, {}, {}, {x.rank() - 1}, {1});
  return spec.bias ? y + net.normal("bias", {outputs}, 0.1) : y;
}

Value layer_norm(Net& net, std::string_view name, Value x, double epsilon) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope(name);
  Ints dims = {x.dim(-1).value()};
  Value scale = net.normal("weight", dims, 0.1, 1);
  return layer_norm(x, scale, net.normal("bias", dims, 0.1), -1, epsilon);
}

Value max_pool(Value x, int64_t window, int64_t stride, int64_t padding) {
  Value y = max_pool(
      x, PoolOptions{
             .window = Ints(2, window), .stride = Ints(2, stride), .padding = Ints(4, padding)});
  need_pixels(y, x);
  return y;
}

Value avg_pool(Value x, int64_t window, int64_t stride, int64_t padding, bool count_padding) {
  Value y = avg_pool(x, PoolOptions{.window = Ints(2, window),
                                    .stride = Ints(2, stride),
                                    .padding = Ints(4, padding),
                                    .count_padding = count_padding});
  need_pixels(y, x);
  return y;
}

Value relu6(Value x) { return minimum(relu(x), 6); }

Value classifier(Net& net, std::string_view name, Value x) {
  return linear(net, name, flatten(global_average_pool(x), 1), net.classes).named("logits");
}

Value split_heads(Value x, int64_t heads) {
  return transpose(reshape(x, {x.dim(0), x.dim(1), heads, -1}), {0, 2, 1, 3});
}

Value merge_heads(Value x) { return flatten(transpose(x, {0, 2, 1, 3}), 2); }

}  // namespace hone
