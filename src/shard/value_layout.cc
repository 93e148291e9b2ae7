#include "shard/value_layout.h"

#include "base/checked_math.h"

namespace hone {

MeshParts dividing(const MeshParts& axes, int64_t size) {
  MeshParts made;
  for (const MeshPart& part : axes) {
    if (part.size == 1) continue;  // an axis of one device moves nothing
    if (part.size < 1 || size % (count_of(made) * part.size) != 0 || size == 0) break;
    made.push_back(part);
  }
  return made;
}

MeshParts covering(const MeshParts& axes, int64_t size) {
  MeshParts made, found;
  for (const MeshPart& part : axes) {
    if (part.size == 1) continue;
    if (part.size < 1 || part.size > size) break;
    made.push_back(part);
    const int64_t count = count_of(made);
    if (count > size) break;
    if ((count - 1) * ceil_div(size, count) < size) found = made;
  }
  return found;
}

bool has_padding(const MeshParts& axes, int64_t size) { return size % count_of(axes) != 0; }

MeshParts without_clashes(const MeshParts& wanted, const std::vector<MeshParts>& axes) {
  MeshParts made;
  for (const MeshPart& part : wanted) {
    for (const MeshParts& others : axes)
      for (const MeshPart& other : others)
        if (clashes(part, other)) return made;
    made.push_back(part);
  }
  return made;
}

Type local_type(Type whole, const ShardLayout& layout) {
  Dims dims(whole.dims().begin(), whole.dims().end());
  for (size_t d = 0; d < dims.size(); ++d)
    dims[d] = ceil_div(dims[d].value(), count_of(layout.dims[d]));
  return whole.with_dims(dims);
}

Sharding sharding_of(const MeshRef& mesh, const ShardLayout& layout, std::string_view kind) {
  Sharding made = {.mesh = mesh};
  for (const MeshParts& parts : layout.dims) made.dims.push_back({axis_parts(*mesh, parts)});
  made.partial = axis_parts(*mesh, layout.partial);
  for (const PartialKind one : {PartialKind::sum, PartialKind::max, PartialKind::min})
    if (kind == name(one)) made.partial_kind = one;
  return made;
}

ShardLayout layout_of(const Sharding& said) {
  ShardLayout layout = {.partial = moving_parts(*said.mesh, said.partial)};
  for (const DimSharding& dim : said.dims)
    layout.dims.push_back(moving_parts(*said.mesh, dim.axes));
  return layout;
}

ShardLayout undivided(Type type) {
  return {.dims = std::vector<MeshParts>(static_cast<size_t>(type.rank()))};
}

std::vector<ShardLayout> layouts_of(Type type, const Mesh& mesh) {
  std::vector<ShardLayout> found;
  const auto fits = [&](size_t place, const MeshParts& axes) {
    return covering(axes, type.dim(static_cast<int>(place)).value()) == axes;
  };
  AxisDealer(mesh, static_cast<size_t>(type.rank()), fits)
      .deal([&](const std::vector<MeshParts>& axes) { found.push_back({.dims = axes}); });
  return found;
}

}  // namespace hone
