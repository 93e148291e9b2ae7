#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace hone {

// A seeded graph of a product or a conv of bytes, as quantized models have them: sums of i32 of
// unsigned and signed bytes. The sizes are small and of any rest, and unsigned bytes may be signed
// ones whose highest bit was changed. Some sums are scaled to f32.
Graph random_bytes(uint64_t seed);

}  // namespace hone
