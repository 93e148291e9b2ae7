#pragma once

#include <span>

#include "ir/graph.h"

// Models as quantizers leave them, in QDQ form. Convolutions and products with constant weights,
// sums of two tensors, and pools read and give u8. Weights are i8 with a scale for each feature.
// Each tensor is dequantized again before it is read.

namespace hone {

// The model with what batch norms multiply by in the weights of the convolutions before them. Their
// sums and biases for each channel are left out: where weights are random, nothing is lost.
Result<Graph> without_norms(const Graph& graph);

// The graph that gives the least and the greatest number of each value that `quantized` wants to
// know them of.
Result<Graph> ranges_of(const Graph& graph);
// `ranges` are the outputs of that graph.
Result<Graph> quantized(const Graph& graph, std::span<const Tensor> ranges);

}  // namespace hone
