#include "report/accuracy_text.h"

#include "base/text.h"
#include "base/text_table.h"
#include "oracle/compare.h"

namespace hone {
namespace {

std::string place_of(Type type, int64_t element, size_t run) {
  std::string place = index_text(type, element);
  return run == 0 ? place : fmt::format("{} of run {}", place, run + 1);
}

// The result of another mode of the reference.
std::vector<std::string> row_of(std::string_view mode, const Tensor& tensor, const Tensor& wide) {
  std::vector<std::string> cells(5);
  cells[0] = mode;
  // Not an error of types: a size that depends on data.
  const Result<Comparison> distance = compare(tensor, wide, {});
  cells[1] = distance.ok() ? fmt::format("{:.3g}", distance->max_difference)
                           : fmt::format("the type is {}", tensor.type().to_string());
  if (distance.ok() && distance->worst) cells[3] = index_text(wide.type(), distance->worst->index);
  return cells;
}

std::vector<std::string> row_of(const Accuracy& accuracy, const AccuracyRun& run) {
  std::string verdict = accuracy.passed() ? "ok" : "WRONG";
  if (!accuracy.remark.empty()) verdict += fmt::format(": {}", accuracy.remark);
  return {"native", fmt::format("{:.3g}", accuracy.error), fmt::format("{:.3g}", accuracy.allowed),
          accuracy.worst ? place_of(run.actual.type(), *accuracy.worst, accuracy.run) : "",
          std::move(verdict)};
}

}  // namespace

std::string accuracy_table(std::span<const std::string> names, const ContestResult& result,
                           bool with_modes) {
  TextTable table("lllrrll",
                  {"output", "type", "computed", "largest difference", "allowed", "at", ""});
  for (size_t i = 0; i < names.size(); ++i) {
    const AccuracyRun& run = result.first[i];
    const auto add = [&](const std::vector<std::string>& cells) {
      std::vector<std::string> row = {excerpt(names[i]), run.actual.type().to_string()};
      row.insert(row.end(), cells.begin(), cells.end());
      table.add_row(std::move(row));
    };
    if (with_modes && run.rounded) add(row_of("rounded", *run.rounded, run.wide));
    if (with_modes) add(row_of("fp32", run.fp32, run.wide));
    add(row_of(result.outputs[i], run));
  }
  return table.to_string();
}

}  // namespace hone
