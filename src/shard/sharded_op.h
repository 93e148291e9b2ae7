#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "shard/mesh_parts.h"
#include "shard/sharding_rule.h"

// One step of the propagation: the axes of the factors of one op.

namespace hone {

// How a value is divided as yet.
struct DividedDim {
  MeshParts axes = {};
  bool is_open = true;
  int32_t brought_by = -1;  // the op that divided it, by its number; -1: it is stated
};
struct DividedValue {
  std::vector<DividedDim> dims = {};
  MeshParts never = {};  // axes that must not divide it: replicated or partial
  int64_t elements = 1;
};

// The ways that are open to an op in a step.
struct OpDirections {
  bool to_operands = true;
  bool to_results = true;
  bool along_permutations = true;  // along factors other than those that move nothing
};

struct ShardedOp {
  ShardingRule rule;
  std::vector<DividedValue*> operands;  // null: absent
  std::vector<DividedValue*> results;
  bool is_elementwise = false;
};

// Extends the axes of operands and results; true: one of them has changed. Cautious: by what all of
// them agree on.
bool propagate_through(const ShardedOp& op, const OpDirections& directions, bool is_cautious,
                       int32_t number);

// The axes of each factor in each tensor, operands first. A factor that a tensor lacks has none.
std::vector<std::vector<MeshParts>> axes_of_factors(const ShardedOp& op);

}  // namespace hone
