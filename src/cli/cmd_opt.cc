#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "ir/text.h"
#include "rewrite/passes.h"

namespace hone::cli {
namespace {

Status list_passes(Console& console) {
  TextTable table("ll", {"pass", "promise"});
  for (const Pass& pass : all_passes())
    table.add_row({std::string(pass.name), std::string(pass.promise)});
  console.write(table.to_string());
  return {};
}

void print_times(std::span<const PassReport> reports, Console& console) {
  TextTable table("lrrr", {"pass", "time", "nodes before", "after"});
  double total = 0;
  for (const PassReport& report : reports) {
    table.add_row({std::string(report.name), format_seconds(report.seconds),
                   std::to_string(report.nodes_before), std::to_string(report.nodes_after)});
    total += report.seconds;
  }
  table.add_row({"total", format_seconds(total), "", ""});
  console.say(trim(table.to_string()));
}

}  // namespace

Status cmd_opt(const Arguments& arguments, Console& console) {
  if (arguments.given("list")) return list_passes(console);
  if (!arguments.given("MODEL"))
    return usage_error("'hone opt' needs a MODEL").with_hint("'hone opt --list' lists the passes");
  if (!arguments.given("pass"))
    return usage_error("'hone opt' needs --pass").with_hint("'hone opt --list' lists the passes");
  const std::vector<Pass> passes = HONE_TRY(parse_passes(join(arguments.list("pass"), ",")));
  const std::string path = arguments.text("output");
  if (path != "-") HONE_TRY(check_writable(path));
  const OnnxExport onnx = HONE_TRY(onnx_options(arguments, path));
  const Graph graph = HONE_TRY(load_source(arguments.text("MODEL"), console));

  std::vector<PassReport> reports;
  PassOptions options;
  options.verify_each = arguments.given("verify-each");
  options.observer = [&](const PassReport& report, const Graph& after) {
    reports.push_back(report);
    if (arguments.given("print-changed") && report.changed)
      console.note("// after {}\n{}", report.name, trim(print(after, {.elide = true})));
  };
  const Graph result = HONE_TRY(run_passes(graph, passes, options));
  const Status good = verify(result);
  HONE_CHECK(good.ok(), "the passes {} broke the graph: {}", join(arguments.list("pass"), ","),
             good.error().to_string());
  if (arguments.given("time-passes")) print_times(reports, console);
  return save_graph(result, path, console, onnx);
}

}  // namespace hone::cli
