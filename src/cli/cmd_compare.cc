#include "base/file.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/log.h"
#include "cli/named_plan.h"
#include "cli/native.h"
#include "cli/source.h"
#include "report/duel_text.h"

namespace hone::cli {

Status cmd_compare(const Arguments& arguments, Console& console) {
  const std::string json = arguments.text("json");
  HONE_TRY(check_named_log(arguments));
  const NativeOptions native =
      HONE_TRY(native_options(arguments, console, DefaultCache::user, LogPlans::left));
  HONE_TRY(check_runs_here(native.target, Console::labels()));
  const Source source =
      HONE_TRY(given_source(arguments.text("MODEL"), arguments, console, {.runs_inputs = false}));
  const Graph* const open = single_graph(source.model);
  if (open == nullptr) return no_single_graph(source.model, "hone compare");
  const RunInputs inputs =
      HONE_TRY(given_inputs(*open, source.open, arguments, Engine::native, console));
  HONE_TRY(check_all_chosen(inputs));
  const Graph graph = HONE_TRY(specialize(*open, inputs.bindings));

  const auto side = [&](const char* positional) {
    return named_plan(arguments.text(positional), positional, graph, source.model, inputs.bindings,
                      arguments, console);
  };
  const NamedPlan first = HONE_TRY(side("PLAN_A")), second = HONE_TRY(side("PLAN_B"));
  if (**first.code->plan() == **second.code->plan())
    console.note("both plans are the same: differences are noise");
  const PlanDuel found =
      HONE_TRY(duel(*HONE_TRY(first.code->image()), *HONE_TRY(second.code->image()), inputs.tensors,
                    {.seconds = arguments.real("seconds"), .cancel = &console.cancel()}));
  const std::string data = duel_json(found, first.name, second.name);
  if (json == "-")
    console.write(data);
  else if (!json.empty())
    HONE_TRY(write_file_atomic(json, data));
  if (found.outcome == Outcome::wrong)
    return check_failed("the outputs under {} are not those under {}: {}", excerpt(second.name),
                        excerpt(first.name), found.detail);
  if (found.outcome != Outcome::measured)
    return over_limit("the model cannot be run under {}: {}{}{}", excerpt(second.name),
                      name(found.outcome), found.detail.empty() ? "" : ": ", found.detail);
  if (json != "-") console.write(duel_text(found, first.name, second.name));
  return {};
}

}  // namespace hone::cli
