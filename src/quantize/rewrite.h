#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "quantize/layers.h"

namespace hone::quantize {

// The range that a layer's data were seen to have, 0 included.
struct DataRange {
  double low = 0, high = 0;

  bool operator==(const DataRange&) const = default;
};
// The grid of u8 over a range: (q - zero) * scale.
struct Grid {
  float scale = 1;
  int64_t zero = 0;
};
Grid grid_of(const DataRange& range);

// The choice for a layer.
struct LayerChoice {
  Precision level = Precision::f32;
  DataRange data = {};  // int8: of the data that are rounded, after the smoothing
  // int8: data are divided by a factor per index of Layer::data_axis, and weights multiplied by it.
  std::vector<double> smoothing = {};
  // Added to the result, per index of Layer::result_axis.
  std::vector<double> correction = {};

  bool operator==(const LayerChoice&) const = default;
};

// The graph with each layer computed as chosen. `layers` are those of the graph (layers_of()), and
// check_level() has no objections. Inputs, outputs and sizes stay.
Result<Graph> quantized(const Graph& graph, std::span<const Layer> layers,
                        std::span<const LayerChoice> choices, int64_t group);

// The same for the graph whose sizes are open, if the choices were made for numbers. Nothing if its
// layers are not those: other sizes may be other products.
Result<std::optional<Graph>> quantized_open(const Graph& open, std::span<const Layer> layers,
                                            std::span<const LayerChoice> choices, int64_t group);

// A graph that computes what any choice computes, up to the rounding of f32, for measuring many
// choices by one compilation. Behind the inputs it has those of probe_inputs(), per layer that may
// be quantized; behind the outputs, kProbeOutputs per such layer.
Result<Graph> probe(const Graph& graph, std::span<const Layer> layers);
// The inputs of a layer: weights, how data and result are rounded, scale and zero point of data,
// one over the smoothing, the correction.
std::vector<Tensor> probe_inputs(const Layer& layer, const LayerChoice& choice, int64_t group);
// The least and the largest number of the layer's data per index of data_axis, and the mean of its
// result per index of result_axis. Without such an axis there is one number.
inline constexpr size_t kProbeOutputs = 3;

// The layer alone, its data a parameter, at a level: for its price.
Result<Graph> layer_alone(const Graph& graph, const Layer& layer, Precision level, int64_t group);

}  // namespace hone::quantize
