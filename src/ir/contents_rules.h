#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "ir/op.h"
#include "tensor/dim.h"

// How ops act on single elements that are dims. A real element is known if it is an integer that
// its type, and every sum on the way, holds exactly.

namespace hone {

using Element = std::optional<Dim>;  // null: not known
using Elements = std::vector<Element>;

// The value, if the type holds it for every binding and it is simple enough to work with.
Element held_by(DType dtype, Dim value);

// x of type `from` to a result of type `to`: neg, abs, sign, floor, ceil, round, trunc, not, cast.
Element unary_element(Opcode opcode, DType from, DType to, Element x);
// Operands of one type: add, sub, mul, div, rem, max, min, and, or.
Element binary_element(Opcode opcode, DType dtype, Element a, Element b);
// compare; "lt" and so on.
Element compared(std::string_view direction, Dim a, Dim b);

// The identity of a way to combine, such as "sum"; null for max and min.
Element identity_of(std::string_view kind);

}  // namespace hone
