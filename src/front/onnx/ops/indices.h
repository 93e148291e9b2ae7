#pragma once

#include <optional>

#include "front/onnx/node.h"

// Integers that a graph computes, and looking up by them.

namespace hone::onnx_io {

// ---- Integers in the graph ----------------------------------------------------------------------

Value integers(Builder& b, const Ints& values);     // i64[n], a constant
Value dims_value(Builder& b, const Dims& dims);     // i64[n] that holds the dims
Value scalar_of(Node& n, size_t operand);           // the only element of an operand, rank 0
Value element_of(Value vector, int64_t index);      // rank 0
std::vector<Value> elements_of(Node& n, size_t i);  // of a vector operand, i64[] each

// The known value of an integer scalar; null if it depends on data.
std::optional<Dim> known_scalar(Node& n, Value scalar);

std::vector<Number> numbers_of(Node& n, size_t i);  // of a vector operand

// Bounds for `unknown` sizes beside `fixed` elements, so that the type stays within its limit.
int64_t room_for_each(Dim fixed, size_t unknown);
// The sizes of a vector operand; those that depend on data are measured, within such bounds.
Dims measured_sizes(Node& n, size_t operand, Dim fixed = 1);

// ---- Indexing -----------------------------------------------------------------------------------

// take() along an axis that may be empty: then nothing is looked up, or the result is unspecified.
Value looked_up(Value x, Value indices, int axis);
// The same with negative indices counting from the back, as ONNX has it.
Value from_back(Node& n, Value indices, Dim size);
// Checks that the indices are in -size..size-1, or with `from_back` off in 0..size-1.
void check_indices(Node& n, Value indices, Dim size, bool from_back = true);
// The elements start, start + step, ... along an axis, `size` of them; both are i64[].
Value window(Value x, int axis, Value start, Dim size, Value step = {});
// x with `size` elements along an axis, where ONNX wants that number. Another number stays for the
// caller to refuse.
Value with_size(Node& n, Value x, int axis, int64_t size, std::string_view what);
// The remainder when x is rounded down to a multiple of a positive number.
Value floor_mod(Value x, Value divisor);

// x under dims that depend on data. A run fails where they have not as many elements.
Value reshaped(Node& n, Value x, const std::vector<Value>& sizes);

// The axes in the order given, each at most once; negative ones count from the back.
Ints distinct_axes(Node& n, const Ints& axes, int rank);

}  // namespace hone::onnx_io
