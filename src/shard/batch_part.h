#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "shard/row_rule.h"

// The graph of one device that computes a part of a batch.

namespace hone {

struct BatchShare {
  int64_t rows = 1;   // of the whole batch; at least 2
  int64_t first = 0;  // that the device has
  int64_t count = 1;  // at least 1
  // All that have rows of the batch.
  int64_t devices = 1;
};

struct BatchPart {
  Graph graph = Graph();  // its inputs and outputs are those of the whole graph
  // The dim along which inputs and outputs have the rows: the device has its own rows of them. Or
  // kWhole: each device takes and gives the same.
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};
  // False: shares of as many rows have the same graph, wherever they begin.
  bool depends_on_first = false;
  // The devices add up what each of them has (all_reduce): they run at the same time.
  bool has_sums = false;
};

// Follows the rows from the inputs, which have them along `inputs`, to the outputs. An input that
// is given whole gets rows if an op meets it row by row. Other whole values that meet rows are cut
// inside of the graph: what is computed from constants, and from the places of elements.
//
// An op that adds up rows makes a partial sum on each device, and so does what adds or moves
// partial sums alone. Where the value is needed, an all_reduce of all devices makes it whole. The
// graphs of all shares have the same all_reduces in the same order. Numbers of 16 bits and less are
// added up in f32, and integers of less than a byte in i32.
//
// Regions and composites are followed into. A composite whose local form means the same stays one.
// Where a branch or a while loop has sums, devices agree on its condition by another all_reduce.
// An op whose results need several rows in another way is refused by name. Static graphs only.
Result<BatchPart> batch_part(const Graph& graph, std::vector<int> inputs, const BatchShare& share);

}  // namespace hone
