#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "cli/timing.h"
#include "report/profile.h"

namespace hone::cli {
namespace {

// Where the time of a run goes, from runs until the time is over.
Status print_profile(const Graph& graph, const RunInputs& inputs, const NativeOptions& options,
                     double seconds, Console& console) {
  constexpr size_t kRows = 20;
  Compilation compilation(HONE_TRY(specialize(graph, inputs.bindings)), options.target,
                          compile_options(options));
  const std::shared_ptr<const Executable> executable = HONE_TRY(compilation.executable());
  HONE_TRY(executable->run(inputs.tensors));
  Profile profile;
  const RunOptions run = {.cancel = &console.cancel(), .profile = &profile};
  const Timing timing = HONE_TRY(measure(
      seconds, console.cancel(),
      [&]() -> Status {
        HONE_TRY(executable->run(inputs.tensors, run));
        return {};
      }));
  const auto runs = static_cast<int64_t>(timing.seconds.size());
  const std::string table =
      HONE_TRY(profile_table(profile, runs, *HONE_TRY(compilation.graph()),
                             *HONE_TRY(compilation.plan()), options.target, kRows));
  console.write(table);
  return {};
}

}  // namespace

Status cmd_bench(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options.target));
  const Source source =
      HONE_TRY(load_model_source(arguments.text("MODEL"), sizes_of(arguments), console));
  const Graph* graph = single_graph(source.model);
  const bool is_profiled = arguments.given("profile");
  if (is_profiled && graph == nullptr) return no_single_graph(source.model, "--profile");
  const RunInputs inputs =
      HONE_TRY(resolve_inputs(face_of(source.model), source.open, arguments, console));

  NativeModel model = HONE_TRY(native_model(source.model, inputs, options, console));
  auto run = [&]() -> Status {
    HONE_TRY(model.run(inputs.tensors));
    return {};
  };
  const double first = HONE_TRY(measure_once(run));
  const Timing timing = HONE_TRY(measure(arguments.real("seconds"), console.cancel(), run));
  console.print("{}\n", timing.to_string());
  console.note("compiled and run once in {}", format_seconds(first));
  if (!is_profiled) return {};
  return print_profile(*graph, inputs, options, arguments.real("seconds"), console);
}

}  // namespace hone::cli
