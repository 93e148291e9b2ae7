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
  const Bindings sizes =
      HONE_TRY(size_bindings(signature_of(source.model), all_sizes(source.open), console.face()));
  const Model model = HONE_TRY(with_sizes(source.model, sizes));
  const std::vector<const Graph*> graphs = graphs_of(model);
  const std::vector<const PlacedPlan*> plans =
      HONE_TRY(plans_of(graphs, source.model, sizes, options, Console::labels()));
  if (first_deferred(model) != nullptr)
    console.note("left out: segments that are made from the data of a run");

  std::vector<std::pair<std::string, PlanChoices>> found;
  for (size_t i = 0; i < graphs.size(); ++i)
    found.emplace_back(graphs[i]->name(),
                       HONE_TRY(choices_of_graph(*graphs[i], options, plans[i], console)));
  if (arguments.given("json")) {
    console.write(choices_json(found));
    return {};
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (found.size() > 1)
      console.print("{}# segment {} of {}: {}\n", i == 0 ? "" : "\n", i + 1, found.size(),
                    escape(found[i].first));
    console.write(choices_text(found[i].second));
  }
  return {};
}

}  // namespace hone::cli
