#include "oracle/compare.h"

#include "base/text.h"
#include "tensor/real_format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace hone {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One pair of elements as numbers, and how far they are apart.
Disagreement pair_of(int64_t index, double actual, double expected) {
  const bool same = actual == expected || (std::isnan(actual) && std::isnan(expected));
  const double difference = std::abs(actual - expected);
  return {index, actual, expected, same ? 0 : std::isfinite(difference) ? difference : kInfinity};
}

// Exact, where doubles of 64-bit integers would hide a difference.
Disagreement pair_of(DType type, int64_t index, int64_t actual, int64_t expected) {
  using Wide = __int128;
  const bool is_unsigned = kind(type) == DTypeKind::uint;
  const auto wide = [&](int64_t image) {
    return is_unsigned ? static_cast<Wide>(static_cast<uint64_t>(image)) : static_cast<Wide>(image);
  };
  const Wide difference = wide(actual) - wide(expected);
  return {index, integer_to_real(type, actual), integer_to_real(type, expected),
          static_cast<double>(difference < 0 ? -difference : difference)};
}

void add(Comparison& all, double& worst_excess, const Disagreement& pair) {
  const double size = std::isfinite(pair.expected) ? std::abs(pair.expected) : 0;
  all.max_difference = std::max(all.max_difference, pair.difference);
  if (pair.difference == 0) return;

  const double relative_part = all.tolerance.relative * size;
  const double needed_absolute = pair.difference - relative_part;
  all.passing_absolute = std::max(all.passing_absolute, needed_absolute);
  const double beyond = pair.difference - all.tolerance.absolute;
  if (beyond > 0)
    all.passing_relative = std::max(all.passing_relative, size > 0 ? beyond / size : kInfinity);

  if (pair.difference <= all.tolerance.absolute + relative_part) return;
  ++all.bad;
  if (!all.first) all.first = pair;
  if (needed_absolute > worst_excess) {
    worst_excess = needed_absolute;
    all.worst = pair;
  }
}

// With two digits, rounded up, so that what is printed does pass.
std::string rounded_up(double value) {
  if (value == 0 || !std::isfinite(value)) return format_double(value);
  const double enough = value * (1 + 1e-12);
  const double unit = std::pow(10, std::floor(std::log10(enough)) - 1);
  double rounded = std::ceil(enough / unit) * unit;
  // The unit itself may be a bit too small.
  std::string text = fmt::format("{:.2g}", rounded);
  while (*parse_double(text) < enough) text = fmt::format("{:.2g}", rounded += unit);
  return text;
}

std::string line_of(std::string_view label, Type type, const Disagreement& pair) {
  // As many digits as tell neighbours of the type apart.
  const int digits = type.dtype() == DType::f32 ? 9 : 17;
  return fmt::format("\n  {} at {}: {:.{}g}, expected {:.{}g} (off by {:.3g})", label,
                     index_text(type, pair.index), pair.actual, digits, pair.expected, digits,
                     pair.difference);
}

std::string what_would_pass(const Comparison& result) {
  std::vector<std::string> ways;
  if (std::isfinite(result.passing_absolute)) {
    ways.push_back(fmt::format("atol {} with rtol {}", rounded_up(result.passing_absolute),
                               format_double(result.tolerance.relative)));
  }
  if (std::isfinite(result.passing_relative)) {
    ways.push_back(fmt::format("rtol {} with atol {}", rounded_up(result.passing_relative),
                               format_double(result.tolerance.absolute)));
  }
  return ways.empty() ? "no tolerance would pass" : "would pass at " + join(ways, ", or at ");
}

}  // namespace

Tolerance default_tolerance(DType type) {
  if (!is_real(type)) return {};
  if (type == DType::f64) return {1e-9, 1e-12};
  if (type == DType::f32) return {1e-4, 1e-5};
  if (type == DType::f16) return {1e-2, 1e-3};
  if (type == DType::bf16) return {4e-2, 1e-2};
  if (type == DType::f8e8m0) return {1, 0.0625};
  if (type == DType::f4e2m1) return {0.5, 0.5};
  return {0.25, 0.0625};  // f8: two or three bits of mantissa
}

