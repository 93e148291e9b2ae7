#include "quantize/seen.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "quantize/difference.h"

namespace hone::quantize {
namespace {

// Factors beyond these would make f32 numbers of f32 numbers that have few digits left.
constexpr double kMostFactor = 1024;
// Fewer rows say little of other rows: their ranges would cut those of others, and their means are
// chance.
constexpr int64_t kLeastRows = 32;
// Data and weights whose indices have ranges this close to each other gain nothing.
constexpr double kLeastSpread = 1.5;

void merge(std::vector<double>& into, const std::vector<double>& from, const auto& combine) {
  if (into.empty())
    into = from;
  else
    std::ranges::transform(into, from, into.begin(), combine);
}

// The largest weight, by size, per index of group_axis.
std::vector<double> largest_weights(const Layer& layer) {
  const Type type = layer.weights.type();
  size_t inner = 1;
  for (int d = layer.group_axis + 1; d < type.rank(); ++d)
    inner *= static_cast<size_t>(type.dim(d).value());
  std::vector<double> largest(static_cast<size_t>(type.dim(layer.group_axis).value()));
  const std::vector<double> weights = reals_of(layer.weights);
  for (size_t at = 0; at < weights.size(); ++at) {
    double& most = largest[at / inner % largest.size()];
    most = std::max(most, std::abs(weights[at]));
  }
  return largest;
}

}  // namespace

void Seen::add(std::span<const Tensor> outputs) {
  HONE_CHECK(outputs.size() == kProbeOutputs, "{} outputs of a layer", outputs.size());
  merge(low_, reals_of(outputs[0]), [](double a, double b) { return std::min(a, b); });
  merge(high_, reals_of(outputs[1]), [](double a, double b) { return std::max(a, b); });
  merge(sum_, reals_of(outputs[2]), std::plus<>());
  ++runs_;
}

DataRange Seen::range() const { return range_after({}); }

DataRange Seen::range_after(std::span<const double> smoothing) const {
  DataRange range;
  for (size_t i = 0; i < low_.size(); ++i) {
    const double factor = smoothing.empty() ? 1 : smoothing[i];
    range.low = std::min(range.low, low_[i] / factor);
    range.high = std::max(range.high, high_[i] / factor);
  }
  return range;
}

std::vector<double> Seen::smoothing(const Layer& layer) const {
  if (layer.data_axis < 0 || runs_ * layer.rows < kLeastRows) return {};
  const std::vector<double> weights = largest_weights(layer);
  HONE_CHECK(weights.size() == low_.size(), "{} ranges for {} indices", low_.size(),
             weights.size());
  std::vector<double> factors;
  double least = HUGE_VAL, most = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const double data = std::max(std::abs(low_[i]), std::abs(high_[i]));
    const double ratio = data > 0 && weights[i] > 0 ? data / weights[i] : 1;
    const double factor = std::clamp(std::sqrt(ratio), 1 / kMostFactor, kMostFactor);
    factors.push_back(static_cast<double>(static_cast<float>(factor)));
    least = std::min(least, factor), most = std::max(most, factor);
  }
  if (most < least * kLeastSpread) factors.clear();
  return factors;
}

std::vector<double> Seen::correction(const Layer& layer, const Seen& exact) const {
  if (layer.result_axis < 0 || runs_ * layer.rows < kLeastRows) return {};
  std::vector<double> correction;
  for (size_t i = 0; i < sum_.size(); ++i) {
    const double mean = sum_[i] / static_cast<double>(runs_);
    const double of_exact = exact.sum_[i] / static_cast<double>(exact.runs_);
    correction.push_back(static_cast<double>(static_cast<float>(of_exact - mean)));
  }
  return correction;
}

bool Seen::is_finite() const {
  const auto all = [](const std::vector<double>& numbers) {
    return std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); });
  };
  return all(low_) && all(high_);
}

}  // namespace hone::quantize
