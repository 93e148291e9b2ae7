#include <array>

#include "zoo/models.h"

// Convolutional networks with shortcuts.

namespace hone::zoo {
namespace {

// ---- ResNet (He et al. 2015; stride in the 3x3 convolution) and ResNeXt (Xie et al. 2016) -------

struct ResNetTable {
  std::array<int64_t, 4> blocks;
  bool bottleneck;
  int64_t groups = 1;
  int64_t inner = 1;  // channels of the 3x3 convolution, as a multiple of the stage's
};

// Keeps a sum of many branches at the scale of its terms.
constexpr BatchNormSpec kBranchEnd = {.gain = 0.4};

Value bottleneck(Net& net, Value x, int64_t channels, int64_t stride, const ResNetTable& table) {
  int64_t inner = channels * table.inner;
  int64_t groups = table.groups == 1 ? 1 : net.pick(table.groups, 4);
  Value y = relu(batch_norm(net, "bn1", conv(net, "conv1", x, inner, {.kernel = {1}})));
  y = conv(net, "conv2", y, inner, {.kernel = {3}, .stride = stride, .groups = groups});
  y = conv(net, "conv3", relu(batch_norm(net, "bn2", y)), channels * 4, {.kernel = {1}});
  return batch_norm(net, "bn3", y, kBranchEnd);
}

Value basic(Net& net, Value x, int64_t channels, int64_t stride) {
  Value y = conv(net, "conv1", x, channels, {.kernel = {3}, .stride = stride});
  y = conv(net, "conv2", relu(batch_norm(net, "bn1", y)), channels, {.kernel = {3}});
  return batch_norm(net, "bn2", y, kBranchEnd);
}

Value residual_block(Net& net, Value x, int64_t channels, int64_t stride,
                     const ResNetTable& table) {
  Value y = table.bottleneck ? bottleneck(net, x, channels, stride, table)
                             : basic(net, x, channels, stride);
  int64_t out = table.bottleneck ? channels * 4 : channels;
  if (stride != 1 || !x.dim(1).is(out))
    x = conv_bn(net, "downsample", x, out, {.kernel = {1}, .stride = stride, .gain = 1});
  return relu(y + x);
}

Outputs resnet(Net& net, const ResNetTable& table) {
  Value x = conv(net, "conv1", net.images(), net.width(64), {.kernel = {7}, .stride = 2});
  x = max_pool(relu(batch_norm(net, "bn1", x)), 3, 2, 1);
  for (size_t stage = 0; stage < table.blocks.size(); ++stage) {
    for (int64_t i = 0; i < net.blocks(table.blocks[stage]); ++i) {
      Builder::Scope scope = net.scope(fmt::format("layer{}", stage + 1), i);
      int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      x = residual_block(net, x, net.width(int64_t{64} << stage), stride, table);
    }
  }
  return {classifier(net, "fc", x)};
}

// ---- DenseNet (Huang et al. 2016) ---------------------------------------------------------------

Value norm_relu_conv(Net& net, int64_t index, Value x, int64_t channels, int64_t kernel) {
  x = relu(batch_norm(net, fmt::format("norm{}", index), x));
  return conv(net, fmt::format("conv{}", index), x, channels, {.kernel = {kernel}});
}

Value dense_layer(Net& net, Value x, int64_t growth) {
  Value y = norm_relu_conv(net, 1, x, 4 * growth, 1);
  return concat({x, norm_relu_conv(net, 2, y, growth, 3)}, 1);
}

}  // namespace

Outputs resnet18(Net& net) { return resnet(net, {{2, 2, 2, 2}, false}); }
Outputs resnet50(Net& net) { return resnet(net, {{3, 4, 6, 3}, true}); }
Outputs resnext50(Net& net) { return resnet(net, {{3, 4, 6, 3}, true, 32, 2}); }

Outputs densenet121(Net& net) {
  constexpr std::array<int64_t, 4> kBlocks = {6, 12, 24, 16};
  Value x = conv(net, "conv0", net.images(), net.width(64), {.kernel = {7}, .stride = 2});
  x = max_pool(relu(batch_norm(net, "norm0", x)), 3, 2, 1);
  for (size_t block = 0; block < kBlocks.size(); ++block) {
    for (int64_t i = 0; i < net.blocks(kBlocks[block]); ++i) {
      Builder::Scope scope = net.scope(fmt::format("denseblock{}", block + 1), i);
      x = dense_layer(net, x, net.pick(32, 4));
    }
    if (block + 1 == kBlocks.size()) break;
    Builder::Scope scope = net.scope(fmt::format("transition{}", block + 1));
    x = avg_pool(norm_relu_conv(net, 1, x, net.b.ok() ? x.dim(1).value() / 2 : 1, 1), 2, 2);
  }
  return {classifier(net, "classifier", relu(batch_norm(net, "norm5", x)))};
}

}  // namespace hone::zoo
