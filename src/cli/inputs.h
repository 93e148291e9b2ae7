#pragma once

#include "cli/arguments.h"
#include "session/inputs.h"

// From --dim, --shape, --input, --inputs and --seed to the tensors of a graph's parameters.

namespace hone::cli {

class Console;

// --dim and --shape.
Result<Sizes> given_sizes(const Arguments& arguments, const Console& console);

// The sizes that are still open, --inputs, --input and --seed.
Result<RunInputs> given_inputs(const Graph& signature, const Sizes& open,
                               const Arguments& arguments, Engine engine, Console& console);

}  // namespace hone::cli
