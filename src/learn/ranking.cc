#include "learn/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"

namespace hone {

double kendall_tau(std::span<const double> prices, std::span<const double> seconds) {
  HONE_CHECK(prices.size() == seconds.size(), "{} prices of {}", prices.size(), seconds.size());
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < prices.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      if (seconds[i] == seconds[j]) continue;
      ++pairs;
      if (prices[i] == prices[j]) continue;
      sum += (prices[i] < prices[j]) == (seconds[i] < seconds[j]) ? 1 : -1;
    }
  return pairs == 0 ? 0 : sum / pairs;
}

double regret(std::span<const double> prices, std::span<const double> seconds, size_t count) {
  HONE_CHECK(prices.size() == seconds.size() && !prices.empty() && count > 0,
             "{} prices of {}, the first {}", prices.size(), seconds.size(), count);
  std::vector<size_t> order(prices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return std::pair(prices[i], i); });
  order.resize(std::min(order.size(), count));
  const size_t chosen = std::ranges::min(order, {}, [&](size_t i) { return seconds[i]; });
  return seconds[chosen] / *std::ranges::min_element(seconds);
}

double mean_error(std::span<const double> prices, std::span<const double> seconds) {
  double sum = 0;
  for (size_t i = 0; i < prices.size(); ++i) sum += std::abs(prices[i] / seconds[i] - 1);
  return prices.empty() ? 0 : sum / static_cast<double>(prices.size());
}

double area_under_curve(std::span<const double> prices, const std::vector<bool>& is_slow) {
  HONE_CHECK(prices.size() == is_slow.size(), "{} prices of {}", prices.size(), is_slow.size());
  double sum = 0, pairs = 0;
  for (size_t i = 0; i < prices.size(); ++i)
    for (size_t j = 0; j < prices.size(); ++j) {
      if (!is_slow[i] || is_slow[j]) continue;
      ++pairs;
      sum += prices[i] > prices[j] ? 1 : prices[i] == prices[j] ? 0.5 : 0;
    }
  return pairs == 0 ? 0.5 : sum / pairs;
}

std::vector<bool> slow_cluster(std::span<const double> seconds) {
  std::vector<double> sorted(seconds.begin(), seconds.end());
  std::ranges::sort(sorted);
  double widest = 0, limit = std::numeric_limits<double>::infinity();
  for (size_t i = 1; i < sorted.size(); ++i) {
    const double gap = std::log(sorted[i] / sorted[i - 1]);
    if (gap > widest) widest = gap, limit = sorted[i];
  }
  std::vector<bool> is_slow;
  for (double each : seconds) is_slow.push_back(each >= limit);
  return is_slow;
}

}  // namespace hone
