#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/progress.h"
#include "ir/graph.h"

// The reference semantics of a graph: obviously right, slow where that helps, and sharing no code
// with anything that generates code.

namespace hone {

enum class Numerics : uint8_t {
  wide,     // double, no rounding between real nodes: the oracle
  rounded,  // each node's result rounded to its element type: conformance
  fp32,     // plain float arithmetic: what "as accurate as fp32" is measured against
};

struct EvalOptions {
  Numerics numerics = Numerics::wide;
  bool real_outputs_as_f64 = false;  // keep what the computation knew, instead of the output's type
  Progress* progress = nullptr;      // counts nodes
  const CancelToken* cancel = nullptr;
};

// Symbols are bound to the inputs' shapes first.
Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs,
                                     const EvalOptions& options = {});

// One program on several devices in lockstep: inputs[device]. Collectives exchange data.
Result<std::vector<std::vector<Tensor>>> evaluate_spmd(
    const Graph& graph, std::span<const std::vector<Tensor>> inputs,
    const EvalOptions& options = {});

// Over the field of 2^61 - 1: one residue per element of each real input (integer and bool inputs
// are given as tensors). Unsupported if the graph uses more than ring operations and division.
struct FieldInput {
  std::vector<uint64_t> residues;  // for real inputs
  Tensor integers;                 // for others
};
Result<std::vector<std::vector<uint64_t>>> evaluate_in_field(const Graph& graph,
                                                             std::span<const FieldInput> inputs);

// For every element of every output: the sorted (input, element) pairs that it was computed from,
// for these input values (which decide indices and predicates).
struct InputElement {
  uint32_t input;
  uint32_t element;
  auto operator<=>(const InputElement&) const = default;
};
using ElementDependencies = std::vector<std::vector<InputElement>>;  // per output element
Result<std::vector<ElementDependencies>> trace_dependencies(const Graph& graph,
                                                            std::span<const Tensor> inputs);

}  // namespace hone
