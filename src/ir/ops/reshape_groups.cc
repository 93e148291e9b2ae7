#include "ir/ops/reshape_groups.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace hone {

namespace {

// Dims of one side, as positions: those of size 1 hold no information and are left out.
std::vector<int> wide_dims(std::span<const Dim> dims) {
  std::vector<int> positions;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].is(1)) positions.push_back(static_cast<int>(i));
  }
  return positions;
}

struct GroupSide {
  std::span<const Dim> dims;
  std::vector<int> positions;
  size_t begin = 0;

  bool done() const { return begin == positions.size(); }
  Dim dim(size_t i) const { return dims[static_cast<size_t>(positions[i])]; }
};

// The ends of the smallest leading groups with equal products.
std::pair<size_t, size_t> next_group(const GroupSide& from, const GroupSide& to) {
  Dim from_count = 1;
  for (size_t i = from.begin; i < from.positions.size(); ++i) {
    from_count *= from.dim(i);
    Dim to_count = 1;
    for (size_t j = to.begin; j < to.positions.size(); ++j) {
      to_count *= to.dim(j);
      if (from_count == to_count) return {i + 1, j + 1};
    }
  }
  return {from.positions.size(), to.positions.size()};
}

// The row-major number of a point within the group.
IndexExpr linear_index(const GroupSide& side, size_t end) {
  IndexExpr linear = 0;
  for (size_t i = side.begin; i < end; ++i) {
    linear = linear * side.dim(i) + IndexExpr::iter(side.positions[i]);
  }
  return linear;
}

}  // namespace

std::vector<IndexExpr> reshape_index(std::span<const Dim> from, std::span<const Dim> to) {
  std::vector<IndexExpr> index(from.size(), IndexExpr(0));
  bool nothing = std::any_of(from.begin(), from.end(), [](Dim dim) { return dim.is(0); });
  if (nothing) return index;
  GroupSide source = {from, wide_dims(from)};
  GroupSide target = {to, wide_dims(to)};
  while (!source.done()) {
    auto [source_end, target_end] = next_group(source, target);
    IndexExpr linear = linear_index(target, target_end);
    Dim stride = 1;
    for (size_t i = source_end; i-- > source.begin;) {
      IndexExpr quotient = floordiv(linear, stride);
      // The first dim of a group has no multiples to take off.
      index[static_cast<size_t>(source.positions[i])] =
          i == source.begin ? quotient : mod(quotient, source.dim(i));
      stride *= source.dim(i);
    }
    source.begin = source_end;
    target.begin = target_end;
  }
  return index;
}

}  // namespace hone
