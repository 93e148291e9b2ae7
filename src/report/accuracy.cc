#include "report/accuracy.h"

#include <cmath>
#include <limits>

#include "ir/real_format.h"

namespace hone {

namespace {

constexpr double kFactor = 4;

// Of a number of this size in the type.
double unit_in_the_last_place(DType dtype, double size) {
  const int mantissa_bits = dtype == DType::f64   ? 52
                            : dtype == DType::f32 ? 23
                                                  : real_format(dtype).mantissa_bits;
  const int least = dtype == DType::f64   ? -1022
                    : dtype == DType::f32 ? -126
                                          : 1 - real_format(dtype).bias;
  const int exponent = size > 0 && std::isfinite(size) ? std::ilogb(size) : least;
  return std::ldexp(1.0, std::max(exponent, least) - mantissa_bits);
}

// Of two numbers of which at least one is not finite.
bool agree(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

Result<Accuracy> exactly(const Tensor& actual, const Tensor& wide) {
  Accuracy result;
  for (int64_t i = 0; i < actual.elements(); ++i) {
    const int64_t a = actual.integer_at(i), b = wide.integer_at(i);
    if (a == b) continue;
    ++result.wrong;
    const double difference = std::fabs(static_cast<double>(a) - static_cast<double>(b));
    if (result.worst && difference <= result.error) continue;
    result.error = difference;
    result.worst = i;
  }
  return result;
}

}  // namespace

Result<Accuracy> accuracy(const Tensor& actual, const Tensor& wide, const Tensor& fp32) {
  const DType dtype = actual.dtype();
  const Type expected = is_real(dtype) ? actual.type().with_dtype(DType::f64) : actual.type();
  for (const Tensor* reference : {&wide, &fp32})
    if (reference->type() != expected)
      return bad_input("the output is {}, the reference's {}", actual.type().to_string(),
                       reference->type().to_string());
  if (!is_real(dtype)) return exactly(actual, wide);

  const auto count = static_cast<size_t>(actual.elements());
  std::vector<double> numbers(count), truth(count), plain(count);
  actual.read_reals(0, std::span<double>(numbers));
  wide.read_reals(0, std::span<double>(truth));
  fp32.read_reals(0, std::span<double>(plain));
  double scale = 0, plain_error = 0;
  const double highest = highest_finite(dtype);
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(truth[i])) scale = std::max(scale, std::fabs(truth[i]));
    if (std::isfinite(truth[i]) && std::isfinite(plain[i]))
      plain_error = std::max(plain_error, std::fabs(plain[i] - truth[i]));
  }
  Accuracy result;
  result.allowed = std::max(kFactor * plain_error,
                            kFactor * unit_in_the_last_place(dtype, std::min(scale, highest)));
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(numbers[i]) || !std::isfinite(truth[i])) {
      // What is too large for the type is infinite in it.
      const bool overflows = std::isinf(numbers[i]) && std::fabs(truth[i]) > highest &&
                             std::signbit(numbers[i]) == std::signbit(truth[i]);
      const bool is_right = agree(numbers[i], truth[i]) || agree(numbers[i], plain[i]) || overflows;
      if (!is_right) ++result.wrong;
      continue;
    }
    const double difference = std::fabs(numbers[i] - truth[i]);
    if (difference > result.allowed) ++result.wrong;
    if (result.worst && difference <= result.error) continue;
    result.error = difference;
    result.worst = static_cast<int64_t>(i);
  }
  return result;
}

std::string Accuracy::to_string() const {
  if (passed()) return fmt::format("off by {:.3g} at most, {:.3g} allowed", error, allowed);
  return fmt::format("{} elements wrong; off by {:.3g} at element {}, {:.3g} allowed", wrong, error,
                     worst.value_or(0), allowed);
}

}  // namespace hone
