#include "quantize/difference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hone::quantize {
namespace {

std::vector<double> reals_of(const Tensor& tensor) {
  std::vector<double> all(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(all));
  return all;
}

Result<Difference> of_reals(const Tensor& actual, const Tensor& expected, size_t output) {
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
  if (expected.type().rank() != 2 || expected.type().dim(1).value() < 2) return result;
  const auto columns = static_cast<std::ptrdiff_t>(expected.type().dim(1).value());
  double equal = 0, rows = 0;
  for (std::ptrdiff_t at = 0; at < static_cast<std::ptrdiff_t>(e.size()); at += columns, ++rows) {
    const auto best = [&](const std::vector<double>& all) {
      return std::max_element(all.begin() + at, all.begin() + at + columns) - all.begin();
    };
    equal += best(a) == best(e) ? 1 : 0;
  }
  if (rows > 0) result.equal_best = equal / rows;
  return result;
}

Difference of_integers(const Tensor& actual, const Tensor& expected) {
  double differ = 0;
  for (int64_t i = 0; i < expected.elements(); ++i)
    differ += actual.integer_at(i) != expected.integer_at(i) ? 1 : 0;
  return {.error = differ / static_cast<double>(std::max<int64_t>(expected.elements(), 1))};
}

}  // namespace

void Difference::add(const Difference& other) {
  error = std::max(error, other.error);
  largest = std::max(largest, other.largest);
  if (other.equal_best) equal_best = std::min(equal_best.value_or(1), *other.equal_best);
}

Result<Difference> difference(std::span<const Tensor> actual, std::span<const Tensor> expected) {
  HONE_CHECK(actual.size() >= expected.size(), "{} outputs, want {}", actual.size(),
             expected.size());
  Difference all;
  for (size_t i = 0; i < expected.size(); ++i)
    all.add(is_real(expected[i].dtype()) ? HONE_TRY(of_reals(actual[i], expected[i], i))
                                         : of_integers(actual[i], expected[i]));
  return all;
}

}  // namespace hone::quantize
