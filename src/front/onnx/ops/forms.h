#pragma once

#include <string_view>

#include "front/onnx/node.h"

// Forms that take several ops in ONNX and one here. Mappings that end in such a form call these, so
// that an exported graph comes back as it was.

namespace hone::onnx_io {

// broadcast_to(x, dims); what counts along one dim alone, counts in the result.
Value stretched(Value x, const Dims& dims);

// cast(x, dtype); what counts along an axis counts in that type.
Value converted(Value x, DType dtype);

// The value before it was clamped to 0..size-1: gathers clamp on their own. Null if indices are
// nothing of the kind. With several sizes, the last dim of the indices runs along them.
Value before_clamp(Node& n, Value indices, const Dims& sizes);

// Index tuples of one component without the dim that holds it, where that was only just added: a
// gather needs no such dim.
Value without_tuple_dim(Value indices);

// Where the window starts that ScatterND replaces, if its indices count through one: i64[] for each
// dim of x. Empty if they do not.
std::vector<Value> window_starts(Node& n, Value x, Value indices, Value updates);

// True if indices are made so that none is negative: what is out of range was replaced.
bool is_guarded(Node& n, Value indices);
// The scatter that `x`, a scatter into a tensor with one row more for what is out of range, is when
// that row is cut off. Null if x is nothing of the kind.
Value without_spare_row(Node& n, Value x);

// An einsum of two operands that is a dot, as that; null if it is more.
Value dot_of_einsum(std::string_view equation, Value a, Value b);

}  // namespace hone::onnx_io
