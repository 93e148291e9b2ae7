#pragma once

#include <optional>
#include <vector>

#include "oracle/differential.h"
#include "plan/planned.h"

// Smaller graphs out of a case's, with their inputs. None: there is none of that kind.

namespace hone {

struct GraphWithInputs {
  Graph graph;
  std::vector<Tensor> inputs;
};

// Neither a parameter nor a constant.
bool is_computed(const Graph& graph, NodeId node);

// These nodes alone, in the graph's order; what they read is what the reference computed.
std::optional<GraphWithInputs> part_of(const DifferentialCase& one,
                                       const std::vector<NodeId>& nodes,
                                       const std::vector<ValueId>& outputs);
// The outputs, and what they need.
std::optional<GraphWithInputs> with_outputs(const DifferentialCase& one,
                                            const std::vector<ValueId>& outputs);
// The node's results become inputs.
std::optional<GraphWithInputs> without_node(const DifferentialCase& one, NodeId node);
// Outputs that the node gives are replaced by its operands.
std::optional<GraphWithInputs> without_output_node(const DifferentialCase& one, NodeId node);
// A region as a graph of its own, on random inputs.
std::optional<GraphWithInputs> region_of(const DifferentialCase& one, const RegionRef& region);

// Open sizes are those of the inputs.
std::optional<GraphWithInputs> with_numbers(const DifferentialCase& one);

// The dims above 1 that stand anywhere, the smallest first.
std::vector<int64_t> sizes_of(const Graph& graph);
// `smaller` for every dim of this size, of types and of ops; tensors are cut.
std::optional<GraphWithInputs> with_size(const DifferentialCase& one, int64_t size,
                                         int64_t smaller);

}  // namespace hone
