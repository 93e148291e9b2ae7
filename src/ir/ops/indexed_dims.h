#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/access.h"
#include "ir/op.h"

// How the dims of gather and scatter correspond. Both pair an operand with an outer tensor (the
// result of gather, the updates of scatter) whose dims run over lookups and over windows.

namespace hone {

struct IndexedDims {
  // `left_out`: the operand dims of window size 1 that the outer tensor lacks.
  IndexedDims(Op op, const Ints& window, const Ints& left_out, Type operand, Type indices);

  // Checks the attributes of both ops; the others rely on it.
  Status check(std::string_view window_name, std::string_view left_out_name) const;

  int outer_rank() const { return static_cast<int>(window_dims.size() + index_dims.size()); }
  bool is_batch(int operand_dim) const;
  bool is_window(int operand_dim) const;  // neither left out nor batch
  // The window's extent along an operand dim, given the outer tensor.
  Dim window_size(int operand_dim, Type outer) const;

  // The index into the indices of component `k` of the lookup at `position`.
  std::vector<IndexExpr> index_of_component(const std::vector<IndexExpr>& position, int k) const;
  // The same as an element offset, for static types.
  int64_t index_offset(const Ints& batch, size_t k) const;
  // The lookup with the given number, in row-major order.
  Ints batch_point(int64_t number) const;

  Type operand;
  Type indices;
  const Ints& index_map;
  const Ints& operand_batch_dims;
  const Ints& index_batch_dims;
  const Ints& left_out;
  const Ints& window;
  int64_t index_vector_dim;
  std::vector<int> window_dims;     // outer dims that run over windows ...
  std::vector<int> operand_dims;    // ... and the operand dims that they run over
  std::vector<int> batch_dims;      // outer dims that run over lookups ...
  std::vector<int> index_dims;      // ... and the dims of the indices that they run over
  std::vector<int> batch_ordinals;  // per operand batch dim: its partner's place in index_dims
  Ints index_strides;               // static types only
};

}  // namespace hone
