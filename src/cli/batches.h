#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quantize/choose.h"
#include "session/inputs.h"
#include "session/native.h"

// The arrays and the native code for quantizing a model.

namespace hone::cli {

// Whole runs of a static graph. Each .npz or .safetensors file of a folder has the inputs of one
// run by name, each .npy file the only input. Files are taken in the order of their names. Every
// fourth file, at least the last, is for the check at the end. Without a folder inputs are random,
// of this seed; the face is told. `labels` names the array with the right answers, or is empty.
// Refuses arrays of other shapes, NaN, and labels that no output could have.
Result<quantize::Batches> batches_of(const Graph& graph, const std::string& folder,
                                     const std::string& labels, int64_t seed, const Face& face);

// Runs graphs as native code, and prices them under their default plans. The options and what the
// face points to outlive it.
quantize::QuantizeMachine native_machine(const NativeOptions& options, const Cost& cost,
                                         const Face& face);

}  // namespace hone::cli
