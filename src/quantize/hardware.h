#pragma once

#include <span>
#include <string>
#include <vector>

#include "quantize/choose.h"
#include "quantize/multipliers.h"

// A multiplier for each layer of a model: the least energy within an error that is measured.

namespace hone::quantize {

// How a layer is computed in bytes, by products [rows, inputs] x [outputs, inputs].
struct ByteLayer {
  Layer layer = {};
  int64_t rows = 0, inputs = 0, outputs = 0;

  int64_t products() const { return rows * inputs * outputs; }
};
// Why products of a table are not for it; success: they are.
Result<ByteLayer> byte_layer(const Graph& graph, const Layer& layer);

// The graph with each of these layers computed in integers by a table of products, each sum exact.
// Data are rounded to the grid of their range: symmetric if the multipliers are signed. Weights are
// symmetric, with a scale for each feature. `tables`: one per layer, or none: then they are inputs
// behind those of the graph, i32[65536] each.
Result<Graph> with_products(const Graph& graph, std::span<const ByteLayer> layers,
                            std::span<const DataRange> ranges, bool is_signed,
                            std::span<const Tensor> tables);

struct HardwareReport {
  std::string name;
  std::string multiplier = {};          // empty: it stays f32
  double error = 0;                     // if only this layer has it, and the others exact ones
  int64_t products = 0;                 // of a run
  double energy = 0, energy_exact = 0;  // products times power
  std::string why = {};                 // it stays f32
};
struct HardwareResult {
  std::vector<HardwareReport> reports;  // by layer
  std::vector<FrontPoint> front;        // cost: the energy over that of exact ones
  Graph graph;                          // with_products()
  Difference exact;                     // of exact multipliers, on the calibration arrays
  Difference calibration, unseen;
  double energy = 0, energy_exact = 0;
};

// Others are compared with the exact multiplier of the least power. Options
// that count: error, drop, keep, trials, seed.
Result<HardwareResult> choose_multipliers(const Graph& graph, const QuantizeOptions& options,
                                          std::span<const Multiplier> multipliers,
                                          const Batches& batches, const QuantizeMachine& machine);

}  // namespace hone::quantize
