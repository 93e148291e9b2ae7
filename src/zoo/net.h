#pragma once

#include <numbers>
#include <string_view>

#include "ir/functional.h"
#include "zoo/zoo.h"

// The tools of a zoo model: a builder, the sizes asked for, and named seeded weights.

namespace hone {

class Net {
 public:
  Net(Builder& builder, uint64_t seed) : b(builder), seed_(seed) {}

  Builder& b;
  bool tiny = false;
  Dim batch = 1;
  Dim length = 0;
  int64_t max_length = 0;
  int64_t image = 0;
  int64_t depth = 0;
  int64_t classes = 0;  // of a classifier
  bool unroll = false;

  // The same choices for the body of a region.
  Net inside(Builder& region) const;

  int64_t pick(int64_t full, int64_t tiny_one) const { return tiny ? tiny_one : full; }
  // The channels of a layer; in a tiny model about an eighth of them, as a multiple of 4.
  int64_t width(int64_t channels) const;
  // The blocks of a stage that has `published` of them.
  int64_t blocks(int64_t published) const { return depth == kAsPublished ? published : depth; }

  [[nodiscard]] Builder::Scope scope(std::string_view name) { return b.scope(name); }
  [[nodiscard]] Builder::Scope scope(std::string_view name, int64_t index);  // "layer/3/"

  // Weights: f32 constants whose numbers depend on the seed and the full name alone.
  Value normal(std::string_view name, const Ints& dims, double deviation, double mean = 0);
  Value uniform(std::string_view name, const Ints& dims, double low, double high);

  Value images(int64_t channels = 3);                     // f32[batch, channels, image, image]
  Value tokens(std::string_view name, const Dims& dims);  // i64; ranges follow from the use

 private:
  uint64_t seed_;
};

// ---- Layers
// -------------------------------------------------------------------------------------- Weights
// are named as is usual: NAME/weight, NAME/bias, NAME/running_mean, ...

inline constexpr double kHe = std::numbers::sqrt2;  // keeps the scale behind a relu

struct ConvSpec {
  Ints kernel;         // one number: the same in every dim
  int64_t stride = 1;  // in every dim
  Ints padding = {};   // empty: half the kernel; one number: the same in every dim
  int64_t groups = 1;
  int64_t dilation = 1;
  bool bias = false;
  double gain = kHe;  // weights deviate by gain / sqrt(inputs of an output)
  double bias_mean = 0;
};
// Fails the builder if nothing is left of the image.
Value conv(Net& net, std::string_view name, Value x, int64_t channels, const ConvSpec& spec);

struct BatchNormSpec {
  double gain = 1;  // mean of the scale; small at the end of a residual branch
  double epsilon = 1e-5;
};
Value batch_norm(Net& net, std::string_view name, Value x, const BatchNormSpec& spec = {});
// NAME/conv and NAME/bn.
Value conv_bn(Net& net, std::string_view name, Value x, int64_t channels, const ConvSpec& spec,
              const BatchNormSpec& norm = {});

struct LinearSpec {
  bool bias = true;
  double gain = 1;
};
// x: [..., inputs] -> [..., outputs]; the weight is [outputs, inputs].
Value linear(Net& net, std::string_view name, Value x, int64_t outputs,
             const LinearSpec& spec = {});
Value layer_norm(Net& net, std::string_view name, Value x, double epsilon = 1e-5);

Value max_pool(Value x, int64_t window, int64_t stride, int64_t padding = 0);
Value avg_pool(Value x, int64_t window, int64_t stride, int64_t padding = 0,
               bool count_padding = true);
Value relu6(Value x);
// Global average pool and a linear layer: [n, c, h, w] -> [n, classes], named "logits".
Value classifier(Net& net, std::string_view name, Value x);

// [b, s, heads * d] -> [b, heads, s, d] and back.
Value split_heads(Value x, int64_t heads);
Value merge_heads(Value x);

}  // namespace hone