namespace {

double default_relative(DType type) {
  constexpr double kOfFloats = 1e-3, kOfDoubles = 1e-7;
  if (type == DType::f64) return kOfDoubles;
  if (bits(type) > 16) return kOfFloats;
  const double unit = std::ldexp(1.0, -real_format(type).mantissa_bits);
  return std::max(kOfFloats, unit);
}

constexpr double kAbsolutePart = 0.001;  // of the relative tolerance, for the largest number

// Counts finite elements.
double largest(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.elements()));
  tensor.read_reals(0, std::span<double>(numbers));
  double largest = 0;
  for (double number : numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  return largest;
}

}  // namespace

Tolerance expected_tolerance(DType type, const Tensor& expected, const GivenTolerance& given) {
  if (!is_real(type) || !is_real(expected.dtype())) return {};
  const double relative = default_relative(type);
  return {given.relative.value_or(relative),
          given.absolute ? *given.absolute : kAbsolutePart * relative * largest(expected)};
}

std::string to_string(const GivenTolerance& given) {
  const double relative = default_relative(DType::f32);
  return fmt::format("rtol {}, atol {}", format_double(given.relative.value_or(relative)),
                     given.absolute ? format_double(*given.absolute)
                                    : fmt::format("{} x the largest number",
                                                  format_double(kAbsolutePart * relative)));
}

Result<Comparison> compare(const Tensor& actual, const Tensor& expected, Tolerance tolerance) {
  const Type type = expected.type();
  if (actual.type().static_dims() != type.static_dims() ||
      is_real(actual.dtype()) != is_real(type.dtype())) {
    return check_failed("the type is {}, expected {}", actual.type().to_string(), type.to_string());
  }
  Comparison result;
  result.type = type;
  result.tolerance = tolerance;
  result.elements = expected.elements();
  double worst_excess = -kInfinity;

  // In pieces, so that a large tensor is not held a second time.
  constexpr int64_t kPiece = 1 << 16;
  std::vector<double> reals[2];
  std::vector<int64_t> integers[2];
  for (int64_t begin = 0; begin < result.elements; begin += kPiece) {
    const auto count = static_cast<size_t>(std::min(kPiece, result.elements - begin));
    if (is_real(type.dtype())) {
      for (std::vector<double>& side : reals) side.resize(count);
      actual.read_reals(begin, reals[0]);
      expected.read_reals(begin, reals[1]);
      for (size_t i = 0; i < count; ++i)
        add(result, worst_excess,
            pair_of(begin + static_cast<int64_t>(i), reals[0][i], reals[1][i]));
    } else {
      for (std::vector<int64_t>& side : integers) side.resize(count);
      actual.read_integers(begin, integers[0]);
      expected.read_integers(begin, integers[1]);
      for (size_t i = 0; i < count; ++i)
        add(result, worst_excess,
            pair_of(type.dtype(), begin + static_cast<int64_t>(i), integers[0][i], integers[1][i]));
    }
  }
  return result;
}

std::string Comparison::to_string() const {
  const std::string limits =
      fmt::format("rtol {:.3g}, atol {:.3g}", tolerance.relative, tolerance.absolute);
  if (passed())
    return fmt::format("all {} elements agree ({}); the largest difference is {:.3g}", elements,
                       limits, max_difference);
  std::string text = fmt::format("{} of {} elements differ ({})", bad, elements, limits);
  text += line_of("first", type, *first);
  if (worst->index != first->index) text += line_of("worst", type, *worst);
  return text + "\n  " + what_would_pass(*this);
}

std::string index_text(Type type, int64_t index) {
  Ints place;
  const Ints dims = type.static_dims();
  for (size_t axis = dims.size(); axis-- > 0; index /= dims[axis])
    place.push_back(index % dims[axis]);
  std::reverse(place.begin(), place.end());
  return fmt::format("[{}]", join(place, ", "));
}

}  // namespace hone
