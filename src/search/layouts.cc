#include "search/layouts.h"

#include <algorithm>

namespace hone {
namespace {

// The dim behind all others, or blocks of it there, and what counts the blocks before `outer` of
// them: [0, 2, 3, 1], [0, 1/8, 2, 3, 1%8].
Layout with_last(const std::vector<int>& others, int last, int64_t block, ptrdiff_t outer) {
  Layout layout;
  for (int dim : others) layout.parts.push_back({.dim = dim});
  if (block > 1) layout.parts.insert(layout.parts.begin() + outer, {.dim = last, .block = block});
  layout.parts.push_back({.dim = last, .block = block, .is_inner = block > 1});
  return layout;
}

}  // namespace

std::vector<Layout> usual_layouts(Type type, bool is_constant, std::span<const int64_t> blocks) {
  const int rank = type.rank();
  std::vector<Layout> layouts = {Layout::row_major(rank)};
  const auto add = [&](Layout layout) {
    if (std::ranges::find(layouts, layout) == layouts.end()) layouts.push_back(std::move(layout));
  };
  const auto add_dim = [&](int last, bool is_image) {
    std::vector<int> others;
    for (int dim = 0; dim < rank; ++dim)
      if (dim != last) others.push_back(dim);
    // The channels of weights stand within the window: [2, 3, 1, 0].
    if (!is_image) std::ranges::rotate(others, others.begin() + 1);
    add(with_last(others, last, 1, 0));
    const Dim size = type.dim(last);
    for (int64_t block : blocks)
      if (block > 1 && !size.is(block) && !size.is(0) && size.divisible_by(block))
        add(with_last(others, last, block, is_image ? 1 : 0));
  };
  if (rank < 2) return layouts;
  if (rank == 2 || is_constant) add_dim(0, false);
  if (rank == 2 || !is_constant) add_dim(1, rank > 2);
  return layouts;
}

}  // namespace hone
