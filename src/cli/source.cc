#include "cli/source.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/echo.h"
#include "io/graph_file.h"
#include "io/onnx/onnx.h"
#include "ir/model.h"
#include "ir/model_text.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include <unistd.h>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;
constexpr size_t kSmallExhibit = 10000;  // nodes; its text is made in every run

// "resnet18,size=tiny,unroll"
Result<Graph> build_zoo_source(std::string_view spec) {
  const std::vector<std::string_view> parts = split(spec, ',');
  std::map<std::string, std::string, std::less<>> values;
  for (std::string_view part : std::span(parts).subspan(1)) {
    const size_t sign = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(0, sign);
    if (name.empty()) {
      return usage_error(
          "'zoo:{}' {}", excerpt(spec),
          spec.ends_with(',') ? "ends in a comma" : "has the name of an option missing");
    }
    std::vector<std::string_view> known;
    const Option* option = nullptr;
    for (const Option& one : zoo_options()) {
      known.push_back(one.name);
      if (one.name == name) option = &one;
    }
    if (option == nullptr) {
      const std::string hint = did_you_mean(name, known);
      return usage_error("a zoo model has no option '{}'", excerpt(name))
          .with_hint(hint.empty() ? fmt::format("it has {}", join(known, ", ")) : hint);
    }
    const bool has_value = sign < part.size();
    const std::string_view value = has_value ? part.substr(sign + 1) : "";
    if (has_value && option->take == Take::nothing) return usage_error("'{}' takes no value", name);
    if (!has_value && option->take != Take::nothing)
      return usage_error("'{}' needs a value: {}={}", name, name, option->value);
    if (has_value) HONE_TRY(check_value(*option, value));
    if (!values.emplace(name, value).second) return usage_error("'{}' is given twice", name);
  }
  return build_from_zoo(parts[0], zoo_options_from([&](std::string_view name) {
                          const auto found = values.find(name);
                          return found == values.end() ? std::nullopt
                                                       : std::optional(found->second);
                        }));
}

// ONNX files begin with their IR version: field 1, a varint. No graph file begins so.
bool begins_like_onnx(std::string_view content) { return content.starts_with('\x08'); }

bool is_onnx_file(const std::string& path) {
  const fs::path extension = fs::path(path).extension();
  if (extension == ".onnx") return true;
  std::error_code ignored;
  if (extension == ".hone" || !fs::is_regular_file(path, ignored)) return false;
  char first = 0;
  return std::ifstream(path, std::ios::binary).get(first) &&
         begins_like_onnx(std::string_view(&first, 1));
}

Result<Source> read_onnx(const std::string& path, const Sizes& sizes) {
  return Source{HONE_TRY(load_onnx(path, HONE_TRY(onnx_sizes(sizes)))), {}};
}

Result<Source> read_model(const std::string& path, const Sizes& sizes) {
  if (path != "-") {
    if (is_onnx_file(path)) return read_onnx(path, sizes);
    return Source{HONE_TRY(load_model(path)), sizes};
  }
  const std::string content = HONE_TRY(read_stdin());
  if (!begins_like_onnx(content)) {
    Model model = HONE_TRY(parse_model(content, {.file = "<stdin>"}));
    return Source{std::move(model), sizes};
  }
  const OnnxImport import = HONE_TRY(onnx_sizes(sizes));
  return Source{
      HONE_TRY(parse_onnx(std::as_bytes(std::span(content)), "<stdin>", ".", import)), {}};
}

// Whether the constants would fill pages.
bool is_large(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::constant) bytes += graph.constant(n).byte_size();
  return bytes > (1 << 16);
}

bool is_large(const Model& model) {
  const std::vector<const Graph*> graphs = graphs_of(model);
  return std::any_of(graphs.begin(), graphs.end(),
                     [](const Graph* graph) { return is_large(*graph); });
}

// Parseable if the constants are small, and readable if not. What is typed later has no text yet.
Result<std::string> text_alone(const Model& model) {
  const bool large = is_large(model);
  if (const Graph* graph = single_graph(model)) return print(*graph, {.elide = large});
  return print(model, {.elide = large});
}

}  // namespace

Result<Source> load_model_source(const std::string& model, const Sizes& sizes, Console& console) {
  std::string_view spec = model;
  Source source;
  if (consume_prefix(spec, "zoo:"))
    source = {model_of(HONE_TRY(build_zoo_source(spec))), sizes};
  else
    source = HONE_TRY(read_model(model, sizes));
  Status good = verify(source.model);
  if (!good.ok()) return std::move(good).error().within(model);
  size_t nodes = 0;
  for (const Graph* graph : graphs_of(source.model)) nodes += graph->node_count();
  console.set_exhibit(
      [shown = source.model] {
        const Result<std::string> text = text_alone(shown);
        return text.ok() ? *text : fmt::format("# {}\n", text.error().what());
      },
      nodes <= kSmallExhibit);
  return source;
}

