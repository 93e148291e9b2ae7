#include "zoo/models.h"

// WaveNet (van den Oord et al. 2016): dilated causal convolutions over 8-bit samples.

namespace hone::zoo {
namespace {

// The tail is missing: sample t sees t and what lies `dilation` before.
Value causal(Net& net, std::string_view name, Value x, int64_t channels, int64_t dilation) {
  if (!net.b.ok()) return x;
  return conv(net, name, pad(x, {0, 0, dilation}, {0, 0, 0}), channels,
              {.kernel = {2}, .padding = {0}, .dilation = dilation, .bias = true, .gain = 1});
}

Value pointwise(Net& net, std::string_view name, Value x, int64_t channels, double gain) {
  return conv(net, name, x, channels, {.kernel = {1}, .bias = true, .gain = gain});
}

}  // namespace

Outputs wavenet(Net& net) {
  constexpr int64_t kLevels = 256;  // of a mu-law sample
  constexpr int64_t kCycle = 10;    // dilations 1, 2, ..., 512, and again
  int64_t residual = net.pick(64, 8);
  int64_t skip = net.pick(256, 16);

  Value samples = net.tokens("samples", {net.batch, net.length});
  Value x = take(net.normal("embedding/weight", {kLevels, residual}, 1), samples);
  x = causal(net, "input", transpose(x, {0, 2, 1}), residual, 1);
  Value sum;
  for (int64_t i = 0; i < net.depth; ++i) {
    Builder::Scope scope = net.scope("layers", i);
    int64_t dilation = int64_t{1} << i % kCycle;
    Value filter = tanh(causal(net, "filter", x, residual, dilation));
    Value z = filter * logistic(causal(net, "gate", x, residual, dilation));
    Value out = pointwise(net, "skip", z, skip, 1);
    sum = sum ? sum + out : out;
    x = x + pointwise(net, "residual", z, residual, 1);
  }
  x = relu(pointwise(net, "head/1", relu(sum), skip, kHe));
  return {pointwise(net, "head/2", x, kLevels, 1).named("logits")};
}

}  // namespace hone::zoo
