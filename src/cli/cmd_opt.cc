#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "ir/text.h"
#include "report/pass_times.h"
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

}  // namespace

Status cmd_opt(const Arguments& arguments, Console& console) {
  if (arguments.given("list")) return list_passes(console);
  if (!arguments.given("MODEL"))
    return usage_error("'hone opt' needs a MODEL").with_hint("'hone opt --list' lists the passes");
  if (!arguments.given("pass"))
    return usage_error("'hone opt' needs --pass").with_hint("'hone opt --list' lists the passes");
  const std::vector<Pass> passes = HONE_TRY(parse_passes(join(arguments.list("pass"), ",")));
  const std::string path = arguments.text("output");
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const Graph graph = HONE_TRY(given_graph(arguments.text("MODEL"), arguments, console));

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
  if (arguments.given("time-passes")) console.say(pass_times(reports));
  return write_model(model_of(result), path, console, onnx);
}

}  // namespace hone::cli
