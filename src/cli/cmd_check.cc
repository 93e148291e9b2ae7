#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evaluation.h"
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "report/compare.h"
#include "report/summary.h"

#include <algorithm>
#include <cmath>

namespace hone::cli {
namespace {

// What one numerics gives.
struct Evaluated {
  std::string_view numerics;
  std::vector<Tensor> outputs;
};

Result<std::vector<Evaluated>> evaluate_all(const Model& model, const RunInputs& inputs,
                                            Console& console) {
  std::vector<Evaluated> all;
  for (std::string_view numerics : split(kNumericsNames, '|'))
    all.push_back({numerics, HONE_TRY(evaluate_on(model, inputs, numerics_of(numerics), console))});
  return all;
}

double largest_of(const Tensor& tensor) {
  const TensorStatistics facts = statistics(tensor);
  return std::max(std::abs(facts.min), std::abs(facts.max));
}

// A row per output and numerics: how far it is from the first one.
Result<std::string> distance_table(std::span<const std::string> names,
                                   std::span<const Evaluated> all) {
  TextTable table("lllrrl",
                  {"output", "type", "numerics", "largest difference", "to the largest", "at"});
  for (size_t i = 0; i < names.size(); ++i) {
    const Tensor& wide = all[0].outputs[i];
    const double scale = largest_of(wide);
    for (const Evaluated& other : all.subspan(1)) {
      const Tensor& tensor = other.outputs[i];
      if (tensor.type() != wide.type()) {  // a size that depends on data
        table.add_row({excerpt(names[i]), wide.type().to_string(), std::string(other.numerics),
                       fmt::format("the type is {}", tensor.type().to_string()), "", ""});
        continue;
      }
      const Comparison distance = HONE_TRY(compare(tensor, wide, {}));
      table.add_row({excerpt(names[i]), wide.type().to_string(), std::string(other.numerics),
                     fmt::format("{:.3g}", distance.max_difference),
                     scale > 0 ? fmt::format("{:.3g}", distance.max_difference / scale) : "",
                     distance.worst ? index_text(wide.type(), distance.worst->index) : ""});
    }
  }
  return table.to_string();
}

Status compare_all(std::span<const std::string> names, std::span<const Evaluated> all,
                   std::span<const Expected> expected, const Arguments& arguments,
                   Console& console) {
  std::vector<std::string_view> bad;
  for (const Evaluated& one : all) {
    console.print("\n{} numerics\n", one.numerics);
    const Status agrees =
        compare_outputs(names, one.outputs, expected, tolerance_of(arguments), console);
    if (!agrees.ok()) bad.push_back(one.numerics);
  }
  if (bad.empty()) return {};
  return Error{ErrorCode::mismatch,
               fmt::format("the outputs of {} numerics are not as expected", join(bad, ", ")), "",
               ""};
}

}  // namespace

Status cmd_check(const Arguments& arguments, Console& console) {
  const Source source =
      HONE_TRY(load_model_source(arguments.text("MODEL"), sizes_of(arguments), console));
  const std::vector<std::string> names = names_of_outputs(source.model);
  HONE_TRY(check_tolerance_options(arguments));
  std::vector<Expected> expected;
  if (arguments.given("expect")) {
    expected = HONE_TRY(read_expected(names, arguments.text("expect")));
  }
  const RunInputs inputs =
      HONE_TRY(resolve_inputs(face_of(source.model), source.open, arguments, console));

  const std::vector<Evaluated> all = HONE_TRY(evaluate_all(source.model, inputs, console));
  console.write(HONE_TRY(distance_table(names, all)));
  if (expected.empty()) return {};
  return compare_all(names, all, expected, arguments, console);
}

}  // namespace hone::cli
