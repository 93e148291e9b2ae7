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

// In every mode integers are exact: they wrap at their type's width.
enum class Numerics : uint8_t {
  wide,     // double, no rounding between real nodes: the oracle
  rounded,  // each node's result rounded to its element type: conformance. A composite is one node:
            // its result is rounded, nothing inside of its expansion is unless it is stepwise.
  fp32,     // plain float arithmetic: what "as accurate as fp32" is measured against
};

// The cost of an evaluation.
struct EvalStats {
  int64_t peak_bytes = 0;  // of all buffers alive at once
  int64_t nodes = 0;       // evaluated, those in regions and expansions each time
};

struct EvalOptions {
  Numerics numerics = Numerics::wide;
  bool real_outputs_as_f64 = false;           // at full precision, not of the output's type
  int64_t max_bytes = int64_t{16} << 30;      // of all buffers alive at once
  int64_t max_iterations = int64_t{1} << 31;  // of one while loop
  Progress* progress = nullptr;               // counts nodes of the outermost graph
  const CancelToken* cancel = nullptr;        // polled at each node
  EvalStats* stats = nullptr;                 // filled if given, also on failure
};

// Symbols are bound to the inputs' shapes first. Nodes that no output depends on are skipped.
Result<std::vector<Tensor>> evaluate(const Graph& graph, std::span<const Tensor> inputs,
                                     const EvalOptions& options = {});

// Runs one graph on several devices in lockstep: inputs[device]. Collectives exchange data. Devices
// may take different branches; a collective needs all members of its group to come to it.
Result<std::vector<std::vector<Tensor>>> evaluate_spmd(const Graph& graph,
                                                       std::span<const std::vector<Tensor>> inputs,
                                                       const EvalOptions& options = {});

// Over the field of 2^61 - 1: one residue per element of each real input (integer and bool inputs
// are given as tensors). Unsupported if the graph uses more than ring operations and division. The
// graph must be static. Elements of integer and bool outputs are their canonical images.
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
