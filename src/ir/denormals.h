#pragma once

#include <cstdint>

#include "ir/graph.h"
#include "ir/model.h"

// Denormal numbers lie so near to 0 that they have fewer bits than others. Many processors take a
// hundred times as long for them.

namespace hone {

struct DenormalCount {
  int64_t denormals = 0;
  int64_t reals = 0;  // elements of constants of f64, f32 and bf16, which compute as they are

  DenormalCount& operator+=(const DenormalCount& other) {
    denormals += other.denormals;
    reals += other.reals;
    return *this;
  }
};

// Counts the constants, also those of regions. Reads their bytes; weights that are made when they
// are first read, as those of the zoo, are left out.
DenormalCount count_denormals(const Graph& graph);
// Counts all graphs that have types.
DenormalCount count_denormals(const Model& model);

}  // namespace hone
