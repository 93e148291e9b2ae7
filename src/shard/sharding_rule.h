#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/op_def.h"

// How the dims of the operands and results of an op may be divided together.
//
// Each dim is a product of factors, the outermost first. A factor that stands in several tensors
// is divided alike in all of them. A product of two matrices:
//   ([i, k], [k, j])->([i, j]) {i=8, j=4, k=16} reduction={k}
// A reshape of 8 to 2 x 4:
//   ([ij])->([i, j]) {i=2, j=4}
// Rules are not listed: they follow from access relations, and those of composites from what the
// composite is spelled out in.

namespace hone {

// In the order of what they cost; the later one counts where two meet.
enum class FactorKind : uint8_t {
  pass,         // each device has what it needs
  permutation,  // neighbours exchange data: windows, slices, pads
  reduction,    // the results are partial
  replication,  // each device needs the whole factor
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::pass;
  bool is_blocked = false;  // what divides it in one tensor says nothing of the others
  bool operator==(const Factor&) const = default;
};

using DimFactors = std::vector<int>;            // the outermost first; none: a size of 1
using TensorFactors = std::vector<DimFactors>;  // by dim

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands;  // of an absent operand: no dims
  std::vector<TensorFactors> results;
};

// Static types only. Ops with regions, and those that talk to devices, need all of their dims
// whole.
Result<ShardingRule> sharding_rule(const Application& application, std::span<const Type> results);
// The rule of a graph as if it were one op: that of its inputs and outputs.
Result<ShardingRule> sharding_rule(const Graph& graph);

// The text above. Factors are called i, j, k, ... in the order in which they appear.
std::string to_string(const ShardingRule& rule);

}  // namespace hone
