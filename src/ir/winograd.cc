#include "ir/winograd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "base/error.h"

namespace hone {
namespace {

// Results may have 4 times the errors of plain f32 (docs/accuracy.md). The estimate is of mean
// squares. Take the largest error among a few hundred results. In one of 10,000 random cases it was
// 1.57 times as far above that of plain f32 as the estimate says. Sums over few channels are exact
// more often in plain f32: with 4 channels it was 2.45 times as far above.
constexpr double kMostLoss = 2.5;
constexpr double kMostLossOfFewChannels = 1.6;
constexpr int64_t kFewChannels = 8;  // fewer than these
// In units of a rounding of a sum: those of the transforms of data, weights and results.
constexpr double kTransformRoundings = 4;
constexpr int64_t kMostFeatures = 16;  // that an estimate looks at
// The limit for the root of a feature's sum of squares. Transformed numbers are up to 40 times
// larger than data. So their products leave f32 (2^128) only with data that plain sums bring near
// to that, too.
constexpr double kMostWeight = 0x1p60;

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

std::vector<double> weights_matrix(const WinogradTransform& transform, int dims) {
  std::vector<double> matrix = {1};
  size_t rows = 1, columns = 1;
  for (int dim = 0; dim < dims; ++dim) {
    std::vector<double> next;
    for (size_t row = 0; row < rows; ++row)
      for (const std::vector<double>& inner : transform.weights)
        for (size_t column = 0; column < columns; ++column)
          for (double each : inner) next.push_back(matrix[row * columns + column] * each);
    matrix = std::move(next);
    rows *= transform.weights.size();
    columns *= kWinogradWindow;
  }
  return matrix;
}

WinogradWindows::WinogradWindows(const Tensor& weights, const Dims& dims) : weights_(weights) {
  const Type type = weights.type();
  const std::span<const std::byte> bytes = weights.bytes_once(filled_);
  if (type.dtype() == DType::f32) {
    floats_ = bytes;
  } else {
    const std::shared_ptr<const void> borrowed(std::shared_ptr<void>(), bytes.data());
    others_.resize(static_cast<size_t>(weights.elements()));
    Tensor::shared(type, borrowed, bytes).value().read_reals(0, others_);
  }
  const Ints strides = row_major_strides(type.static_dims());
  const auto stride = [&](int dim) { return strides[static_cast<size_t>(dim)]; };
  features_ = type.dim(dims.features).value();
  channels_ = type.dim(dims.channels).value();
  feature_stride_ = stride(dims.features);
  channel_stride_ = stride(dims.channels);
  dims_ = static_cast<int>(dims.window.size());
  taps_ = {0};
  for (int dim : dims.window) {
    std::vector<int64_t> next;
    for (int64_t place : taps_)
      for (int64_t tap = 0; tap < kWinogradWindow; ++tap) next.push_back(place + tap * stride(dim));
    taps_ = std::move(next);
  }
}

double WinogradWindows::number(int64_t index) const {
  const auto i = static_cast<size_t>(index);
  if (floats_.empty()) return others_[i];
  float number;  // a mapped file's may lie anywhere
  std::memcpy(&number, floats_.data() + i * sizeof(number), sizeof(number));
  return number;
}

void WinogradWindows::read(int64_t feature, int64_t channel, std::span<double> window) const {
  const int64_t first = feature * feature_stride_ + channel * channel_stride_;
  for (size_t tap = 0; tap < taps_.size(); ++tap) window[tap] = number(first + taps_[tap]);
}

double WinogradWindows::squares(int64_t feature) const {
  double sum = 0;
  std::vector<double> window(taps_.size());
  for (int64_t channel = 0; channel < channels_; ++channel) {
    read(feature, channel, window);
    for (double each : window) sum += each * each;
  }
  return sum;
}

namespace {

// For each product of a tile: how many times the variance of data it has.
std::vector<double> variance_of_data(const WinogradTransform& transform, int dims) {
  std::vector<double> all = {1};
  for (int dim = 0; dim < dims; ++dim) {
    std::vector<double> next;
    for (double so_far : all)
      for (const std::vector<double>& row : transform.data)
        next.push_back(so_far * std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    all = std::move(next);
  }
  return all;
}

// For each product of a tile: its share in the variance of a point, in the mean over the points.
std::vector<double> shares_of_points(const WinogradTransform& transform, int dims) {
  std::vector<double> of_one(static_cast<size_t>(transform.products()), 0), all = {1};
  for (const std::vector<double>& row : transform.results)
    for (size_t i = 0; i < row.size(); ++i)
      of_one[i] += row[i] * row[i] / static_cast<double>(transform.points);
  for (int dim = 0; dim < dims; ++dim) {
    std::vector<double> next;
    for (double so_far : all)
      for (double share : of_one) next.push_back(so_far * share);
    all = std::move(next);
  }
  return all;
}

// The variance of a point by the weights of a window: of each pair of these, by what their product
// counts.
std::vector<double> variance_by_weights(const WinogradTransform& transform, int dims) {
  const std::vector<double> of_data = variance_of_data(transform, dims);
  const std::vector<double> shares = shares_of_points(transform, dims);
  const std::vector<double> matrix = weights_matrix(transform, dims);
  const size_t taps = matrix.size() / of_data.size();
  std::vector<double> form(taps * taps, 0);
  for (size_t product = 0; product < of_data.size(); ++product)
    for (size_t a = 0; a < taps; ++a)
      for (size_t b = 0; b < taps; ++b)
        form[a * taps + b] += matrix[product * taps + a] * matrix[product * taps + b] *
                              of_data[product] * shares[product];
  return form;
}

}  // namespace

// For data with variance 1, by the variance of what is summed: the j-th of n sums has j/n of it,
// and each sum rounds once.
double winograd_loss(const WinogradTransform& transform, const WinogradWindows& weights,
                     std::span<const int64_t> features) {
  const std::vector<double> form = variance_by_weights(transform, weights.dims());
  const double terms = static_cast<double>(weights.channels());
  std::vector<double> window(weights.taps());
  const double taps = static_cast<double>(window.size());
  double plain = 0, lost = 0;
  for (int64_t feature : features) {
    double variance = 0;
    for (int64_t channel = 0; channel < weights.channels(); ++channel) {
      weights.read(feature, channel, window);
      for (size_t tap = 0; tap < window.size(); ++tap)
        variance += window[tap] * std::inner_product(window.begin(), window.end(),
                                                     form.data() + tap * window.size(), 0.0);
    }
    plain = std::max(plain, weights.squares(feature) * (terms * taps + 1) / 2);
    lost = std::max(lost, variance * ((terms + 1) / 2 + kTransformRoundings));
  }
  return plain > 0 ? std::sqrt(lost / plain) : 0;
}

int64_t winograd_points(const Tensor& weights, const ConvOrder& order) {
  const Type type = weights.type();
  const int dims = order.spatial_rank();
  if (dims < 1 || dims > 2 || !is_real(type.dtype()) || weights.elements() == 0) return 0;
  for (int dim : order.kernel_spatial)
    if (!type.dim(dim).is(kWinogradWindow)) return 0;
  const WinogradWindows windows(weights,
                                {order.kernel_output, order.kernel_input, order.kernel_spatial});
  std::vector<std::pair<double, int64_t>> features;
  for (int64_t f = 0; f < windows.features(); ++f) features.emplace_back(windows.squares(f), f);
  for (const auto& [squares, feature] : features)
    if (!(squares <= kMostWeight * kMostWeight)) return 0;
  std::ranges::sort(features, std::greater());
  std::vector<int64_t> looked_at;
  for (const auto& [squares, feature] : features)
    if (std::ssize(looked_at) < kMostFeatures) looked_at.push_back(feature);
  const double most = windows.channels() < kFewChannels ? kMostLossOfFewChannels : kMostLoss;
  int64_t best = 0;
  for (int64_t points : kWinogradPoints)
    if (winograd_loss(WinogradTransform(points), windows, looked_at) <= most) best = points;
  return best;
}

}  // namespace hone
