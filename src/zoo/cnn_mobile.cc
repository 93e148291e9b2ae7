#include <algorithm>
#include <array>

#include "zoo/models.h"

// Convolutional networks for small devices: depthwise convolutions and inverted residuals.

namespace hone::zoo {
namespace {

using Activation = Value (*)(Value);

// The nearest multiple of 8 that is not more than a tenth below.
int64_t round_to_eight(int64_t channels) {
  int64_t rounded = std::max<int64_t>(8, (channels + 4) / 8 * 8);
  return rounded * 10 < channels * 9 ? rounded + 8 : rounded;
}

// Scales the channels by a gate computed from their averages (Hu et al. 2017). The bias opens the
// gates, as training does, so that deep stacks keep their scale.
Value squeeze_excite(Net& net, Value x, int64_t squeezed, Activation act, Activation gate) {
  if (!net.b.ok()) return x;
  Builder::Scope scope = net.scope("se");
  int64_t channels = x.dim(1).value();
  Value s = global_average_pool(x);
  s = act(conv(net, "reduce", s, squeezed, {.kernel = {1}, .bias = true}));
  s = conv(net, "expand", s, channels, {.kernel = {1}, .bias = true, .gain = 1, .bias_mean = 2});
  return x * gate(s);
}

struct InvertedResidual {
  int64_t kernel;
  int64_t expanded;
  int64_t channels;
  int64_t stride;
  Activation act;
  int64_t squeezed = 0;  // channels inside of the squeeze-and-excite; 0: none
  Activation squeeze_act = relu;
  Activation gate = logistic;
  double epsilon = 1e-5;
};

// Sandler et al. 2018: expand, filter each channel, project linearly.
Value inverted_residual(Net& net, Value x, const InvertedResidual& block) {
  if (!net.b.ok()) return x;
  BatchNormSpec norm = {.epsilon = block.epsilon};
  Value y = x;
  if (!x.dim(1).is(block.expanded))
    y = block.act(conv_bn(net, "expand", y, block.expanded, {.kernel = {1}, .gain = 1}, norm));
  y = conv_bn(net, "depthwise", y, block.expanded,
              {.kernel = {block.kernel}, .stride = block.stride, .groups = block.expanded}, norm);
  y = block.act(y);
  if (block.squeezed > 0) y = squeeze_excite(net, y, block.squeezed, block.squeeze_act, block.gate);
  bool shortcut = block.stride == 1 && x.dim(1).is(block.channels);
  if (shortcut) norm.gain = 0.5;
  y = conv_bn(net, "project", y, block.channels, {.kernel = {1}}, norm);
  return shortcut ? x + y : y;
}

}  // namespace

Outputs mobilenet_v2(Net& net) {
  struct Row {
    int64_t expand, channels, blocks, stride;
  };
  constexpr std::array<Row, 7> kTable = {{{1, 16, 1, 1},
                                          {6, 24, 2, 2},
                                          {6, 32, 3, 2},
                                          {6, 64, 4, 2},
                                          {6, 96, 3, 1},
                                          {6, 160, 3, 2},
                                          {6, 320, 1, 1}}};
  int64_t width = net.width(32);
  Value x = relu6(conv_bn(net, "stem", net.images(), width, {.kernel = {3}, .stride = 2}));
  for (size_t stage = 0; stage < kTable.size(); ++stage) {
    const Row& row = kTable[stage];
    for (int64_t i = 0; i < net.blocks(row.blocks); ++i) {
      Builder::Scope scope = net.scope(fmt::format("stage{}", stage), i);
      int64_t channels = net.width(row.channels);
      x = inverted_residual(net, x,
                            {.kernel = 3,
                             .expanded = width * row.expand,
                             .channels = channels,
                             .stride = i == 0 ? row.stride : 1,
                             .act = relu6});
      width = channels;
    }
  }
  x = relu6(conv_bn(net, "head", x, net.width(1280), {.kernel = {1}}));
  return {classifier(net, "classifier", x)};
}

// Howard et al. 2019, the large one.
Outputs mobilenet_v3(Net& net) {
  struct Row {
    int64_t kernel, expanded, channels;
    bool squeeze;
    Activation act;
    int64_t stride;
  };
  const std::array<Row, 15> kTable = {{{3, 16, 16, false, relu, 1},
                                       {3, 64, 24, false, relu, 2},
                                       {3, 72, 24, false, relu, 1},
                                       {5, 72, 40, true, relu, 2},
                                       {5, 120, 40, true, relu, 1},
                                       {5, 120, 40, true, relu, 1},
                                       {3, 240, 80, false, hard_swish, 2},
                                       {3, 200, 80, false, hard_swish, 1},
                                       {3, 184, 80, false, hard_swish, 1},
                                       {3, 184, 80, false, hard_swish, 1},
                                       {3, 480, 112, true, hard_swish, 1},
                                       {3, 672, 112, true, hard_swish, 1},
                                       {5, 672, 160, true, hard_swish, 2},
                                       {5, 960, 160, true, hard_swish, 1},
                                       {5, 960, 160, true, hard_swish, 1}}};
  constexpr BatchNormSpec kNorm = {.epsilon = 1e-3};
  Value x = conv_bn(net, "stem", net.images(), net.width(16), {.kernel = {3}, .stride = 2}, kNorm);
  x = hard_swish(x);
  for (size_t i = 0; i < kTable.size(); ++i) {
    const Row& row = kTable[i];
    Builder::Scope scope = net.scope("blocks", static_cast<int64_t>(i));
    int64_t expanded = net.width(row.expanded);
    x = inverted_residual(net, x,
                          {.kernel = row.kernel,
                           .expanded = expanded,
                           .channels = net.width(row.channels),
                           .stride = row.stride,
                           .act = row.act,
                           .squeezed = row.squeeze ? round_to_eight(expanded / 4) : 0,
                           .gate = hard_sigmoid,
                           .epsilon = kNorm.epsilon});
  }
  x = hard_swish(conv_bn(net, "head", x, net.width(960), {.kernel = {1}}, kNorm));
  x = flatten(global_average_pool(x), 1);
  x = hard_swish(linear(net, "classifier/0", x, net.width(1280), {.gain = kHe}));
  return {linear(net, "classifier/1", x, net.classes).named("logits")};
}

// Tan and Le 2019.
Outputs efficientnet_b0(Net& net) {
  struct Row {
    int64_t expand, kernel, stride, channels, blocks;
  };
  constexpr std::array<Row, 7> kTable = {{{1, 3, 1, 16, 1},
                                          {6, 3, 2, 24, 2},
                                          {6, 5, 2, 40, 2},
                                          {6, 3, 2, 80, 3},
                                          {6, 5, 1, 112, 3},
                                          {6, 5, 2, 192, 4},
                                          {6, 3, 1, 320, 1}}};
  int64_t width = net.width(32);
  Value x = silu(conv_bn(net, "stem", net.images(), width, {.kernel = {3}, .stride = 2}));
  for (size_t stage = 0; stage < kTable.size(); ++stage) {
    const Row& row = kTable[stage];
    for (int64_t i = 0; i < net.blocks(row.blocks); ++i) {
      Builder::Scope scope = net.scope(fmt::format("stage{}", stage), i);
      int64_t channels = net.width(row.channels);
      x = inverted_residual(net, x,
                            {.kernel = row.kernel,
                             .expanded = width * row.expand,
                             .channels = channels,
                             .stride = i == 0 ? row.stride : 1,
                             .act = silu,
                             .squeezed = std::max<int64_t>(1, width / 4),
                             .squeeze_act = silu});
      width = channels;
    }
  }
  x = silu(conv_bn(net, "head", x, net.width(1280), {.kernel = {1}}));
  return {classifier(net, "classifier", x)};
}

// ---- ShuffleNet v2 (Ma et al. 2018) -------------------------------------------------------------

namespace {

Value channel_shuffle(Value x, int64_t groups) {
  Dims dims = x.dims();
  Value y = reshape(x, {dims[0], groups, -1, dims[2], dims[3]});
  return reshape(transpose(y, {0, 2, 1, 3, 4}), dims);
}

Value shuffle_branch(Net& net, Value x, int64_t channels, int64_t stride) {
  x = relu(conv_bn(net, "1", x, channels, {.kernel = {1}}));
  x = conv_bn(net, "2", x, channels, {.kernel = {3}, .stride = stride, .groups = channels});
  return relu(conv_bn(net, "3", x, channels, {.kernel = {1}, .gain = 1}));
}

Value shuffle_unit(Net& net, Value x, int64_t channels, bool first) {
  if (!net.b.ok()) return x;
  if (!first) {
    std::vector<Value> halves = split(x, 1, 2);
    return channel_shuffle(concat({halves[0], shuffle_branch(net, halves[1], channels / 2, 1)}, 1),
                           2);
  }
  int64_t inputs = x.dim(1).value();
  Value left =
      conv_bn(net, "shortcut/1", x, inputs, {.kernel = {3}, .stride = 2, .groups = inputs});
  left = relu(conv_bn(net, "shortcut/2", left, channels / 2, {.kernel = {1}, .gain = 1}));
  return channel_shuffle(concat({left, shuffle_branch(net, x, channels / 2, 2)}, 1), 2);
}

}  // namespace

Outputs shufflenet_v2(Net& net) {
  struct Row {
    int64_t channels, blocks;
  };
  constexpr std::array<Row, 3> kTable = {{{116, 4}, {232, 8}, {464, 4}}};
  Value x = conv_bn(net, "conv1", net.images(), net.width(24), {.kernel = {3}, .stride = 2});
  x = max_pool(relu(x), 3, 2, 1);
  for (size_t stage = 0; stage < kTable.size(); ++stage) {
    for (int64_t i = 0; i < net.blocks(kTable[stage].blocks); ++i) {
      Builder::Scope scope = net.scope(fmt::format("stage{}", stage + 2), i);
      x = shuffle_unit(net, x, net.width(kTable[stage].channels), i == 0);
    }
  }
  x = relu(conv_bn(net, "conv5", x, net.width(1024), {.kernel = {1}}));
  return {classifier(net, "fc", x)};
}

}  // namespace hone::zoo
