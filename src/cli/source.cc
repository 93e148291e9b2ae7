#include "cli/source.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/echo.h"
#include "io/graph_file.h"
#include "ir/model.h"
#include "ir/model_text.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include <unistd.h>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;

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

Result<Model> read_model(const std::string& path) {
  if (path == "-") {
    const std::string text = HONE_TRY(read_stdin());
    return parse_model(text, {.file = "<stdin>"});
  }
  return load_model(path);
}

// Whether the constants would fill pages.
bool is_large(const Graph& graph) {
  int64_t bytes = 0;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::constant) bytes += graph.constant(n).byte_size();
  return bytes > (1 << 16);
}

// Parseable if the constants are small, and readable if not.
std::string text_alone(const Graph& graph) { return print(graph, {.elide = is_large(graph)}); }

std::string text_alone(const Model& model) {
  if (const Graph* graph = single_graph(model)) return text_alone(*graph);
  const std::vector<const Graph*> graphs = graphs_of(model);
  const bool large = std::any_of(graphs.begin(), graphs.end(),
                                 [](const Graph* graph) { return is_large(*graph); });
  const Result<std::string> text = print(model, {.elide = large});
  return text.ok() ? *text : fmt::format("# {}\n", text.error().what);
}

}  // namespace

Result<Model> load_model_source(const std::string& source, Console& console) {
  std::string_view spec = source;
  Model model;
  if (consume_prefix(spec, "zoo:"))
    model = model_of(HONE_TRY(build_zoo_source(spec)));
  else
    model = HONE_TRY(read_model(source));
  Status good = verify(model);
  if (!good.ok()) return std::move(good).error().within(source);
  console.set_exhibit([model] { return text_alone(model); });
  return model;
}

Result<Graph> load_source(const std::string& source, Console& console) {
  const Model model = HONE_TRY(load_model_source(source, console));
  if (const Graph* graph = single_graph(model)) return *graph;
  return unsupported("model '{}' is a tree of {} segments; this command takes a single graph",
                     excerpt(model.name), model.segments.size());
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

Status save_graph(const Graph& graph, const std::string& path, Console& console) {
  if (path == "-") {
    console.write(text_alone(graph));
    if (is_large(graph)) console.note("large constants are left out; a file keeps them");
    return {};
  }
  std::vector<std::string> written;
  for (const fs::path& file : HONE_TRY(save_model(path, model_of(graph)))) {
    written.push_back(file.string());
  }
  console.note("wrote {}", join(written, " and "));
  return {};
}

int64_t memory_limit() {
  const int64_t pages = sysconf(_SC_PHYS_PAGES);
  const int64_t page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? pages * page : INT64_MAX;
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
