#pragma once

#include <span>
#include <vector>

#include "program/tiles/tiles.h"
#include "tensor/tensor.h"

namespace hone {

// How the warps of blocks used memory. An access is one statement of all threads of a warp.
struct SimtCounts {
  int64_t barriers = 0;         // of each block
  int64_t block_accesses = 0;   // to buffers of role `block`
  int64_t bank_conflicts = 0;   // further turns that these took, of 32 banks of 4 bytes
  int64_t global_accesses = 0;  // to buffers of callers
  int64_t sectors = 0;          // of 32 bytes that these touched
  int64_t least_sectors = 0;    // that as many bytes would fill
};

struct InterpretOptions {
  // Trips that may be taken in any order run backwards: the results must be the same.
  bool backwards = false;
  int64_t max_statements = int64_t{1} << 32;  // executed
  uint64_t seed = 0;                          // of the order of the warps of a block
  SimtCounts* counts = nullptr;               // written if it is given
  // Products of warps cut their sums off after each addition, as tensor cores may; else they round.
  bool cuts_sums = false;
  // Boxes come as late as waits for them allow; else at once.
  bool lands_late = false;
};

// Runs a verified program of static dims, one point after another, and returns its outputs and
// updates. `inputs` has its inputs, then the old contents of its updates. Numbers are rounded to
// their type at every statement. An error: memory is read before it is written, or two trips of
// threads loops touch one element in one phase, one of them writing. In a block it is an error only
// where no barrier is between them.
Result<std::vector<Tensor>> interpret(const TileProgram& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options = {});

}  // namespace hone
