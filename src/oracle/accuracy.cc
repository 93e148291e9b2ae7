#include "oracle/accuracy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/real_format.h"

namespace hone {

namespace {

constexpr double kFactor = 4;
constexpr double kDoubleOfFloat = 0x1p-29;  // a rounding error of f64, for one of f32

// The unit in the last place of a number of this size in the type.
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

// The distance of two numbers of which at least one is not finite.
bool agree(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<double> reals(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  return numbers;
}

// A reference that came to the shape of the output: it can be compared element by element.
bool is_comparable(const Tensor& reference, const Tensor& actual) {
  return reference.type().static_dims() == actual.type().static_dims();
}

// The largest difference of elements that are finite in both; 0 for other shapes.
double distance(const Tensor& way, const Tensor& wide) {
  if (!is_comparable(way, wide)) return 0;
  const std::vector<double> numbers = reals(way), truth = reals(wide);
  double most = 0;
  for (size_t i = 0; i < truth.size(); ++i)
    if (std::isfinite(truth[i]) && std::isfinite(numbers[i]))
      most = std::max(most, std::fabs(numbers[i] - truth[i]));
  return most;
}

class AccuracyJudge {
 public:
  explicit AccuracyJudge(std::span<const AccuracyRun> runs)
      : runs_(runs),
        dtype_(runs[0].actual.dtype()),
        is_double_(dtype_ == DType::f64 && !is_narrowed(runs)) {}

  Accuracy exactly() {
    for (run_ = 0; run_ < runs_.size(); ++run_) {
      const AccuracyRun& run = runs_[run_];
      if (!has_shape(run)) continue;
      const std::vector<const Tensor*> ways = plain_ways(run);
      for (int64_t i = 0; i < run.actual.elements(); ++i) {
        const int64_t a = run.actual.integer_at(i), b = run.wide.integer_at(i);
        if (a == b) continue;
        if (std::ranges::any_of(ways, [&](const Tensor* way) { return way->integer_at(i) == a; })) {
          result_.remark = kRoundingDecides;
          continue;
        }
        ++result_.wrong;
        note(i, std::fabs(static_cast<double>(a) - static_cast<double>(b)));
      }
    }
    return result_;
  }

  Accuracy of_reals() {
    result_.allowed = allowed();
    for (run_ = 0; run_ < runs_.size(); ++run_)
      if (has_shape(runs_[run_])) compare(runs_[run_]);
    return result_;
  }

 private:
  static constexpr std::string_view kRoundingDecides = "rounding decides";

  // Values of fewer bits than the output has are on the way to it.
  static bool is_narrowed(std::span<const AccuracyRun> runs) {
    return std::ranges::any_of(runs, [](const AccuracyRun& run) {
      return run.rounded && !run.rounded->same_bytes(run.wide);
    });
  }

  // The plain ways that come to the same shape as the output and have its precision.
  std::vector<const Tensor*> plain_ways(const AccuracyRun& run) const {
    std::vector<const Tensor*> ways;
    if (!is_double_ && is_comparable(run.fp32, run.actual)) ways.push_back(&run.fp32);
    if (run.rounded && is_comparable(*run.rounded, run.actual)) ways.push_back(&*run.rounded);
    return ways;
  }

  // True if wide has it. If not, that is wrong unless a plain way has it.
  bool has_shape(const AccuracyRun& run) {
    if (is_comparable(run.wide, run.actual)) return true;
    const bool is_plain = !plain_ways(run).empty();
    result_.remark = fmt::format("{}: the type is {}, by the reference {}",
                                 is_plain ? kRoundingDecides : "wrong shape",
                                 run.actual.type().to_string(), run.wide.type().to_string());
    if (!is_plain) {
      result_.wrong += std::max<int64_t>(1, run.actual.elements());
      result_.run = run_;
    }
    return false;
  }

  double allowed() const {
    const DType unit = dtype_ == DType::f64 && !is_double_ ? DType::f32 : dtype_;
    double scale = 0, plain_error = 0;
    for (const AccuracyRun& run : runs_) {
      const std::vector<double> truth = reals(run.wide);
      for (double number : truth)
        if (std::isfinite(number)) scale = std::max(scale, std::fabs(number));
      for (const Tensor* way : plain_ways(run))
        plain_error = std::max(plain_error, distance(*way, run.wide));
      if (is_double_)
        plain_error = std::max(plain_error, kDoubleOfFloat * distance(run.fp32, run.wide));
    }
    const double ulp = unit_in_the_last_place(unit, std::min(scale, highest_finite(dtype_)));
    return kFactor * std::max(plain_error, ulp);
  }

  void compare(const AccuracyRun& run) {
    const std::vector<double> numbers = reals(run.actual), truth = reals(run.wide);
    const double highest = highest_finite(dtype_);
    std::vector<std::vector<double>> plain;
    for (const Tensor* way : plain_ways(run)) plain.push_back(reals(*way));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isfinite(numbers[i]) || !std::isfinite(truth[i])) {
        // A number too large for the type is infinite in it.
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
  const DType dtype_;
  const bool is_double_;  // held to f64
  size_t run_ = 0;
  Accuracy result_;
};

}  // namespace

Result<Accuracy> accuracy(std::span<const AccuracyRun> runs) {
  for (const auto& [actual, wide, fp32, rounded] : runs) {
    const DType dtype = actual.dtype(), expected = is_real(dtype) ? DType::f64 : dtype;
    for (const Tensor* reference : {&wide, &fp32, rounded ? &*rounded : &fp32})
      if (reference->dtype() != expected || dtype != runs[0].actual.dtype())
        return bad_input("the output is {}, the reference's {}", actual.type().to_string(),
                         reference->type().to_string());
  }
  if (runs.empty()) return Accuracy();
  return is_real(runs[0].actual.dtype()) ? AccuracyJudge(runs).of_reals()
                                         : AccuracyJudge(runs).exactly();
}

std::string Accuracy::to_string() const {
  const std::string end = remark.empty() ? "" : fmt::format("; {}", remark);
  if (passed()) return fmt::format("off by {:.3g} at most, {:.3g} allowed{}", error, allowed, end);
  return fmt::format("{} elements wrong; off by {:.3g} at element {}{}, {:.3g} allowed{}", wrong,
                     error, worst.value_or(0), run == 0 ? "" : fmt::format(" of run {}", run),
                     allowed, end);
}

}  // namespace hone
