#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "shard/node_division.h"
#include "shard/reshard.h"

namespace hone {

// The way from one division of a value to another where parts may have padding. Along a dim with
// padding that has more parts or fewer, they begin elsewhere: the dim is whole between.
struct PaddedReshard {
  std::vector<size_t> gathered = {};  // dims that become whole first, without their padding
  ShardLayout from = {}, to = {};     // then reshard_steps() go: axes divide these sizes
  std::vector<int64_t> sizes = {};
  std::vector<size_t> divided = {};  // dims that get padding at the end, and are cut
};

inline PaddedReshard padded_reshard(const ShardLayout& from, const ShardLayout& to,
                                    std::vector<int64_t> sizes) {
  PaddedReshard made = {.from = from, .to = to, .sizes = std::move(sizes)};
  for (size_t d = 0; d < made.sizes.size(); ++d) {
    int64_t& size = made.sizes[d];
    if (count_of(from.dims[d]) == count_of(to.dims[d])) {
      size = ceil_div(size, count_of(from.dims[d])) * count_of(from.dims[d]);
      continue;
    }
    if (has_padding(from.dims[d], size)) {
      made.gathered.push_back(d);
      made.from.dims[d].clear();
    }
    if (has_padding(to.dims[d], size)) {
      made.divided.push_back(d);
      made.to.dims[d].clear();
    }
  }
  return made;
}

}  // namespace hone
