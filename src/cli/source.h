#pragma once

#include "cli/arguments.h"
#include "session/source.h"

#include <memory>
#include <string>
#include <string_view>

// Models named on the command line.

namespace hone::cli {

class Console;

// MODEL, or "-" for a file on the standard input; --dim and --shape. It becomes the exhibit of a
// crash report. `checks`: as of load_source().
Result<Source> given_source(const std::string& model, const Arguments& arguments, Console& console,
                            const std::shared_ptr<OnnxChecks>& checks = nullptr);
// The same for commands that take a single graph; unsupported for a model of several segments.
Result<Graph> given_graph(const std::string& model, const Arguments& arguments, Console& console);
// The refusal of a model that is none.
Error no_single_graph(const Model& model, std::string_view who);

// What --opset, --primitives and --external-data say of the file; they are for ONNX files alone.
Result<OnnxExport> onnx_options(const Arguments& arguments, const std::string& path);
// save_source(), and a note of the files. "-" is the standard output, where large constants are
// left out.
Status write_model(const Model& model, const std::string& path, Console& console,
                   const OnnxExport& onnx = {});

// All of the standard input, up to a limit.
Result<std::string> read_stdin();

// An error if what is to be written could not be: found before the work instead of after it.
Status check_writable(const std::string& path);

}  // namespace hone::cli
