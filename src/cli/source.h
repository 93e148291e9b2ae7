#pragma once

#include "cli/arguments.h"
#include "cli/inputs.h"
#include "io/onnx/onnx.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "zoo/zoo.h"

#include <functional>
#include <optional>
#include <string>

// Models named on the command line.

namespace hone::cli {

class Console;

struct Source {
  Model model;
  Sizes open;  // those that are to be bound; the others were when the model was read
};

// MODEL: a graph file, an ONNX file, "-" for one of them on the standard input, or
// "zoo:NAME,OPTION=VALUE". It is verified, and becomes the exhibit of a crash report.
Result<Source> load_model_source(const std::string& model, const Sizes& sizes, Console& console);
// The same for commands that take a single graph; unsupported for a model of several segments.
Result<Graph> load_source(const std::string& model, Console& console);
// The refusal of a model that is none.
Error no_single_graph(const Model& model, std::string_view who);

// A graph with the model's inputs: the graph itself if it is but one, otherwise one without nodes.
Graph face_of(const Model& model);

bool is_onnx_path(const std::string& path);
// What --opset, --primitives and --external-data say of the file; they are for ONNX files alone.
Result<OnnxExport> onnx_options(const Arguments& arguments, const std::string& path);
// Writes the model, and its large constants next to it: as ONNX if the path ends in .onnx. "-" is
// the standard output, where large constants are left out.
Status save_source(const Model& model, const std::string& path, Console& console,
                   const OnnxExport& onnx = {});
Status save_graph(const Graph& graph, const std::string& path, Console& console,
                  const OnnxExport& onnx = {});

// An unknown name is an error that says how to find one.
Result<Graph> build_from_zoo(std::string_view name, const ZooOptions& options);

// What `get` says for each of zoo_options(); none: not given. Values are checked already.
ZooOptions zoo_options_from(const std::function<std::optional<std::string>(std::string_view)>& get);

// Bytes that a command may allocate for tensors: the machine's memory.
int64_t memory_limit();

// All of the standard input, up to a limit.
Result<std::string> read_stdin();

// An error if what is to be written could not be: found before the work instead of after it.
Status check_writable(const std::string& path);

}  // namespace hone::cli
