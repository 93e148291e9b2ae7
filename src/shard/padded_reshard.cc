#include "shard/padded_reshard.h"

#include <ranges>

#include "base/checked_math.h"
#include "shard/node_division.h"

namespace hone {

int64_t part_bytes(const ShardLayout& layout, const std::vector<int64_t>& sizes,
                   int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (size_t d = 0; d < sizes.size(); ++d) bytes *= ceil_div(sizes[d], count_of(layout.dims[d]));
  return bytes;
}

std::vector<PaddedStep> padded_steps(const ShardLayout& given, const ShardLayout& wanted,
                                     const std::vector<int64_t>& sizes, int64_t element_bytes,
                                     const ReshardPrice& price) {
  std::vector<PaddedStep> steps;
  ShardLayout from = given, to = wanted;
  std::vector<int64_t> padded = sizes;  // that the axes divide
  std::vector<size_t> divided;          // dims that get padding at the end, and are cut
  for (size_t d = 0; d < sizes.size(); ++d) {
    const int64_t before = count_of(given.dims[d]), after = count_of(wanted.dims[d]);
    if (before == after) {
      padded[d] = ceil_div(sizes[d], before) * before;
      continue;
    }
    if (has_padding(wanted.dims[d], sizes[d])) {
      divided.push_back(d);
      to.dims[d].clear();
    }
    if (!has_padding(given.dims[d], sizes[d])) continue;
    for (; !from.dims[d].empty(); from.dims[d].pop_back()) {
      const MeshPart part = from.dims[d].back();
      steps.push_back(
          {.step = ReshardStep{.kind = ReshardKind::all_gather,
                               .part = part,
                               .from = d,
                               .bytes = part_bytes(from, sizes, element_bytes) * (part.size - 1)}});
    }
    steps.push_back({.size = sizes[d], .dim = d});
  }
  for (ReshardStep& one : reshard_steps(from, to, padded, element_bytes, price))
    steps.push_back({.step = std::move(one)});
  for (const size_t d : divided) {
    const int64_t count = count_of(wanted.dims[d]);
    steps.push_back({.size = ceil_div(sizes[d], count) * count, .dim = d});
    for (const MeshPart& part : wanted.dims[d])
      steps.push_back({.step = ReshardStep{.kind = ReshardKind::slice, .part = part, .to = d}});
  }
  return steps;
}

}  // namespace hone
