#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

// Which parts of a model may be computed less exactly, and how their weights look then.

namespace hone::quantize {

enum class Precision : uint8_t {
#define HONE_LEVEL(member, ...) member,
#include "quantize/levels.def"
};
std::string_view name(Precision level);
std::optional<Precision> precision_of(std::string_view name);
inline constexpr Precision kPrecisions[] = {
#define HONE_LEVEL(member, ...) Precision::member,
#include "quantize/levels.def"
};

// A product of data by constant weights, or why it stays as it is.
struct Layer {
  NodeId node;
  std::string name;           // of its result
  size_t side = 1;            // the operand that has the weights
  Tensor weights = Tensor();  // as the op reads them
  int feature_axis = -1;      // of the weights: the results' dim of most features
  int group_axis = -1;        // the longest dim that is summed over
  // The dims whose elements those of group_axis and feature_axis meet one by one; -1: there is
  // none.
  int data_axis = -1;
  int result_axis = -1;
  int64_t rows = 0;          // results that each feature has in a run
  std::string why_not = "";  // empty: it may be quantized
};

// All contractions of the graph itself, in its order. Layers in regions are not listed.
Result<std::vector<Layer>> layers_of(const Graph& graph);

// Lets layers stay as they are. `names` are those of their results; a * at the end stands for any
// rest. A name that fits no layer is a usage error.
Status leave_out(std::vector<Layer>& layers, std::span<const std::string> names);

// Why a level is not for the layer; success: it is. `group`: weights that share a scale.
Status check_level(const Layer& layer, Precision level, int64_t group);

// The layer with its weights multiplied along group_axis, one factor per index.
Layer with_factors(const Layer& layer, std::span<const double> factors);

// Weights of few bits with their scales: symmetric, so that 0 stays 0.
struct PackedWeights {
  Tensor numbers;     // i8, i4 or i2, in the weights' dims
  Tensor scales;      // f32: per feature, or per group
  int axis = 0;       // of the scales, as dequantize has it
  int64_t block = 0;  // 0: one per feature
};
// The scale, an f32 number, by which weights have the least squared error as integers from
// -highest - 1 to highest: of 16 clips of the largest weight.
double best_scale(std::span<const double> weights, double highest);
// For a layer for which check_level() has no objection: w8, w4, w2 or int8. Scales have the least
// squared error of 16 clips of the largest weight.
PackedWeights packed_weights(const Layer& layer, Precision level, int64_t group);
// Tensor cores read these bits of a number of f32, for products of tf32.
inline constexpr uint32_t kTf32Bits = 0xffffe000;
// The weights as that level reads them, in f32.
Tensor rounded_weights(const Layer& layer, Precision level, int64_t group);
int64_t weight_bytes(const Layer& layer, Precision level, int64_t group);

}  // namespace hone::quantize
