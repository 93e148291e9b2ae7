#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/onnx/onnx.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "session/sizes.h"

// Models as a user names them.

namespace hone {

struct Source {
  Model model;
  Sizes open = {};  // those that are to be bound; the others were when the model was read
};

// A graph file, an ONNX file, or "zoo:NAME,OPTION=VALUE". It is verified.
Result<Source> load_source(const std::string& name, const Sizes& sizes = {});
// The bytes of a graph file or of an ONNX file. `where` names them in errors.
Result<Source> parse_source(std::string_view bytes, std::string_view where,
                            const Sizes& sizes = {});

bool is_onnx_path(const std::filesystem::path& path);
// Writes the model, and its large constants next to it: as ONNX if the path ends in .onnx. Returns
// the files.
Result<std::vector<std::filesystem::path>> save_source(const Model& model,
                                                       const std::filesystem::path& path,
                                                       const OnnxExport& onnx = {});
// Whether its constants would fill pages of text.
bool has_large_constants(const Model& model);
// Parseable if the constants are small, and readable if not. What is typed later has no text yet.
Result<std::string> text_alone(const Model& model);

// A graph with the model's inputs: the graph itself if it is but one, otherwise one without nodes.
Graph signature_of(const Model& model);
std::vector<std::string> output_names(const Model& model);
// The model for these sizes. Those of a model of one graph must fit it.
Result<Model> with_sizes(const Model& model, const Bindings& sizes);

}  // namespace hone
