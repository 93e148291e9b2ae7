#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/inputs.h"
#include "cli/native.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "oracle/accuracy.h"
#include "oracle/compare.h"
#include "session/evaluation.h"

#include <algorithm>

namespace hone::cli {
namespace {

// What one way to compute gives.
struct Evaluated {
  std::string way;
  std::vector<Tensor> outputs;
};

// The reference in every mode, its real outputs as f64; wide first.
Result<std::vector<Evaluated>> evaluate_all(const Model& model, const RunInputs& inputs,
                                            Console& console) {
  std::vector<Evaluated> all;
  for (std::string_view numerics : split(kNumericsNames, '|')) {
    const EvalOptions options = {.numerics = numerics_of(numerics), .real_outputs_as_f64 = true};
    all.push_back({std::string(numerics),
                   HONE_TRY(evaluate_on(model, inputs, options, console.face()))});
  }
  return all;
}

const Evaluated& find(std::span<const Evaluated> all, std::string_view way) {
  return *std::ranges::find(all, way, &Evaluated::way);
}

// A row per output and way: how far it is from wide. Counts the outputs of native code that are
// farther away than fp32, or their types, account for.
Result<std::string> distance_table(std::span<const std::string> names,
                                   std::span<const Evaluated> all, const Evaluated& native,
                                   int& inaccurate) {
  TextTable table("lllrrl", {"output", "type", "computed", "largest difference", "allowed", "at"});
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& wide = find(all, "wide").outputs[i];
    const std::string type = native.outputs[i].type().to_string();
    for (std::string_view way : {"rounded", "fp32"}) {
      const Tensor& tensor = find(all, way).outputs[i];
      std::vector<std::string> row = {excerpt(names[i]), type, std::string(way)};
      if (tensor.type() == wide.type()) {
        const Comparison distance = HONE_TRY(compare(tensor, wide, {}));
        row.push_back(fmt::format("{:.3g}", distance.max_difference));
        row.push_back("");
        row.push_back(distance.worst ? index_text(wide.type(), distance.worst->index) : "");
      } else {  // a size that depends on data
        row.push_back(fmt::format("the type is {}", tensor.type().to_string()));
        row.insert(row.end(), 2, "");
      }
      table.add_row(std::move(row));
    }
    const AccuracyRun run = {native.outputs[i], wide, find(all, "fp32").outputs[i],
                             find(all, "rounded").outputs[i]};
    const Accuracy result = HONE_TRY(accuracy({&run, 1}));
    inaccurate += result.passed() ? 0 : 1;
    table.add_row({excerpt(names[i]), type, "native", fmt::format("{:.3g}", result.error),
                   fmt::format("{:.3g}", result.allowed),
                   result.worst ? index_text(wide.type(), *result.worst) : ""});
  }
  return table.to_string();
}

// As its type has it.
Tensor typed(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype || !is_real(dtype)) return tensor;
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return Tensor::from_reals(tensor.type().with_dtype(dtype), numbers);
}

Status compare_all(std::span<const std::string> names, std::span<const Evaluated> all,
                   std::span<const DType> dtypes, std::span<const Expected> expected,
                   const Arguments& arguments, Console& console) {
  std::vector<std::string_view> bad;
  for (const Evaluated& one : all) {
    console.print("\n{}\n", one.way);
    std::vector<Tensor> outputs;
    for (size_t i = 0; i < names.size(); ++i) outputs.push_back(typed(one.outputs[i], dtypes[i]));
    const Status agrees =
        compare_outputs(names, outputs, expected, tolerance_of(arguments), console);
    if (!agrees.ok()) bad.push_back(one.way);
  }
  if (bad.empty()) return {};
  return check_failed("the outputs of {} are not as expected", join(bad, ", "));
}

}  // namespace

Status cmd_check(const Arguments& arguments, Console& console) {
  const NativeOptions options = HONE_TRY(native_options(arguments, console));
  HONE_TRY(check_runs_here(options.target, Console::labels()));
  const Source source = HONE_TRY(given_source(arguments.text("MODEL"), arguments, console));
  const std::vector<std::string> names = output_names(source.model);
  HONE_TRY(check_tolerance_options(arguments));
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(names, arguments.text("expect")));
  }
  const RunInputs inputs = HONE_TRY(
      given_inputs(signature_of(source.model), source.open, arguments, Engine::reference, console));

  std::vector<Evaluated> all = HONE_TRY(evaluate_all(source.model, inputs, console));
  const Evaluated native = {"native",
                            HONE_TRY(run_native(source.model, inputs, options, console.face()))};
  int inaccurate = 0;
  console.write(HONE_TRY(distance_table(names, all, native, inaccurate)));
  if (!expected.empty()) {
    std::vector<DType> dtypes;
    for (const Tensor& output : native.outputs) dtypes.push_back(output.dtype());
    all.push_back(native);
    HONE_TRY(compare_all(names, all, dtypes, expected, arguments, console));
  }
  if (inaccurate == 0) return {};
  return check_failed("native code is less accurate than allowed in {} of {} outputs", inaccurate,
                      names.size());
}

}  // namespace hone::cli
