#pragma once

#include "transport/spmd.h"
#include "transport/steps.h"

namespace hone {

// A message as steps of one device: `kind` is send or receive, and a wait follows. A send reads the
// input, a receive writes the output; their elements are bytes.
DeviceProgram message_steps(StepKind kind, const Message& message, int32_t device, int64_t bytes);

}  // namespace hone
