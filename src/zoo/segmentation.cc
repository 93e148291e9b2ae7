#include <cmath>

#include "zoo/models.h"

// U-Net (Ronneberger et al. 2015): valid convolutions, so the result is smaller than the image.

namespace hone::zoo {
namespace {

Value double_conv(Net& net, std::string_view name, Value x, int64_t channels) {
  Builder::Scope scope = net.scope(name);
  x = relu(conv(net, "conv1", x, channels, {.kernel = {3}, .padding = {0}, .bias = true}));
  return relu(conv(net, "conv2", x, channels, {.kernel = {3}, .padding = {0}, .bias = true}));
}

// Twice the size by a 2x2 convolution over the image spread with zeros.
Value up_conv(Net& net, Value x, int64_t channels) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope("up");
  int64_t inputs = x.dim(1).value();
  Value w = net.normal("weight", {channels, inputs, 2, 2}, 1 / std::sqrt(1.0 * inputs));
  Value y = conv(x, w, ConvOptions{.padding = {1, 1, 1, 1}, .input_dilation = {2, 2}});
  return y + reshape(net.normal("bias", {channels}, 0.1), {channels, 1, 1});
}

// The middle of `x`, as large as `like`.
Value crop(Value x, Value like) {
  for (int axis : {2, 3}) {
    Dim low = floordiv(x.dim(axis) - like.dim(axis), 2);
    x = slice(x, axis, low, low + like.dim(axis));
  }
  return x;
}

}  // namespace

Outputs unet(Net& net) {
  int64_t width = net.width(64);
  std::vector<Value> skips;
  Value x = net.images(1);
  for (int64_t i = 0; i < net.depth; ++i) {
    x = double_conv(net, fmt::format("down/{}", i), x, width << i);
    skips.push_back(x);
    x = max_pool(x, 2, 2);
  }
  x = double_conv(net, "bottom", x, width << net.depth);
  for (int64_t i = net.depth - 1; i >= 0; --i) {
    Builder::Scope scope = net.scope("up", i);
    Value up = up_conv(net, x, width << i);
    x = double_conv(net, "merge", concat({crop(skips[static_cast<size_t>(i)], up), up}, 1),
                    width << i);
  }
  return {conv(net, "output", x, 2, {.kernel = {1}, .bias = true, .gain = 1}).named("logits")};
}

}  // namespace hone::zoo
