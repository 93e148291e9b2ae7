#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/type.h"

namespace hone {

// Devices exchange whole bytes. True if each of the parts of the type fills them.
inline bool fills_bytes(Type type, int64_t parts) {
  const int per_byte = 8 / std::min(bits(type.dtype()), 8);
  return type.elements().divisible_by(parts * per_byte);
}

// The bytes of one element that devices exchange.
inline int64_t exchanged_bytes(Type type) {
  return std::max<int64_t>(1, type.static_bytes() / std::max<int64_t>(1, type.static_elements()));
}

}  // namespace hone
