#pragma once

#include <cstdint>
#include <vector>

#include "ir/sharding.h"

// Lists of the axes of one mesh that divide a dim, the outermost first.

namespace hone {

// The axis as a grid of before x size x rest.
struct MeshPart {
  size_t axis = 0;
  int64_t before = 1;
  int64_t size = 1;

  int64_t end() const { return before * size; }
  bool operator==(const MeshPart&) const = default;
};
using MeshParts = std::vector<MeshPart>;

// The axes exist (see check).
MeshParts mesh_parts(const Mesh& mesh, const std::vector<AxisPart>& axes);
// The same, without those of one device: they move nothing.
MeshParts moving_parts(const Mesh& mesh, const std::vector<AxisPart>& axes);
// Neighbours become one, and all of an axis its name.
std::vector<AxisPart> axis_parts(const Mesh& mesh, const MeshParts& parts);
MeshParts merged(const MeshParts& parts);

int64_t count_of(const MeshParts& parts);  // the parts that a dim is divided into
// The two cannot divide one value: they overlap, or no grid of the axis has both.
bool clashes(const MeshPart& a, const MeshPart& b);
// As much of the part as does not clash with the other one. A size of 0: nothing.
MeshPart cut_short(MeshPart part, const MeshPart& other);
// The list begins with the other one, or with as much of it as there is of its last axis.
bool is_prefix(const MeshParts& prefix, const MeshParts& list);
MeshParts common_prefix(const MeshParts& a, const MeshParts& b);
// The rest of the list, behind the prefix.
MeshParts behind(const MeshParts& prefix, const MeshParts& list);

}  // namespace hone
