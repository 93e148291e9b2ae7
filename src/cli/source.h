#pragma once

#include "cli/arguments.h"
#include "session/source.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

// Models named on the command line.

namespace hone::cli {

class Console;

// The ways in which a command uses a model; the first two are those of SourceOptions.
struct SourceUse {
  bool runs_inputs = false;  // no plan is given: that is one of the model for any inputs
  std::shared_ptr<OnnxChecks> checks = nullptr;
  std::map<std::string, int64_t, std::less<>> dims = {};  // beside those of --dim
};

// MODEL, or "-" for a file on the standard input; --dim and --shape. It becomes the exhibit of a
// crash report.
Result<Source> given_source(const std::string& model, const Arguments& arguments, Console& console,
                            const SourceUse& use = {});
// The same for commands that take a single graph; unsupported for a model of several segments.
Result<Graph> given_graph(const std::string& model, const Arguments& arguments, Console& console);
// The refusal of a model that is none.
Error no_single_graph(const Model& model, std::string_view who);
// The sizes of its inputs that --dim and --shape say.
Result<Bindings> given_sizes(const Source& source, Console& console);

// The values of --opset, --primitives and --external-data; they are for ONNX files alone.
Result<ExportOptions> onnx_options(const Arguments& arguments, const std::string& path);
// save_source(), and a note of the files. "-" is the standard output, where large constants are
// left out.
Status write_model(const Model& model, const std::string& path, Console& console,
                   const ExportOptions& onnx = {});

// An error if write_model() could not write there: "-", or a path that ends in .hone or .onnx.
Status check_model_path(const std::string& path);

// A file with this text, and a note of it; "-" is the standard output.
Status write_text(const std::string& path, const std::string& text, Console& console);

// All of the standard input, up to a limit.
Result<std::string> read_stdin();

}  // namespace hone::cli
