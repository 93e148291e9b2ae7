#pragma once

#include "cli/arguments.h"
#include "compile/compilation.h"
#include "session/compiled.h"

// Compiled models, .honec, named on the command line.

namespace hone::cli {

class Console;

// Whether MODEL is one.
bool names_compiled(const Arguments& arguments);
// For models that are none: an error if --verify is given.
Status refuse_verify(const Arguments& arguments);

// MODEL with --input, --inputs, --seed, --threads and --verify, ready to run. Options that say how
// to compile, or that need a graph, are refused.
Result<CompiledModel> given_compiled(const Arguments& arguments, Console& console);

// `hone compile MODEL -o FILE.honec`, of a compilation whose sizes are numbers.
Status write_compiled(Compilation& compilation, const Model& model, const std::string& path,
                      Console& console);

// `hone inspect FILE.honec`.
Status inspect_compiled(const Arguments& arguments, Console& console);

}  // namespace hone::cli
