#pragma once

#include <vector>

#include "cli/arguments.h"
#include "front/options.h"
#include "quantize/choose.h"
#include "quantize/multipliers.h"
#include "session/native.h"

// `hone quantize --target FILE` for a target that lists multipliers.

namespace hone::cli {

class Console;

// The list of --target; none with a --to other than auto.
Result<std::vector<quantize::Multiplier>> multipliers_of(const Arguments& arguments);

// Chooses one for each layer, prints what it costs and saves, and writes the model that computes
// so.
Status quantize_for_hardware(const Graph& graph, const quantize::QuantizeOptions& options,
                             const std::vector<quantize::Multiplier>& multipliers,
                             const Arguments& arguments, const NativeOptions& native,
                             const ExportOptions& onnx, Console& console);

}  // namespace hone::cli
