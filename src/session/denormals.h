#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/denormals.h"
#include "session/native.h"

// The cost of denormal numbers, and the change in outputs if they are taken for 0.

namespace hone {

// "447,000 of 1,234,567 weights are denormal numbers, ..."; "" if none are.
std::string denormals_note(const DenormalCount& count, std::string_view option);

// How far outputs computed with denormals taken for 0 are from the others, of one run. The names
// are those of the outputs.
Result<std::string> flush_error(std::span<const Tensor> flushed, std::span<const Tensor> exact,
                                std::span<const std::string> names);
// The same; runs the model once more, compiled for exact numbers by the planner's plan.
Result<std::string> flush_error(std::span<const Tensor> flushed, const Model& model,
                                const RunInputs& inputs, const NativeOptions& options,
                                std::span<const std::string> names, const Face& face);

}  // namespace hone
