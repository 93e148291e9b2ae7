#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace hone {

// to[i] = a[i] + b[i] for `count` elements, each rounded once to the type; integers wrap. NaN is
// always the same quiet one, so the bits of a sum do not depend on which operand had it. `to` may
// be a or b. The type is one of kNumber; the addresses need not be aligned.
void add_elements(DType type, std::byte* to, const std::byte* a, const std::byte* b, int64_t count);

}  // namespace hone
