#pragma once

#include <cstddef>
#include <cstdint>

namespace hone {

// Numbers of stages, layers and devices, none of which is negative, as indices.
inline size_t index_at(int32_t i) { return static_cast<size_t>(i); }

}  // namespace hone
