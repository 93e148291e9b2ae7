#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "shard/mesh_parts.h"
#include "shard/mesh_program.h"

// Ops that find elements by indices which are values. A device that has a range of the indices
// along a dim reads or writes what falls into its range.

namespace hone {

// Data says where a window of elements begins along this dim of operand 0.
struct AddressedDim {
  int dim = 0;
  int64_t size = 0;
  int64_t window = 1;  // elements of a window
};
// The dims that devices may divide into ranges; of other ops, none. Static types only.
std::vector<AddressedDim> addressed_dims(const Application& application);
// Elements are read by indices, and never written.
bool reads_by_index(Op op);
bool writes_by_index(Op op);
// How what is written meets what stands there: sum, max or min. Empty: it replaces it, or other.
std::string_view written_kind(Op op);

struct IndexRange {
  AddressedDim of;
  MeshParts axes;
  int64_t part = 0;  // of the indices that a device has, the last ones with padding
};

// The op on the parts of a device. For elements that others have it reads a number that sums
// ignore, so that the sum of all devices has them all. Elements that others have are not written.
ValueId computed_by_range(MeshProgram& program, Op op, const std::vector<ValueId>& operands,
                          const std::vector<IndexRange>& ranges);

}  // namespace hone
