#pragma once

#include "ir/graph.h"

namespace hone {

// The graph with weights of f32 in the place of those that each run unpacks from blocks or casts
// from 16 bits. The numbers are the same, and each takes 4 bytes. They are unpacked when they are
// first read.
Result<Graph> with_unpacked_weights(const Graph& graph);

// Bytes of the constants that with_unpacked_weights() would give.
int64_t unpacked_bytes(const Graph& graph);

}  // namespace hone
