#pragma once

#include <string_view>

#include "tensor/tensor.h"

// Tensors as a user writes them.

namespace hone {

// "2x3xf32=1 2 3 4 5 6", "i64=7", or one number for all elements: "8xf16=0.5". These elements are
// made when they are first read.
Result<Tensor> parse_literal(std::string_view text);
// The part before the sign.
Result<Type> parse_literal_type(std::string_view text);

}  // namespace hone
