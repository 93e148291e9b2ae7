#pragma once

#include "cli/arguments.h"
#include "session/inputs.h"

// Makes the tensors of a graph's parameters from --dim, --shape, --input, --inputs and --seed.

namespace hone::cli {

class Console;

// --dim, --shape, --inputs and --input, as far as the command has them.
Result<Given> given_values(const Arguments& arguments, const Console& console);

// Reads the given inputs and sizes that are still open, and --seed.
Result<RunInputs> given_inputs(const Graph& signature, const Given& open,
                               const Arguments& arguments, Engine engine, Console& console);

// An error if sizes were guessed: they are part of what is measured, so they are the user's choice.
Status check_all_chosen(const RunInputs& inputs);

}  // namespace hone::cli
