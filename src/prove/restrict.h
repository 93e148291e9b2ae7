#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

// Parts of graphs: what a box of a value needs of the inputs, and no more.

namespace hone {

// The positions [start, limit) along a dim.
struct DimSpan {
  Dim start, limit;
  Dim size() const { return limit - start; }
  bool operator==(const DimSpan&) const = default;
};
using DimBox = std::vector<DimSpan>;
std::string to_string(const DimBox& box);  // "[0:B, 0:1]"

// Appends parts of one graph to another one, which has its inputs.
class Restriction {
 public:
  // inputs: the values of `into` that stand for those of `from`, which has primitive ops alone.
  Restriction(const Graph& from, Graph& into, std::vector<ValueId> inputs);

  // The elements of `v` in the box. Windows of convolutions and pools read what the box needs;
  // ops that say nothing about boxes are computed as a whole, and cut.
  Result<ValueId> part(ValueId v, const DimBox& box);
  Result<ValueId> whole(ValueId v);

 private:
  DimBox all_of(ValueId v) const;
  Result<ValueId> cut(ValueId value, const DimBox& box);
  Result<ValueId> elementwise(NodeId n, const DimBox& box);
  Result<ValueId> broadcast(NodeId n, const DimBox& box);
  Result<ValueId> conv(NodeId n, const DimBox& box);
  Result<ValueId> windows(NodeId n, const DimBox& box);
  Result<ValueId> append(Op op, std::span<const ValueId> operands);

  const Graph& from_;
  Graph& into_;
  std::map<uint32_t, ValueId> known_;  // values that are there as a whole
};

}  // namespace hone
