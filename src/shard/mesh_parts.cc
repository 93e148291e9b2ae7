#include "shard/mesh_parts.h"

#include <algorithm>
#include <numeric>

namespace hone {

MeshParts mesh_parts(const Mesh& mesh, const std::vector<AxisPart>& axes) {
  MeshParts parts;
  for (const AxisPart& one : axes) {
    const MeshAxis* axis = mesh.find(one.axis);
    HONE_CHECK(axis != nullptr, "the mesh has no axis '{}'", one.axis);
    parts.push_back({static_cast<size_t>(axis - mesh.axes.data()), one.before,
                     one.size == 0 ? axis->size : one.size});
  }
  return merged(parts);
}

MeshParts merged(const MeshParts& parts) {
  MeshParts made;
  for (const MeshPart& part : parts) {
    if (!made.empty() && made.back().axis == part.axis && made.back().end() == part.before &&
        part.size > 1)
      made.back().size *= part.size;
    else
      made.push_back(part);
  }
  return made;
}

MeshParts moving_parts(const Mesh& mesh, const std::vector<AxisPart>& axes) {
  MeshParts parts = mesh_parts(mesh, axes);
  std::erase_if(parts, [](const MeshPart& part) { return part.size == 1; });
  return parts;
}

std::vector<AxisPart> axis_parts(const Mesh& mesh, const MeshParts& parts) {
  std::vector<AxisPart> axes;
  for (const MeshPart& part : merged(parts)) {
    const MeshAxis& axis = mesh.axes[part.axis];
    const bool is_whole = part.before == 1 && part.size == axis.size;
    axes.push_back(is_whole ? AxisPart{axis.name} : AxisPart{axis.name, part.before, part.size});
  }
  return axes;
}

int64_t count_of(const MeshParts& parts) {
  int64_t count = 1;
  for (const MeshPart& part : parts) count *= part.size;
  return count;
}

bool clashes(const MeshPart& a, const MeshPart& b) {
  if (a.axis != b.axis) return false;
  if (a.size == 1 || b.size == 1) return a == b;
  return b.before % a.end() != 0 && a.before % b.end() != 0;
}

MeshPart cut_short(MeshPart part, const MeshPart& other) {
  if (!clashes(part, other)) return part;
  const bool has_more = other.before > part.before && other.before % part.before == 0;
  part.size = has_more ? std::gcd(part.size, other.before / part.before) : 0;
  if (part.size > 1 && clashes(part, other)) part.size = 0;
  if (part.size == 1) part.size = 0;
  return part;
}

bool is_prefix(const MeshParts& prefix, const MeshParts& list) {
  if (prefix.size() > list.size()) return false;
  for (size_t i = 0; i < prefix.size(); ++i) {
    if (prefix[i] == list[i]) continue;
    const bool begins = prefix[i].axis == list[i].axis && prefix[i].before == list[i].before &&
                        list[i].size % prefix[i].size == 0;
    return begins && i + 1 == prefix.size();
  }
  return true;
}

MeshParts common_prefix(const MeshParts& a, const MeshParts& b) {
  MeshParts common;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) {
      common.push_back(a[i]);
      continue;
    }
    if (a[i].axis == b[i].axis && a[i].before == b[i].before)
      if (const int64_t size = std::gcd(a[i].size, b[i].size); size > 1)
        common.push_back({a[i].axis, a[i].before, size});
    break;
  }
  return common;
}

MeshParts behind(const MeshParts& prefix, const MeshParts& list) {
  MeshParts rest(list.begin() + static_cast<std::ptrdiff_t>(prefix.size()), list.end());
  if (prefix.empty() || prefix.back() == list[prefix.size() - 1]) return rest;
  const MeshPart& last = list[prefix.size() - 1];
  rest.insert(rest.begin(), {last.axis, prefix.back().end(), last.size / prefix.back().size});
  return rest;
}

}  // namespace hone
