#include "zoo/models.h"

// Convolutional networks without shortcuts.

namespace hone::zoo {
namespace {

Value flat_classifier(Net& net, Value x, int64_t hidden) {
  x = flatten(x, 1);
  x = relu(linear(net, "classifier/1", x, hidden, {.gain = kHe}));
  x = relu(linear(net, "classifier/2", x, hidden, {.gain = kHe}));
  return linear(net, "classifier/3", x, net.classes).named("logits");
}

// Simonyan and Zisserman 2014: five stages of 3x3 convolutions, a pool after each.
Outputs vgg(Net& net, std::initializer_list<int64_t> convolutions) {
  Value x = net.images();
  int64_t stage = 1;
  for (int64_t count : convolutions) {
    int64_t channels = net.width(std::min<int64_t>(512, 32 << stage));
    for (int64_t i = 1; i <= net.blocks(count); ++i)
      x = relu(conv(net, fmt::format("conv{}_{}", stage, i), x, channels,
                    {.kernel = {3}, .bias = true}));
    x = max_pool(x, 2, 2);
    ++stage;
  }
  return {flat_classifier(net, x, net.width(4096))};
}

// Iandola et al. 2016: a 1x1 squeeze feeds a 1x1 and a 3x3 expansion.
Value fire(Net& net, std::string_view name, Value x, int64_t squeeze, int64_t expand) {
  Builder::Scope scope = net.scope(name);
  x = relu(conv(net, "squeeze", x, net.width(squeeze), {.kernel = {1}, .bias = true}));
  Value left = conv(net, "expand1x1", x, net.width(expand), {.kernel = {1}, .bias = true});
  Value right = conv(net, "expand3x3", x, net.width(expand), {.kernel = {3}, .bias = true});
  return concat({relu(left), relu(right)}, 1);
}

// 3x3 with stride 2, keeping a last incomplete window.
Value ceil_pool(Value x) {
  if (!x.builder().ok()) return x;
  int64_t left = (x.dim(2).value() - 3) % 2;
  return max_pool(x,
                  PoolOptions{.window = {3, 3}, .stride = {2, 2}, .padding = {0, 0, left, left}});
}

}  // namespace

Outputs mlp(Net& net) {
  Value x = net.b.parameter("x", DType::f32, {net.batch, net.pick(784, 16)});
  for (int64_t i = 0; i < net.depth; ++i)
    x = relu(linear(net, fmt::format("hidden/{}", i), x, net.pick(512, 32), {.gain = kHe}));
  return {linear(net, "output", x, 10).named("logits")};
}

// Krizhevsky's "one weird trick" variant (2014).
Outputs alexnet(Net& net) {
  Value x = net.images();
  x = relu(conv(net, "conv1", x, net.width(64),
                {.kernel = {11}, .stride = 4, .padding = {2}, .bias = true}));
  x = max_pool(x, 3, 2);
  x = relu(conv(net, "conv2", x, net.width(192), {.kernel = {5}, .bias = true}));
  x = max_pool(x, 3, 2);
  x = relu(conv(net, "conv3", x, net.width(384), {.kernel = {3}, .bias = true}));
  x = relu(conv(net, "conv4", x, net.width(256), {.kernel = {3}, .bias = true}));
  x = relu(conv(net, "conv5", x, net.width(256), {.kernel = {3}, .bias = true}));
  x = max_pool(x, 3, 2);
  return {flat_classifier(net, x, net.width(4096))};
}

Outputs vgg16(Net& net) { return vgg(net, {2, 2, 3, 3, 3}); }
Outputs vgg19(Net& net) { return vgg(net, {2, 2, 4, 4, 4}); }

Outputs squeezenet(Net& net) {
  Value x = net.images();
  x = relu(conv(net, "conv1", x, net.width(96),
                {.kernel = {7}, .stride = 2, .padding = {0}, .bias = true}));
  x = ceil_pool(x);
  x = fire(net, "fire2", x, 16, 64);
  x = fire(net, "fire3", x, 16, 64);
  x = fire(net, "fire4", x, 32, 128);
  x = ceil_pool(x);
  x = fire(net, "fire5", x, 32, 128);
  x = fire(net, "fire6", x, 48, 192);
  x = fire(net, "fire7", x, 48, 192);
  x = fire(net, "fire8", x, 64, 256);
  x = ceil_pool(x);
  x = fire(net, "fire9", x, 64, 256);
  x = relu(conv(net, "conv10", x, net.classes, {.kernel = {1}, .bias = true}));
  return {flatten(global_average_pool(x), 1).named("logits")};
}

}  // namespace hone::zoo
