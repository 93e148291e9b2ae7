#pragma once

#include "cli/arguments.h"
#include "compile/honec.h"
#include "session/compiled.h"

// Compiled models, .honec, named on the command line.

namespace hone::cli {

class Console;

// Tells by the file's name, or by the bytes that it begins with.
bool is_compiled_file(const std::string& path);
// True if MODEL is one.
bool names_compiled(const Arguments& arguments);
// For models that are none: an error if --verify is given.
Status refuse_verify(const Arguments& arguments);

// A file with --input, --inputs, --seed, --threads, --isa and --verify, ready to run. Options that
// say how to compile, or that need a graph, are refused.
Result<CompiledModel> given_compiled(const std::string& path, const Arguments& arguments,
                                     Console& console);
// MODEL in the same way, for another machine: it is not loaded (session/compiled.h), and --threads
// and --isa, which are about this one, are refused.
Result<CompiledModel> given_elsewhere(const Arguments& arguments, Console& console);
// MODEL, and --model, which it was made of.
Result<CompiledOrigin> given_origin(const Arguments& arguments, Console& console);

// `hone compile MODEL -o FILE.honec`.
Status write_compiled(const HonecModel& model, std::span<const HonecProgram> programs,
                      const std::string& path, Console& console);

// `hone inspect FILE.honec`.
Status inspect_compiled(const Arguments& arguments, Console& console);

}  // namespace hone::cli
