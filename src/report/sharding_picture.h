#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "shard/partition.h"

namespace hone {

// A model whose values devices of a mesh divide, as a page and tables show it: who holds what, each
// exchange with its reason, and what is computed whole. Bounded, however many values there are.
struct ShardingPicture {
  struct Value {
    std::string name;     // "%x"
    std::string type;     // "f32[8, 6]"
    std::string divided;  // "[x, -]", "whole", or "[x, -], made whole"
    int64_t bytes = 0;    // of all of it
    int64_t part = 0;     // that a device has
  };
  std::string mesh;  // "x=2,y=4"
  int64_t devices = 1;
  std::vector<Value> values = {};  // inputs, constants and outputs; or all
  std::vector<ShardMessage> exchanges = {};
  std::vector<WholeNode> whole = {};
  int64_t received = 0;  // bytes, by each device
  double seconds = 0;    // of a step, by price
  int64_t memory = 0;    // bytes that the device needs which needs most
  size_t left_out_values = 0, left_out_exchanges = 0, left_out_whole = 0;
};

// "all_reduce", "all_reduce, 8 times"
std::string exchange_text(const ShardMessage& one);

// The graph says how values are divided. Inputs, outputs and constants of several elements, or all
// values; of each list `most`: the largest ones, and the first nodes that are computed whole.
ShardingPicture sharding_picture(const Graph& graph, const Partition& partition, bool all,
                                 size_t most = 2'000);

}  // namespace hone
