#pragma once

#include <optional>

#include "kernel/words.h"

namespace hone {

// The operands of a matrix unit for the numbers of a contraction. They are words of 32 bits: pairs
// of bf16 with sums of f32, or quads of bytes with sums of i32. Other numbers are several parts of
// bf16 that add up to each of them, or to its value when rounded to that many. On a GPU a word may
// be one number of f32, without its last 13 bits.
struct MatrixNumbers {
  bool are_quads = false;
  int64_t parts = 1;
  bool are_rounded = false;
  bool are_tf32 = false;

  int64_t each() const { return are_quads ? 4 : are_tf32 ? 1 : 2; }  // numbers of a word
  int64_t products() const { return parts * (parts + 1) / 2; }
};

// None: the unit has no sums of their type, or, as it takes denormal numbers for 0, those do matter
// (kFlushAttr).
std::optional<MatrixNumbers> matrix_numbers(GraphView graph, NodeId node);
// True if the target has a unit for them.
bool has_matrix_unit(const Target& target, const MatrixNumbers& numbers);

// A gemm on a matrix unit. It takes tiles of two panels. These have up to 32 rows of one operand,
// 16 or 32 columns of the other one, and words along one dim of the reduction, 16 in a step.
struct MatrixShape {
  static constexpr int64_t kWords = 16;     // in a step
  static constexpr int64_t kMostRows = 32;  // of a register tile, and columns

  MatrixNumbers numbers;
  size_t row_side = 0;            // the operand that has the rows; the other one has the columns
  int column = 0;                 // dim of the results, the one in lanes
  int inner = 0;                  // dim of the reduction that words are taken along
  int64_t rows = 0, columns = 0;  // of a register tile
  int64_t inner_steps = 0;  // that a block takes along `inner`; the last may be filled in part
  int64_t steps = 0;        // and along all dims of the reduction

  int64_t points(size_t side) const { return side == row_side ? rows : columns; }
  int64_t step() const { return kWords * numbers.each(); }  // points of the reduction
};

// Or why the schedule, of a gemm, cannot be carried out so.
Result<MatrixShape> matrix_shape(const KernelBody& body, const Contraction& contraction,
                                 const KernelSpace& space, const Schedule& schedule);

}  // namespace hone
