#pragma once

#include <cstdint>

#include "base/error.h"
#include "ir/graph.h"
#include "session/face.h"

// How much memory a run may take. It is counted before it is taken.

namespace hone {

// Bytes that tensors of a run may have: what the face says, otherwise all that the machine has.
int64_t memory_limit(const Face& face);

// The engine that needs the memory.
enum class Engine : uint8_t {
  native,
  reference,
  contest,  // native code, beside the reference in each of its numerics
};

// Bytes for what is computed on the way.
struct MemoryLeft {
  int64_t native = INT64_MAX;
  int64_t reference = INT64_MAX;
};

// The memory that the limit leaves beside inputs, outputs and constants; an error if that is less
// than a run is known to need. All symbols are bound. The temporaries of native code and composites
// are known once they run, so whoever runs them gets the rest as a limit.
Result<MemoryLeft> memory_left(const Graph& graph, const Bindings& bindings, Engine engine,
                               const Face& face = {});

// The refusal of a run that needs this many bytes.
Error too_large(double needed, const Face& face);

}  // namespace hone
