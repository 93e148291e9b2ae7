#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "ir/summary.h"
#include "oracle/shrink.h"

namespace hone::cli {
namespace {

// The work of a model that has to be small, if nothing is said: a minute of the reference.
constexpr double kOperations = 1e9;

Result<ShrinkOptions> shrink_options(const Arguments& arguments) {
  ShrinkOptions options;
  for (const std::string& text : arguments.list("divide")) {
    const size_t sign = text.rfind('=');
    const Result<int64_t> factor =
        parse_int(sign == std::string::npos ? "" : std::string_view(text).substr(sign + 1));
    constexpr int64_t kMost = int64_t{1} << 20;
    if (!factor.ok() || *factor < 1 || *factor > kMost)
      return usage_error("'{}' of --divide is not WHAT=FACTOR, with a number of at least 1", text)
          .with_hint("--divide x:0=4, --divide 4096=8 or --divide layers=2");
    options.divide.push_back({text.substr(0, sign), *factor});
  }
  options.keep = arguments.list("keep");
  options.least = arguments.integer("least");
  if (arguments.given("to"))
    options.operations = arguments.real("to");
  else if (options.divide.empty())
    options.operations = kOperations;
  return options;
}

std::string table_of(const Shrunk& shrunk) {
  TextTable table("rrrll", {"size", "now", "groups", "kind", "inputs"});
  for (const SizeChange& change : shrunk.changes)
    table.add_row({std::to_string(change.before), std::to_string(change.behind),
                   std::to_string(change.classes), change.kind, change.where});
  const std::string rows = shrunk.changes.empty() ? "no size changes\n" : table.to_string();
  return rows + fmt::format("\noperations  {:.3g}, now {:.3g}\n", shrunk.operations_before,
                            shrunk.operations_behind);
}

}  // namespace

Status cmd_shrink(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output");
  if (!path.empty()) HONE_TRY(check_model_path(path));
  const ShrinkOptions options = HONE_TRY(shrink_options(arguments));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const Graph* graph = single_graph(source.model);
  if (graph == nullptr) return no_single_graph(source.model, "'hone shrink'");
  const Bindings sizes = HONE_TRY(given_sizes(source, console));
  const Graph bound = HONE_TRY(specialize(*graph, smallest_bindings(*graph, sizes)));
  const Shrunk shrunk = HONE_TRY(shrink(bound, options));
  const std::string table = table_of(shrunk);
  if (path == "-")
    console.say(trim(table));
  else
    console.write(table);
  if (options.operations > 0 && shrunk.operations_behind > options.operations)
    console.note(
        "no other size can be divided: constants, ops and --least fix those that are left");
  if (path.empty()) return {};
  const Status good = verify(shrunk.graph);
  HONE_CHECK(good.ok(), "a smaller graph is not valid: {}", good.error().to_string());
  return write_model(model_of(shrunk.graph), path, console, onnx);
}

}  // namespace hone::cli
