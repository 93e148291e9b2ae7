#pragma once

#include "kernel/contraction.h"

namespace hone {

// A gemm whose products are split: f32 factors as three parts of bf16, which a matrix unit
// multiplies in pairs of neighbours along one dim of the reduction.
struct SplitShape {
  static constexpr int64_t kParts = 3;
  static constexpr int64_t kWords = 16;         // pairs in a step
  static constexpr int64_t kStep = 2 * kWords;  // points in a step

  size_t row_side = 0;            // the operand that has the rows; the other one has the columns
  int row = 0;                    // dim of the results
  int column = 0;                 // the same: the dim in lanes
  int inner = 0;                  // dim of the reduction that pairs are taken along
  int64_t rows = 0, columns = 0;  // of a register tile: 16 or 32
  int64_t inner_steps = 0;  // that a block takes along `inner`; the last may be filled in part
  int64_t steps = 0;        // and along all dims of the reduction

  int64_t points(size_t side) const { return side == row_side ? rows : columns; }
};

// Or why the schedule, of a gemm, cannot be carried out so.
Result<SplitShape> split_shape(const Contraction& contraction, const KernelSpace& space,
                               const Schedule& schedule);

}  // namespace hone
