#include "quantize/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hone::quantize {
namespace {

bool has_answers(const Tensor& output) {
  return output.type().rank() == 2 && output.type().dim(1).value() >= 2;
}

Answers answers_of(std::span<const double> actual, std::span<const double> expected, size_t columns,
                   const Tensor* labels) {
  Answers answers = {.are_labelled = labels != nullptr};
  const auto best = [&](std::span<const double> all) {
    const auto row = all.subspan(static_cast<size_t>(answers.rows) * columns, columns);
    return std::ranges::max_element(row) - row.begin();
  };
  for (; static_cast<size_t>(answers.rows) * columns < expected.size(); ++answers.rows) {
    const auto now = best(actual), before = best(expected);
    answers.equal += now == before ? 1 : 0;
    if (labels == nullptr) continue;
    const int64_t label = labels->integer_at(answers.rows);
    answers.right += now == label ? 1 : 0;
    answers.right_of_f32 += before == label ? 1 : 0;
  }
  return answers;
}

Result<Difference> of_reals(const Tensor& actual, const Tensor& expected, size_t output,
                            const Tensor* labels) {
  const std::vector<double> a = reals_of(actual), e = reals_of(expected);
  Difference result;
  double squares = 0, of_difference = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    if (!std::isfinite(e[i]))
      return bad_input("element {} of output {} of the f32 model is {}: an error has no measure", i,
                       output, e[i])
          .with_hint("choose arrays for which all outputs are finite numbers");
    const double apart =
        std::isfinite(a[i]) ? std::abs(a[i] - e[i]) : std::numeric_limits<double>::infinity();
    result.largest = std::max(result.largest, apart);
    squares += e[i] * e[i];
    of_difference += apart * apart;
  }
  if (of_difference > 0) result.error = std::sqrt(of_difference / squares);
  if (!has_answers(expected)) return result;
  result.answers = answers_of(a, e, static_cast<size_t>(expected.type().dim(1).value()), labels);
  return result;
}

double of_integers(const Tensor& actual, const Tensor& expected) {
  double differ = 0;
  for (int64_t i = 0; i < expected.elements(); ++i)
    differ += actual.integer_at(i) != expected.integer_at(i) ? 1 : 0;
  return differ / static_cast<double>(std::max<int64_t>(expected.elements(), 1));
}

}  // namespace

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> all(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(all));
  return all;
}

double Answers::drop() const {
  if (rows == 0) return 0;
  const int64_t lost = are_labelled ? right_of_f32 - right : rows - equal;
  return static_cast<double>(lost) / static_cast<double>(rows);
}

std::optional<double> Difference::equal_best() const {
  if (answers.rows == 0) return std::nullopt;
  return static_cast<double>(answers.equal) / static_cast<double>(answers.rows);
}

void Difference::add_run(const Difference& other) {
  error = std::max(error, other.error);
  largest = std::max(largest, other.largest);
  answers.rows += other.answers.rows;
  answers.equal += other.answers.equal;
  answers.are_labelled = answers.are_labelled || other.answers.are_labelled;
  answers.right += other.answers.right;
  answers.right_of_f32 += other.answers.right_of_f32;
}

Result<Difference> difference(std::span<const Tensor> actual, std::span<const Tensor> expected,
                              const Tensor* labels) {
  HONE_CHECK(actual.size() >= expected.size(), "{} outputs, want {}", actual.size(),
             expected.size());
  Difference all;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!is_real(expected[i].dtype())) {
      all.error = std::max(all.error, of_integers(actual[i], expected[i]));
      continue;
    }
    const bool is_labelled = labels != nullptr && has_answers(expected[i]);
    const Difference one =
        HONE_TRY(of_reals(actual[i], expected[i], i, is_labelled ? labels : nullptr));
    if (is_labelled) labels = nullptr;
    all.error = std::max(all.error, one.error);
    all.largest = std::max(all.largest, one.largest);
    // Labels are of one output: that one counts.
    if (is_labelled || (!all.answers.are_labelled && one.answers.drop() >= all.answers.drop() &&
                        one.answers.rows > 0))
      all.answers = one.answers;
  }
  return all;
}

}  // namespace hone::quantize
