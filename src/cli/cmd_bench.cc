#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/native.h"
#include "cli/source.h"
#include "cli/timing.h"

namespace hone::cli {

Status cmd_bench(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options.target));
  const Source source =
      HONE_TRY(load_model_source(arguments.text("MODEL"), sizes_of(arguments), console));
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
  return {};
}

}  // namespace hone::cli
