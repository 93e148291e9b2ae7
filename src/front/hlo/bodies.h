#pragma once

#include <optional>
#include <string_view>

#include "front/hlo/importer.h"

// The meaning of the body of a reduction or of a scatter, where hone has an op for it.

namespace hone::hlo {

// A body of two scalars that combines them by one op. Its kind is named as by the ops of hone: sum,
// product, max, min, and, or. "replace" takes the second one as it is. For bools sum is or, and
// product is and. None: it does something else.
std::optional<std::string_view> combiner(const Body& body);

// True if hone reduces numbers of this type by this kind.
bool has_op(std::string_view kind, DType type);
// The op that combines two numbers by this kind.
Opcode opcode_of(std::string_view kind);
// True if the tensor is one number, which changes nothing when it is combined.
bool is_identity(std::string_view kind, const Tensor& number);

// The greatest or smallest element along an axis and its place, where a reduction of two operands
// finds them. Empty: it does something else.
std::vector<Value> extreme_and_place(Node& n, const Body& body, const Ints& axes);

// Integers in the total order of the reals with these bits: -NaN < -inf < ... < NaN.
Value total_order(Value x);

// The scalar for each element of these dims.
Value spread(Value scalar, const Dims& dims);

// The shared arguments of windows, one number per dim.
struct Windows {
  Ints size;
  Ints stride;
  Ints low;
  Ints high;
  Ints base_dilation;
  Ints window_dilation;
};
Windows windows_of(Node& n, int rank);
// The operand with its base dilation and its padding, both of `value`.
Value padded_base(Value x, Value value, const Windows& windows);
// How often a window fits, per dim.
Ints positions(Node& n, const Windows& windows, const Ints& padded);
// The elements of the padded operand at this place of all windows.
Value at_place(Value padded, const Windows& windows, const Ints& positions, const Ints& place);
// Calls `f(place)` for each place of a window, row-major. An error beyond 65,536 places.
void for_each_place(Node& n, const Windows& windows, const std::function<void(const Ints&)>& f);

}  // namespace hone::hlo
