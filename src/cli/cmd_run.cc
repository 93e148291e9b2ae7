#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "session/evaluation.h"

#include <chrono>

namespace hone::cli {

Status cmd_run(const Arguments& arguments, Console& console) {
  // Numerics are the reference's.
  const bool is_native = arguments.text("backend") == "native" && !arguments.given("numerics");
  if (arguments.given("backend") && is_native != (arguments.text("backend") == "native"))
    return usage_error("--numerics is for --backend reference");
  NativeOptions native;
  if (is_native)
    native = HONE_TRY(native_options(arguments, console));
  else
    HONE_TRY(refuse_native_options(arguments));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const std::vector<std::string> names = output_names(source.model);

  // All that can be wrong with the command line is found before the work.
  if (arguments.given("output"))
    HONE_TRY(check_output_path(names.size(), arguments.text("output")));
  HONE_TRY(check_tolerance_options(arguments));
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(names, arguments.text("expect")));
  }
  const Engine engine = is_native ? Engine::native : Engine::reference;
  const RunInputs inputs =
      HONE_TRY(given_inputs(signature_of(source.model), source.open, arguments, engine, console));

  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> outputs =
      is_native
          ? HONE_TRY(run_native(source.model, inputs, native, console.face()))
          : HONE_TRY(evaluate_on(source.model, inputs,
                                 {.numerics = numerics_of(arguments.text("numerics"))},
                                 console.face()));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  console.write(outputs_table(names, outputs));
  const std::string how =
      is_native ? "native, compiled and run in" : arguments.text("numerics") + " numerics,";
  console.note("{} {}", how, format_seconds(elapsed.count()));
  if (arguments.given("output"))
    HONE_TRY(write_outputs(names, outputs, arguments.text("output"), console));
  if (expected.empty()) return {};
  return compare_outputs(names, outputs, expected, tolerance_of(arguments), console);
}

}  // namespace hone::cli
