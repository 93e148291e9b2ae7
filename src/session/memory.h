#pragma once

#include <cstdint>

#include "base/error.h"
#include "ir/graph.h"
#include "session/face.h"

namespace hone {

// Bytes of the machine, which tensors of a run may have.
int64_t machine_memory();

// What needs the memory. The reference has room for native code beside it.
enum class Engine : uint8_t { native, reference };

// What the machine has beside inputs, outputs and constants; an error if a run needs more than it
// has. All symbols are bound. What arenas take is known once there is code, and is not in it.
Result<int64_t> memory_left(const Graph& graph, const Bindings& bindings, Engine engine,
                            const Labels& labels = {});

// The refusal of a run that needs so many bytes.
Error too_large(double needed, int64_t limit, const Labels& labels);

}  // namespace hone
