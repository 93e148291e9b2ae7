#include "oracle/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/real_format.h"

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

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return numbers;
}

class Judge {
 public:
  explicit Judge(std::span<const AccuracyRun> runs) : runs_(runs) {}

  Accuracy exactly() {
    for (run_ = 0; run_ < runs_.size(); ++run_) {
      for (int64_t i = 0; i < runs_[run_].actual.elements(); ++i) {
        const int64_t a = runs_[run_].actual.integer_at(i), b = runs_[run_].wide.integer_at(i);
        if (a == b) continue;
        ++result_.wrong;
        note(i, std::fabs(static_cast<double>(a) - static_cast<double>(b)));
      }
    }
    return result_;
  }

  Accuracy of_reals() {
    const DType dtype = runs_[0].actual.dtype();
    const double highest = highest_finite(dtype);
    double scale = 0, plain_error = 0;
    for (const AccuracyRun& run : runs_) {
      const std::vector<double> truth = reals(run.wide);
      for (double number : truth)
        if (std::isfinite(number)) scale = std::max(scale, std::fabs(number));
      for (const std::vector<double>& plain : plain_ways(run))
        for (size_t i = 0; i < truth.size(); ++i)
          if (std::isfinite(truth[i]) && std::isfinite(plain[i]))
            plain_error = std::max(plain_error, std::fabs(plain[i] - truth[i]));
    }
    result_.allowed = std::max(kFactor * plain_error,
                               kFactor * unit_in_the_last_place(dtype, std::min(scale, highest)));
    for (run_ = 0; run_ < runs_.size(); ++run_) compare(runs_[run_], highest);
    return result_;
  }

 private:
  // What a plain computation may come to.
  static std::vector<std::vector<double>> plain_ways(const AccuracyRun& run) {
    std::vector<std::vector<double>> ways = {reals(run.fp32)};
    if (run.rounded) ways.push_back(reals(*run.rounded));
    return ways;
  }

  void compare(const AccuracyRun& run, double highest) {
    const std::vector<double> numbers = reals(run.actual), truth = reals(run.wide);
    const std::vector<std::vector<double>> plain = plain_ways(run);
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isfinite(numbers[i]) || !std::isfinite(truth[i])) {
        // What is too large for the type is infinite in it.
        const bool overflows = std::isinf(numbers[i]) && std::fabs(truth[i]) > highest &&
                               std::signbit(numbers[i]) == std::signbit(truth[i]);
        const bool is_plain =
            std::ranges::any_of(plain, [&](const auto& way) { return agree(numbers[i], way[i]); });
        if (!agree(numbers[i], truth[i]) && !is_plain && !overflows) ++result_.wrong;
        continue;
      }
      const double difference = std::fabs(numbers[i] - truth[i]);
      if (difference > result_.allowed) ++result_.wrong;
      note(static_cast<int64_t>(i), difference);
    }
  }

  void note(int64_t element, double difference) {
    if (result_.worst && difference <= result_.error) return;
    result_.error = difference;
    result_.run = run_;
    result_.worst = element;
  }

  const std::span<const AccuracyRun> runs_;
  size_t run_ = 0;
  Accuracy result_;
};

}  // namespace

Result<Accuracy> accuracy(std::span<const AccuracyRun> runs) {
  for (const auto& [actual, wide, fp32, rounded] : runs) {
    const DType dtype = actual.dtype();
    const Type expected = is_real(dtype) ? actual.type().with_dtype(DType::f64) : actual.type();
    for (const Tensor* reference : {&wide, &fp32, rounded ? &*rounded : &fp32})
      if (reference->type() != expected || dtype != runs[0].actual.dtype())
        return bad_input("the output is {}, the reference's {}", actual.type().to_string(),
                         reference->type().to_string());
  }
  if (runs.empty()) return Accuracy();
  return is_real(runs[0].actual.dtype()) ? Judge(runs).of_reals() : Judge(runs).exactly();
}

std::string Accuracy::to_string() const {
  if (passed()) return fmt::format("off by {:.3g} at most, {:.3g} allowed", error, allowed);
  return fmt::format("{} elements wrong; off by {:.3g} at element {}{}, {:.3g} allowed", wrong,
                     error, worst.value_or(0), run == 0 ? "" : fmt::format(" of run {}", run),
                     allowed);
}

}  // namespace hone
