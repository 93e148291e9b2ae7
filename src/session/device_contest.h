#pragma once

#include <memory>

#include "ir/model.h"
#include "oracle/accuracy_runs.h"
#include "runtime/runnable.h"
#include "session/devices.h"
#include "session/inputs.h"

namespace hone {

// Native code of a model with collectives, beside the reference of as many devices
// (evaluate_spmd). Inputs and outputs are those of all devices (compile/spmd_programs.h); other
// inputs are those of other seeds. All that the face points to outlives it.
Result<Contest> contest_of_devices(const Model& model, const RunInputs& inputs,
                                   const DeviceOptions& devices,
                                   std::shared_ptr<const Runnable> native, const Face& face = {});

}  // namespace hone
