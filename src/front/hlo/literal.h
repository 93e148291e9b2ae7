#pragma once

#include <optional>
#include <string_view>

#include "front/hlo/program.h"
#include "tensor/tensor.h"

namespace hone::hlo {

// The numbers of dense<...>. One number for all elements stays one: a literal of a billion equal
// elements takes no memory.
struct Literal {
  Tensor tensor;  // with `splat`, of rank 0
  bool splat = false;
};

// Throws Refusal, with the place in the literal.
Literal read_literal(const Program& program, const Attribute& literal, Type type);

// One number as it is spelled, for elements of the type: "1.5e-3", "true", "0x7FC0" (the bits of a
// real), "-inf". None: the text is something else.
std::optional<double> real_number(std::string_view text, DType type);
std::optional<int64_t> integer_number(std::string_view text, DType type);

}  // namespace hone::hlo
