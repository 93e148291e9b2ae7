#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "tensor/special_numbers.h"

// Seeded random graphs, for differential tests. They are well typed, over every op and element
// type, with tame values: no NaN and no infinity at any precision, unless special numbers are asked
// for.

namespace hone {

// An op and the element type of its principal operand (of the result for ops without operands).
struct OpDType {
  Opcode opcode;
  DType dtype;
  auto operator<=>(const OpDType&) const = default;
};
// Every pair that the op table allows, except parameter and constant.
const std::vector<OpDType>& legal_pairs();

struct RandomGraphOptions {
  uint64_t seed = 0;
  int min_steps = 8;  // a step adds one op and the nodes that its operands need
  int max_steps = 20;
  int64_t max_elements = 1024;       // of any value
  int64_t max_dim = 6;               // if it is more, one dim in five is between 7 and this
  bool symbolic = false;             // some dims are symbols
  std::optional<Opcode> first = {};  // the op of the first step, of any type
  // Only ops that are continuous in their real operands, so that runs that round differently can
  // be compared: no compare, floor, sort, cast to integer, ...
  bool continuous = false;
  int devices = 1;  // collectives are for groups of this size
  // Some outputs are given twice, and some inputs are outputs.
  bool repeats_outputs = false;
  Specials specials = {};  // among its constants
};

// Without a first op, the first step is legal_pairs()[seed % count], so that any run of seeds
// covers all pairs evenly.
Graph random_graph(const RandomGraphOptions& options);

// Inputs for which the graph's values are tame, but for special ones. Symbolic dims must be bound
// before.
std::vector<Tensor> random_graph_inputs(const Graph& graph, uint64_t seed,
                                        const Specials& specials = {});

}  // namespace hone
