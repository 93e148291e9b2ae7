#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

// Makes a model small enough for the reference: its sizes are divided, all that belong together by
// the same number.

namespace hone {

struct ShrinkOptions {
  // "INPUT:DIM", a size, or a kind of dims: batch, layers or width.
  struct Division {
    std::string what;
    int64_t factor = 1;
  };
  std::vector<Division> divide = {};
  std::vector<std::string> keep = {};  // keep their sizes
  // Then the largest sizes are divided until the work is at most this; 0: no more of them.
  double operations = 0;
  int64_t least = 2;  // no size gets smaller than this
};

struct SizeChange {
  int64_t before = 0;
  int64_t behind = 0;
  std::string kind;   // batch, layers or width
  std::string where;  // the inputs that have it: "x:0, w:1"; "" for none
  int64_t classes = 0;
};

struct Shrunk {
  Graph graph = Graph();
  // A run takes at least one operation for each element of a result, and 16 for one of an input.
  double operations_before = 0;
  double operations_behind = 0;
  std::vector<SizeChange> changes = {};  // the largest first; what stays is not among them
};

// Static graphs. A size stays where a constant of integers or bools has it, where an op would give
// something else, and where it is 1. Constants of reals are cut.
Result<Shrunk> shrink(const Graph& graph, const ShrinkOptions& options);

}  // namespace hone
