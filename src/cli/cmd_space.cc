#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "report/choices_text.h"
#include "session/evaluation.h"

#include <span>

namespace hone::cli {
namespace {

// Around the plan that is given, which the planner completes.
Result<PlanChoices> choices_of_graph(const Graph& graph, const NativeOptions& options,
                                     const PlacedPlan* plan, Console& console) {
  const Face face = console.face();
  Compilation compilation(graph, options.target, compile_options(options, plan, face));
  const Plan& complete = *HONE_TRY(compilation.plan());
  const std::unique_ptr<PlanEditor> editor =
      HONE_TRY(PlanEditor::open(*HONE_TRY(compilation.graph()), complete, options.target));
  return choices_of(*editor);
}

}  // namespace

Status cmd_space(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const GivenGraphs given = HONE_TRY(given_graphs(source, options, console));
  std::vector<std::pair<std::string, PlanChoices>> found;
  for (size_t i = 0; i < given.graphs.size(); ++i)
    found.emplace_back(given.graphs[i]->name(),
                       HONE_TRY(
                           choices_of_graph(*given.graphs[i], options, given.plans[i], console)));
  if (arguments.given("json")) {
    console.write(choices_json(found));
    return {};
  }
  for (size_t i = 0; i < found.size(); ++i) {
    console.write(given.heading(i));
    console.write(choices_text(found[i].second));
  }
  return {};
}

}  // namespace hone::cli
