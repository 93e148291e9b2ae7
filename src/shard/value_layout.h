#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/sharding.h"
#include "shard/mesh_parts.h"
#include "shard/reshard.h"

// How one value is divided, whatever makes it.

namespace hone {

// A list of axes, as far as they divide the size.
MeshParts dividing(const MeshParts& axes, int64_t size);
// The same as far as each device has an element. Parts are of one size: where the last ones have
// fewer elements, padding stands behind these. Its contents are not known.
MeshParts covering(const MeshParts& axes, int64_t size);
bool has_padding(const MeshParts& axes, int64_t size);
// The axes up to the first one that divides another factor.
MeshParts without_clashes(const MeshParts& wanted, const std::vector<MeshParts>& axes);
// The type of the part that a device has, padding included.
Type local_type(Type whole, const ShardLayout& layout);
ShardLayout undivided(Type type);
// A graph says this of a value with this layout: no dim is open.
Sharding sharding_of(const MeshRef& mesh, const ShardLayout& layout, std::string_view kind = "");

// The layout that a value is said to have, by axes of more than one device.
ShardLayout layout_of(const Sharding& said);

// All layouts of a value by whole axes.
std::vector<ShardLayout> layouts_of(Type type, const Mesh& mesh);

// Deals the axes of a mesh out to places, one after the other; each place takes as many as fit.
class AxisDealer {
 public:
  using Fits = std::function<bool(size_t place, const MeshParts& axes)>;
  AxisDealer(const Mesh& mesh, size_t places, Fits fits)
      : mesh_(mesh), fits_(std::move(fits)), axes_(places) {}

  // `take` gets each choice.
  template <class Take>
  void deal(const Take& take) {
    deal_axis(0, take);
  }

 private:
  template <class Take>
  void deal_axis(size_t axis, const Take& take) {
    if (axis == mesh_.axes.size()) return take(axes_);
    const int64_t size = mesh_.axes[axis].size;
    deal_axis(axis + 1, take);
    if (size == 1) return;
    for (size_t i = 0; i < axes_.size(); ++i) {
      axes_[i].push_back({axis, 1, size});
      if (fits_(i, axes_[i])) deal_axis(axis + 1, take);
      axes_[i].pop_back();
    }
  }

  const Mesh& mesh_;
  const Fits fits_;
  std::vector<MeshParts> axes_;
};

}  // namespace hone
