#pragma once

#include <cstdint>
#include <span>

#include "quantize/layers.h"

namespace hone::quantize {

// The range that a layer's data were seen to have, 0 included.
struct DataRange {
  double low = 0, high = 0;
};
// The grid of u8 over a range: (q - zero) * scale.
struct Grid {
  float scale = 1;
  int64_t zero = 0;
};
Grid grid_of(const DataRange& range);

// The choice for a layer. `data` is for int8 alone.
struct LayerChoice {
  Precision level = Precision::f32;
  DataRange data = {};
};

// The graph with each layer computed as chosen. `layers` are those of the graph (layers_of()), and
// check_level() has no objections. Inputs, outputs and sizes stay.
Result<Graph> quantized(const Graph& graph, std::span<const Layer> layers,
                        std::span<const LayerChoice> choices, int64_t group);

// A graph that computes what any choice computes, up to the rounding of f32, for measuring many
// choices by one compilation. Behind the inputs it has, per layer that may be quantized, those of
// ProbeInputs; behind the outputs, the least and the largest number of the layer's data.
Result<Graph> probe(const Graph& graph, std::span<const Layer> layers);
// The inputs of a layer: weights, what becomes of data and result, scale and zero point of data.
std::vector<Tensor> probe_inputs(const Layer& layer, const LayerChoice& choice, int64_t group);

// The layer alone, its data a parameter, at a level: for its price.
Result<Graph> layer_alone(const Graph& graph, const Layer& layer, Precision level, int64_t group);

}  // namespace hone::quantize
