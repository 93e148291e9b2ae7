#include "zoo/models.h"

// NASNet-A (Zoph et al. 2017), the mobile one: cells found by search, each reading the two before
// it.

namespace hone::zoo {
namespace {

constexpr double kEpsilon = 1e-3;

// relu, depthwise, pointwise, norm; twice, the stride in the first.
Value separable(Net& net, std::string_view name, Value x, int64_t channels, int64_t kernel,
                int64_t stride = 1) {
  Builder::Scope scope = net.scope(name);
  for (int64_t i = 1; i <= 2 && net.b.ok(); ++i) {
    Builder::Scope half = net.scope(fmt::format("{}", i));
    x = conv(net, "depthwise", relu(x), x.dim(1).value(),
             {.kernel = {kernel}, .stride = stride, .groups = x.dim(1).value()});
    x = conv(net, "pointwise", x, channels, {.kernel = {1}, .gain = 1});
    x = batch_norm(net, "bn", x, {.gain = 0.5, .epsilon = kEpsilon});
    stride = 1;
  }
  return x;
}

Value relu_conv_bn(Net& net, std::string_view name, Value x, int64_t channels) {
  return conv_bn(net, name, relu(x), channels, {.kernel = {1}, .gain = 1}, {.epsilon = kEpsilon});
}

// Halves the image without losing what lies between: half of the channels see the even pixels, the
// others the odd ones.
Value factorized_reduction(Net& net, Value x, int64_t channels) {
  Builder::Scope scope = net.scope("reduce");
  x = relu(x);
  Value even = conv(net, "even", avg_pool(x, 1, 2), channels / 2, {.kernel = {1}});
  Value odd = pad(x, {0, 0, -1, -1}, {0, 0, 1, 1});
  odd = conv(net, "odd", avg_pool(odd, 1, 2), channels - channels / 2, {.kernel = {1}});
  return batch_norm(net, "bn", concat({even, odd}, 1), {.epsilon = kEpsilon});
}

// The cell before the last, brought to the last one's image size and to `channels`.
Value adjusted(Net& net, Value previous, Value x, int64_t channels) {
  if (!(previous.dim(2) == x.dim(2))) return factorized_reduction(net, previous, channels);
  return relu_conv_bn(net, "previous_1x1", previous, channels);
}

Value smooth(Value x, int64_t stride = 1) { return avg_pool(x, 3, stride, 1, false); }

Value normal_cell(Net& net, Value x, Value previous, int64_t channels) {
  Value left = adjusted(net, previous, x, channels);
  Value right = relu_conv_bn(net, "1x1", x, channels);
  Value a = separable(net, "0/left", right, channels, 5);
  a = a + separable(net, "0/right", left, channels, 3);
  Value b = separable(net, "1/left", left, channels, 5);
  b = b + separable(net, "1/right", left, channels, 3);
  Value c = smooth(right) + left;
  Value d = smooth(left) + smooth(left);
  Value e = separable(net, "4/left", right, channels, 3) + right;
  return concat({left, a, b, c, d, e}, 1);
}

Value reduction_cell(Net& net, Value x, Value left, int64_t channels) {
  Value right = relu_conv_bn(net, "1x1", x, channels);
  Value a = separable(net, "0/left", right, channels, 5, 2);
  a = a + separable(net, "0/right", left, channels, 7, 2);
  Value b = max_pool(right, 3, 2, 1) + separable(net, "1/right", left, channels, 7, 2);
  Value c = smooth(right, 2) + separable(net, "2/right", left, channels, 5, 2);
  Value d = smooth(a) + b;
  Value e = separable(net, "4/left", a, channels, 3) + max_pool(right, 3, 2, 1);
  return concat({b, c, d, e}, 1);
}

// The last two cells.
struct Trail {
  Value previous;
  Value x;
  void push(Value next) {
    previous = x;
    x = next;
  }
};

}  // namespace

Outputs nasnet_a(Net& net) {
  int64_t channels = net.pick(44, 8);
  Value stem = conv_bn(net, "stem", net.images(), net.width(32),
                       {.kernel = {3}, .stride = 2, .padding = {0}}, {.epsilon = kEpsilon});
  Trail cells = {stem, stem};
  {
    Builder::Scope scope = net.scope("stem/0");
    cells.push(reduction_cell(net, stem, stem, channels / 4));
  }
  {
    Builder::Scope scope = net.scope("stem/1");
    Value left = adjusted(net, stem, cells.x, channels / 2);
    cells.push(reduction_cell(net, cells.x, left, channels / 2));
  }
  for (int64_t stage = 0; stage < 3; ++stage, channels *= 2) {
    if (stage > 0) {
      Builder::Scope scope = net.scope("reduction", stage);
      Value left = adjusted(net, cells.previous, cells.x, channels);
      cells.push(reduction_cell(net, cells.x, left, channels));
    }
    for (int64_t i = 0; i < net.blocks(4); ++i) {
      Builder::Scope scope = net.scope(fmt::format("stage{}", stage), i);
      cells.push(normal_cell(net, cells.x, cells.previous, channels));
    }
  }
  return {classifier(net, "classifier", relu(cells.x))};
}

}  // namespace hone::zoo
