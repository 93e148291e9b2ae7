#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "front/onnx/onnx.h"
#include "ir/graph.h"
#include "ir/model.h"
#include "session/inputs.h"

// Models as a user names them.

namespace hone {

struct Source {
  Model model;
  Given open = {};  // with the sizes that are to be bound; the others were when the model was read
  // For an ONNX file: its nodes by the values that they make (ImportOptions::layers).
  std::map<std::string, std::string, std::less<>> layers = {};
  OnnxLabels labels = {};  // of an ONNX file: what numbers stand for
};

struct SourceOptions {
  // True if the tensors that are given decide open sizes of an ONNX file before it is read. If not,
  // the model keeps them, as a plan for open sizes wants it.
  bool binds_inputs = true;
  // True if the model runs on the given tensors only. If an integer or bool among them decides
  // which branch of an ONNX file is taken, the branch is chosen before the run.
  bool runs_inputs = false;
  // Gets a line for each thing that was read otherwise than the file says.
  std::function<void(std::string_view)> notice = {};
  // An ONNX file has these checks (ImportOptions); other models are refused.
  std::shared_ptr<OnnxChecks> checks = nullptr;
};

// A file of a front end, told by what is in it, or "zoo:NAME,OPTION=VALUE". It is verified.
Result<Source> load_source(const std::string& name, Given given = {},
                           const SourceOptions& options = {});
// The bytes of such a file. `where` names them in errors.
Result<Source> parse_source(std::string_view bytes, std::string_view where, Given given = {},
                            const SourceOptions& options = {});

bool is_onnx_path(const std::filesystem::path& path);
// Writes the model, and its large constants next to it, by the front end whose files end like the
// path; else as hone's text. Returns the files.
Result<std::vector<std::filesystem::path>> save_source(const Model& model,
                                                       const std::filesystem::path& path,
                                                       const ExportOptions& options = {});
// True if its constants would fill pages of text.
bool has_large_constants(const Model& model);
// Parseable if the constants are small, and readable if not. Parts that are typed later have no
// text yet.
Result<std::string> text_alone(const Model& model);

// A graph with the model's inputs: the graph itself if it is but one, otherwise one without nodes.
Graph signature_of(const Model& model);
std::vector<std::string> output_names(const Model& model);
// The smallest sizes for which all of the model has types, beside those that are told. A part that
// waits for sizes may refuse the smallest of each symbol: [n, m] in rows of 6 is [1, 6] at the
// least.
Bindings smallest_sizes(const Model& model, const Bindings& told);
// The model for these sizes. The sizes of a model of one graph must fit it.
Result<Model> with_sizes(const Model& model, const Bindings& sizes);

}  // namespace hone
