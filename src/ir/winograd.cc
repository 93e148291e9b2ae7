#include "ir/winograd.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace hone {
namespace {

// Results may have 4 times the errors of plain f32 (docs/accuracy.md). The estimate is of mean
// squares, so some room is left to the largest errors.
constexpr double kMostLoss = 3;
// In units of a rounding of a sum: those of the transforms of data, weights and results.
constexpr double kTransformRoundings = 4;
constexpr int64_t kMostFeatures = 16;  // that an estimate looks at

// The values are exact in binary, and lose less than 1 and 2 do: 2 times the errors of plain f32
// instead of 5, with 64 channels of random numbers.
std::vector<double> pairs_of(int64_t points) {
  return points == 2 ? std::vector<double>{1} : std::vector<double>{0.75, 1.5};
}

// The coefficients of the product of (x - value) over all values but one.
std::vector<double> polynomial(std::span<const double> values, size_t without) {
  std::vector<double> all = {1};
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == without) continue;
    all.insert(all.begin(), 0);
    for (size_t k = 0; k + 1 < all.size(); ++k) all[k] -= values[i] * all[k + 1];
  }
  return all;
}

size_t power(size_t base, int exponent) {
  size_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= base;
  return result;
}

}  // namespace

WinogradTransform::WinogradTransform(int64_t points) : points(points), pairs(pairs_of(points)) {
  std::vector<double> values = {0};
  for (double p : pairs) values.insert(values.end(), {p, -p});
  const size_t finite = values.size(), n = finite + 1;
  HONE_CHECK(static_cast<int64_t>(n) == products(), "no transform of {} points", points);
  weights.resize(n);
  results.assign(static_cast<size_t>(points), std::vector<double>(n, 0));
  for (size_t i = 0; i < finite; ++i) {
    double others = 1;
    for (size_t j = 0; j < finite; ++j)
      if (j != i) others *= values[i] - values[j];
    double value = 1;
    for (size_t k = 0; k < std::max<size_t>(kWinogradWindow, results.size()); ++k) {
      if (k < kWinogradWindow) weights[i].push_back(value / others);
      if (k < results.size()) results[k][i] = value;
      value *= values[i];
    }
    data.push_back(polynomial(values, i));
    data.back().resize(n, 0);
  }
  weights[finite] = {0, 0, 1};
  results.back()[finite] = 1;
  data.push_back(polynomial(values, n));
}

std::vector<double> transformed(const WinogradTransform& transform, std::span<const double> weights,
                                int dims) {
  std::vector<double> now(weights.begin(), weights.end());
  // Each turn takes the first dim away and adds its products as the last one.
  const size_t n = static_cast<size_t>(transform.products());
  for (int dim = 0; dim < dims; ++dim) {
    const size_t rest = now.size() / kWinogradWindow;
    std::vector<double> next(rest * n);
    for (size_t r = 0; r < rest; ++r)
      for (size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (size_t k = 0; k < kWinogradWindow; ++k)
          sum += transform.weights[i][k] * now[k * rest + r];
        next[r * n + i] = sum;
      }
    now = std::move(next);
  }
  return now;
}

// Of data with variance 1, by the variance of what is summed: the j-th of n sums has j/n of it, and
// each sum rounds once.
double winograd_loss(const WinogradTransform& transform, std::span<const double> weights,
                     int64_t features, int64_t channels, int dims) {
  const size_t n = static_cast<size_t>(transform.products());
  const size_t taps = power(kWinogradWindow, dims), all = power(n, dims);
  std::vector<double> of_data(all, 1);  // variance
  for (size_t i = 0; i < all; ++i)
    for (size_t rest = i, d = 0; d < static_cast<size_t>(dims); ++d, rest /= n) {
      double squares = 0;
      for (double each : transform.data[rest % n]) squares += each * each;
      of_data[i] *= squares;
    }
  const double terms = static_cast<double>(channels);
  double plain = 0, lost = 0;
  for (int64_t f = 0; f < features; ++f) {
    std::vector<double> variance(all, 0);
    double squares = 0;
    for (int64_t c = 0; c < channels; ++c) {
      const auto window = weights.subspan(static_cast<size_t>(f * channels + c) * taps, taps);
      for (double each : window) squares += each * each;
      const std::vector<double> products = transformed(transform, window, dims);
      for (size_t i = 0; i < all; ++i) variance[i] += products[i] * products[i] * of_data[i];
    }
    plain = std::max(plain, squares * (terms * static_cast<double>(taps) + 1) / 2);
    double mean = 0;
    const size_t points = power(transform.results.size(), dims);
    for (size_t y = 0; y < points; ++y) {
      double sum = 0;
      for (size_t i = 0; i < all; ++i) {
        double factor = 1;
        for (size_t point = y, rest = i, d = 0; d < static_cast<size_t>(dims); ++d) {
          factor *= transform.results[point % transform.results.size()][rest % n];
          point /= transform.results.size();
          rest /= n;
        }
        sum += factor * factor * variance[i];
      }
      mean += sum / static_cast<double>(points);
    }
    lost = std::max(lost, mean * ((terms + 1) / 2 + kTransformRoundings));
  }
  return plain > 0 ? std::sqrt(lost / plain) : 0;
}

int64_t winograd_points(const Tensor& weights, const ConvOrder& order) {
  const Type type = weights.type();
  const int dims = order.spatial_rank();
  if (dims < 1 || dims > 2 || !is_real(type.dtype()) || weights.elements() == 0) return 0;
  for (int dim : order.kernel_spatial)
    if (!type.dim(dim).is(kWinogradWindow)) return 0;
  std::vector<std::byte> scratch;
  const Tensor once = Tensor::copy_of(type, weights.bytes_once(scratch));
  std::vector<double> all(static_cast<size_t>(weights.elements()));
  once.read_reals(0, all);
  if (!std::ranges::all_of(all, [](double each) { return std::isfinite(each); })) return 0;
  const Ints strides = row_major_strides(type.static_dims());
  const auto stride = [&](int dim) { return strides[static_cast<size_t>(dim)]; };
  const int64_t channels = type.dim(order.kernel_input).value();
  const int64_t features = type.dim(order.kernel_output).value();
  const int64_t looked_at = std::min(features, kMostFeatures);
  std::vector<double> sorted;
  for (int64_t f = 0; f < looked_at; ++f)
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t first =
          f * features / looked_at * stride(order.kernel_output) + c * stride(order.kernel_input);
      for (size_t tap = 0; tap < power(kWinogradWindow, dims); ++tap) {
        int64_t at = first;
        for (size_t d = static_cast<size_t>(dims), rest = tap; d-- > 0; rest /= kWinogradWindow)
          at += static_cast<int64_t>(rest % kWinogradWindow) * stride(order.kernel_spatial[d]);
        sorted.push_back(all[static_cast<size_t>(at)]);
      }
    }
  int64_t best = 0;
  for (int64_t points : kWinogradPoints)
    if (winograd_loss(WinogradTransform(points), sorted, looked_at, channels, dims) <= kMostLoss)
      best = points;
  return best;
}

}  // namespace hone