Result<Graph> load_source(const std::string& source, Console& console) {
  const Model model = HONE_TRY(load_model_source(source, {}, console)).model;
  if (const Graph* graph = single_graph(model)) return *graph;
  return no_single_graph(model, "this command");
}

Error no_single_graph(const Model& model, std::string_view who) {
  return unsupported("'{}' is a tree of segments; {} takes a single graph", excerpt(model.name),
                     who)
      .with_hint("'hone run', 'bench', 'check', 'compile', 'demo' and 'reduce' take such models");
}

Graph face_of(const Model& model) {
  if (const Graph* graph = single_graph(model)) return *graph;
  Graph face(model.name);
  for (const ModelValue& input : model.inputs) face.add_parameter(input.type, input.name);
  return face;
}

Result<Graph> build_from_zoo(std::string_view name, const ZooOptions& options) {
  static constexpr std::string_view kList = "'hone zoo list' shows the models";
  if (name.empty()) return usage_error("the name of a zoo model is missing").with_hint(kList);
  const std::span<const ZooEntry> entries = zoo_entries();
  const bool known = std::any_of(entries.begin(), entries.end(),
                                 [&](const ZooEntry& entry) { return entry.name == name; });
  if (known) return build_zoo_model(name, options);
  std::vector<std::string_view> names;
  for (const ZooEntry& entry : entries) names.push_back(entry.name);
  const std::string hint = did_you_mean(name, names);
  return usage_error("there is no model '{}' in the zoo", excerpt(name))
      .with_hint(hint.empty() ? kList : std::string_view(hint));
}

ZooOptions zoo_options_from(
    const std::function<std::optional<std::string>(std::string_view)>& get) {
  const auto integer = [&](std::string_view name) -> std::optional<int64_t> {
    const std::optional<std::string> text = get(name);
    return text ? std::optional(*parse_int(*text)) : std::nullopt;
  };
  ZooOptions options;
  options.size = get("size") == "tiny" ? ZooSize::tiny : ZooSize::full;
  options.seed = static_cast<uint64_t>(integer("seed").value_or(0));
  options.batch = integer("batch");
  options.length = integer("length");
  options.image = integer("image");
  options.depth = integer("depth");
  options.symbolic_batch = get("symbolic-batch").has_value();
  options.symbolic_length = get("symbolic-length").has_value();
  options.unroll = get("unroll").has_value();
  return options;
}

bool is_onnx_path(const std::string& path) { return fs::path(path).extension() == ".onnx"; }

Result<OnnxExport> onnx_options(const Arguments& arguments, const std::string& path) {
  for (std::string_view option : {"opset", "primitives", "external-data"})
    if (arguments.given(option) && !is_onnx_path(path))
      return usage_error("--{} is for ONNX files, {} is none", option, excerpt(path));
  OnnxExport onnx;
  onnx.primitives = arguments.given("primitives");
  onnx.external_data = arguments.given("external-data");
  if (arguments.given("opset")) onnx.opset = static_cast<int>(arguments.integer("opset"));
  return onnx;
}

Status save_source(const Model& model, const std::string& path, Console& console,
                   const OnnxExport& onnx) {
  if (path == "-") {
    console.write(HONE_TRY(text_alone(model)));
    if (is_large(model)) console.note("large constants are left out; a file keeps them");
    return {};
  }
  std::vector<std::string> written;
  const Result<std::vector<fs::path>> files =
      is_onnx_path(path) ? save_onnx(path, model, onnx) : save_model(path, model);
  if (!files.ok()) return files.error();
  for (const fs::path& file : *files) written.push_back(file.string());
  console.note("wrote {}", join(written, " and "));
  return {};
}

Status save_graph(const Graph& graph, const std::string& path, Console& console,
                  const OnnxExport& onnx) {
  return save_source(model_of(graph), path, console, onnx);
}

int64_t memory_limit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : INT64_MAX;
}

Result<std::string> read_stdin() {
  std::string text;
  char buffer[1 << 16];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, stdin)) {
    text.append(buffer, count);
    if (static_cast<int64_t>(text.size()) > kMaxTextBytes)
      return over_limit("the standard input has more than {}", format_bytes(kMaxTextBytes));
  }
  return text;
}

Status check_writable(const std::string& path) {
  const fs::path target(path);
  std::error_code ignored;
  if (fs::is_directory(target, ignored)) return usage_error("{} is a folder", path);
  const fs::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (!fs::is_directory(folder, ignored))
    return usage_error("there is no folder {}", folder.string());
  return {};
}

}  // namespace hone::cli
