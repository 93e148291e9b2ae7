#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shard/reshard.h"

namespace hone {

// A step on the way from one division of a value to another where parts may have padding.
struct PaddedStep {
  // First the dim gets this size, by zeros at its end or without what stands there; 0: it stays.
  int64_t size = 0;
  std::optional<ReshardStep> step = {};  // along `dim`, if it resizes
  size_t dim = 0;
};

// Along a dim with padding that has more parts or fewer, they begin elsewhere: the dim is whole
// between.
std::vector<PaddedStep> padded_steps(const ShardLayout& from, const ShardLayout& to,
                                     const std::vector<int64_t>& sizes, int64_t element_bytes,
                                     const ReshardPrice& price = nullptr);

// The bytes that a device has, padding included.
int64_t part_bytes(const ShardLayout& layout, const std::vector<int64_t>& sizes,
                   int64_t element_bytes);

}  // namespace hone
