#include "session/source.h"

#include <algorithm>
#include <fstream>

#include "base/text.h"
#include "front/hone/graph_file.h"
#include "ir/model_text.h"
#include "ir/summary.h"
#include "runtime/honec.h"
#include "session/compiled.h"
#include "zoo/spec.h"

namespace hone {
namespace {

namespace fs = std::filesystem;

// ONNX files begin with their IR version: field 1, a varint. No graph file begins so.
bool begins_like_onnx(std::string_view content) { return content.starts_with('\x08'); }

bool is_onnx_file(const fs::path& path) {
  if (is_onnx_path(path)) return true;
  std::error_code ignored;
  if (path.extension() == ".hone" || !fs::is_regular_file(path, ignored)) return false;
  char first = 0;
  return std::ifstream(path, std::ios::binary).get(first) &&
         begins_like_onnx(std::string_view(&first, 1));
}

Result<OnnxImport> onnx_import(const Given& given, const SourceOptions& options) {
  OnnxImport import = onnx_sizes(options.binds_inputs ? all_sizes(given) : given.sizes);
  for (const GivenInput& input : given.inputs)
    if (options.runs_inputs && input.type().static_elements() == 1)
      import.known.emplace(input.name, HONE_TRY(input.value()));
  import.notice = options.notice;
  import.checks = options.checks;
  return import;
}

Status check_none(const SourceOptions& options, std::string_view name) {
  if (options.checks == nullptr) return {};
  return usage_error("'{}' is no ONNX file: what other models do with any value is defined", name);
}

Result<Source> load_unverified(const std::string& name, Given given, const SourceOptions& options) {
  if (is_honec_path(name)) return is_compiled(name);
  std::string_view spec = name;
  if (consume_prefix(spec, "zoo:")) {
    HONE_TRY(check_none(options, name));
    Model model = model_of(HONE_TRY(build_zoo_spec(spec)));
    return Source{std::move(model), std::move(given)};
  }
  if (!is_onnx_file(name)) {
    HONE_TRY(check_none(options, name));
    return Source{HONE_TRY(load_model(name)), std::move(given)};
  }
  Source source;
  OnnxImport import = HONE_TRY(onnx_import(given, options));
  import.layers = &source.layers;
  import.labels = &source.labels;
  source.model = HONE_TRY(load_onnx(name, import));
  source.open.inputs = std::move(given.inputs);
  return source;
}

Result<Source> verified(Source source, std::string_view name) {
  Status good = verify(source.model);
  if (!good.ok()) return std::move(good).error().within(name);
  return source;
}

bool is_large(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::constant) bytes += graph.constant(n).byte_size();
  return bytes > (1 << 16);
}

}  // namespace

Result<Source> load_source(const std::string& name, Given given, const SourceOptions& options) {
  return verified(HONE_TRY(load_unverified(name, std::move(given), options)), name);
}

Result<Source> parse_source(std::string_view bytes, std::string_view where, Given given,
                            const SourceOptions& options) {
  if (begins_like_honec(bytes)) return is_compiled(where);
  if (!begins_like_onnx(bytes)) {
    HONE_TRY(check_none(options, where));
    Model model = HONE_TRY(parse_model(bytes, {.file = std::string(where)}));
    return verified({std::move(model), std::move(given)}, where);
  }
  Source source;
  OnnxImport import = HONE_TRY(onnx_import(given, options));
  import.layers = &source.layers;
  import.labels = &source.labels;
  source.model = HONE_TRY(parse_onnx(std::as_bytes(std::span(bytes)), where, ".", import));
  source.open.inputs = std::move(given.inputs);
  return verified(std::move(source), where);
}

bool is_onnx_path(const fs::path& path) { return path.extension() == ".onnx"; }

Result<std::vector<fs::path>> save_source(const Model& model, const fs::path& path,
                                          const OnnxExport& onnx) {
  if (is_honec_path(path))
    return usage_error("{} is a name for a compiled model", excerpt(path.string()))
        .with_hint("models are .hone and .onnx files");
  return is_onnx_path(path) ? save_onnx(path, model, onnx) : save_model(path, model);
}

bool has_large_constants(const Model& model) {
  return std::ranges::any_of(graphs_of(model), [](const Graph* graph) { return is_large(*graph); });
}

Result<std::string> text_alone(const Model& model) {
  const bool large = has_large_constants(model);
  if (const Graph* graph = plain_graph(model)) return print(*graph, {.elide = large});
  return print(model, {.elide = large});
}

Graph signature_of(const Model& model) {
  const Graph* graph = single_graph(model);
  Graph signature = graph != nullptr ? *graph : Graph(model.name);
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (graph == nullptr) signature.add_parameter(model.inputs[i].type);
    signature.set_name(signature.inputs()[i], model.inputs[i].name);
  }
  return signature;
}

std::vector<std::string> output_names(const Model& model) {
  std::vector<std::string> names;
  for (const ModelValue& output : model.outputs) names.push_back(output.name);
  return names;
}

Result<Model> with_sizes(const Model& model, const Bindings& sizes) {
  const Graph* graph = single_graph(model);
  if (graph != nullptr) return model_of(HONE_TRY(specialize(*graph, sizes)));
  return specialize(model, sizes);
}

}  // namespace hone
