#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/npz.h"
#include "ir/graph.h"

// The weights of a model that exists: constants that become inputs, so that training changes them.

namespace hone {

// A model whose weights are inputs behind its own.
struct Lifted {
  Graph graph;
  std::vector<NamedTensor> weights;
};

// Weights are the model's real constants of rank 1 and more on which the output depends. The means
// and variances of norms, the scales of quantized values, and what `frozen` names stay constant; a
// * at the end of a name stands for any rest. A weight without a name gets one.
Result<Lifted> lift_weights(const Graph& model, uint32_t output,
                            std::span<const std::string> frozen);

// The model with constants in the place of those inputs again.
Result<Graph> lower_weights(const Lifted& lifted, std::span<const NamedTensor> weights);

// Weights that are stored as integers with scales are f32 constants in the result, quantized where
// they are read. So they train: the derivative goes straight through such a pair.
Result<Graph> unpack_weights(const Graph& model);
// The inverse: what is quantized of constants is constant.
Result<Graph> pack_weights(const Graph& model);

}  // namespace hone
