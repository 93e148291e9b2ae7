#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// A graph in the form that plans of shardings are for.

namespace hone {

struct ShardSubject {
  // Composites are spelled out, those of 16-bit reals in f32. Nothing is dead, and every value has
  // a name. Large constants are inputs behind the others, so that each device needs its part alone.
  Graph graph = Graph();
  size_t own_inputs = 0;  // that the given graph has
  // The other inputs, in order.
  std::vector<Tensor> constants = {};
};

// The smallest constant that becomes an input, in bytes.
inline constexpr int64_t kLeastShardedConstant = 4096;

// The given graph is static. Deterministic: plans name the values of the result.
Result<ShardSubject> shard_subject(const Graph& graph,
                                   int64_t least_constant = kLeastShardedConstant);

}  // namespace hone
