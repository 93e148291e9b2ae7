#include "cli/source.h"

#include "base/file.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "front/front_end.h"

#include <cstdio>
#include <filesystem>

namespace hone::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxTextBytes = int64_t{1} << 30;
constexpr size_t kSmallExhibit = 10000;  // nodes; its text is made in every run

void exhibit(const Model& model, Console& console) {
  size_t nodes = 0;
  for (const Graph* graph : graphs_of(model)) nodes += graph->node_count();
  console.set_exhibit(
      [shown = model] {
        const Result<std::string> text = text_alone(shown);
        return text.ok() ? *text : fmt::format("# {}\n", text.error().what());
      },
      nodes <= kSmallExhibit);
}

}  // namespace

Result<Source> given_source(const std::string& model, const Arguments& arguments, Console& console,
                            const SourceUse& use) {
  Given given = HONE_TRY(given_values(arguments, console));
  given.sizes.dims.insert(use.dims.begin(), use.dims.end());
  const bool has_plan = arguments.given("plan");
  const SourceOptions options = {.binds_inputs = !has_plan,
                                 .runs_inputs = use.runs_inputs && !has_plan,
                                 .notice = console.face().notice,
                                 .checks = use.checks};
  const auto load = [&]() -> Result<Source> {
    if (model != "-") return load_source(model, std::move(given), options);
    return parse_source(HONE_TRY(read_stdin()), "<stdin>", std::move(given), options);
  };
  Source source = HONE_TRY(load());
  exhibit(source.model, console);
  return source;
}

Result<Graph> given_graph(const std::string& model, const Arguments& arguments, Console& console) {
  const Source source = HONE_TRY(given_source(model, arguments, console));
  if (const Graph* graph = single_graph(source.model)) return *graph;
  return no_single_graph(source.model, "this command");
}

Error no_single_graph(const Model& model, std::string_view who) {
  return unsupported("'{}' is a tree of segments; {} takes a single graph", excerpt(model.name),
                     who)
      .with_hint(
          "'hone run', 'bench', 'check', 'compile', 'demo', 'reduce', 'space' and 'tune' take such "
          "models");
}

Result<Bindings> given_sizes(const Source& source, Console& console) {
  return size_bindings(signature_of(source.model), all_sizes(source.open), console.face());
}

Result<ExportOptions> onnx_options(const Arguments& arguments, const std::string& path) {
  for (std::string_view option : {"opset", "primitives", "external-data"})
    if (arguments.given(option) && !is_onnx_path(path))
      return usage_error("--{} is for ONNX files; {} is not one", option, excerpt(path));
  ExportOptions onnx;
  onnx.primitives = arguments.given("primitives");
  onnx.external_data = arguments.given("external-data");
  if (arguments.given("opset")) onnx.opset = static_cast<int>(arguments.integer("opset"));
  return onnx;
}

Status write_model(const Model& model, const std::string& path, Console& console,
                   const ExportOptions& onnx) {
  if (path == "-") {
    console.write(HONE_TRY(text_alone(model)));
    if (has_large_constants(model)) console.note("large constants are left out; a file keeps them");
    return {};
  }
  // A device such as /dev/null has no place beside it for weights.
  std::error_code absent;
  if (fs::exists(path, absent) && !fs::is_regular_file(path, absent)) {
    HONE_TRY(write_file_atomic(path, HONE_TRY(text_alone(model))));
    console.note("wrote {}{}", path,
                 has_large_constants(model) ? ", large constants left out" : "");
    return {};
  }
  std::vector<std::string> written;
  const std::vector<fs::path> files = HONE_TRY(save_source(model, path, onnx));
  for (const fs::path& file : files) written.push_back(file.string());
  console.note("wrote {}", join(written, " and "));
  return {};
}

Status write_text(const std::string& path, const std::string& text, Console& console) {
  if (path == "-") {
    console.write(text);
    return {};
  }
  HONE_TRY(write_file_atomic(path, text));
  console.note("wrote {}", path);
  return {};
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

Status check_model_path(const std::string& path) {
  if (path == "-") return {};
  if (front_end_named(path) == nullptr)
    return usage_error("{}: there is no format '{}' for models", excerpt(path),
                       excerpt(std::filesystem::path(path).extension().string()))
        .with_hint(fmt::format("a model is {}", front_end_list()));
  return {};
}

}  // namespace hone::cli
