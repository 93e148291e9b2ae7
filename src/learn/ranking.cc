#include "learn/ranking.h"

#include <algorithm>
#include <cmath>
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

}  // namespace hone
