#pragma once

#include <span>
#include <vector>

#include "program/tiles/tiles.h"
#include "tensor/tensor.h"

namespace hone {

struct InterpretOptions {
  // Trips that may be taken in any order run backwards: the results must be the same.
  bool backwards = false;
  int64_t max_statements = int64_t{1} << 32;  // executed
};

// Runs a verified program of static dims, one point after another, and returns its outputs and
// updates. `inputs` has its inputs, then the old contents of its updates. Numbers are rounded to
// their type at every statement. An error: memory is read before it is written, or two trips of
// threads loops touch one element in one phase, one of them writing.
Result<std::vector<Tensor>> interpret(const TileProgram& program, std::span<const Tensor> inputs,
                                      const InterpretOptions& options = {});

}  // namespace hone
