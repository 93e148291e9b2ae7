#include "assign/dual.h"

#include <algorithm>
#include <cmath>

namespace hone {
namespace {

// Nearly value * 2^fraction; so far from the largest number of 128 bits that sums of many fit.
Int128 fixed_point(double value, int fraction) {
  constexpr double kLargest = 0x1p105;
  return static_cast<Int128>(std::clamp(std::ldexp(value, fraction), -kLargest, kLargest));
}

// Bits behind the point, such that a sum of prices, times a sum of usages, fits 128 bits.
int fraction_for(const std::vector<double>& prices) {
  double sum = 1;
  for (double price : prices) sum += price;
  return std::clamp(66 - std::ilogb(sum), 0, 40);
}

std::vector<double> running_sums(const std::vector<double>& values) {
  std::vector<double> sums(values.size() + 1);
  for (size_t t = 0; t < values.size(); ++t) sums[t + 1] = sums[t] + values[t];
  return sums;
}

}  // namespace

Dual::Dual(const Core& core, const CoreTables& tables)
    : core_(core),
      tables_(tables),
      messages_(core.edges.size()),
      prices_(core.slack.size()),
      marginals_(core.nodes.size()),
      picks_(core.nodes.size()),
      change_(core.slack.size() + 1),
      mean_usage_(core.slack.size()) {
  for (size_t e = 0; e < messages_.size(); ++e) {
    messages_[e].to_first.resize(row_length(core.nodes[core.edges[e].first].options()));
    messages_[e].to_second.resize(row_length(core.nodes[core.edges[e].second].options()));
  }
  best_prices_ = prices_;
  best_messages_ = messages_;
  costs_ = priced_costs(prices_);
}

std::vector<std::vector<double>> Dual::priced_costs(const std::vector<double>& prices) const {
  const std::vector<double> sums = running_sums(prices);
  std::vector<std::vector<double>> costs;
  costs.reserve(core_.nodes.size());
  for (const CoreNode& node : core_.nodes) {
    std::vector<double> priced(node.costs.begin(), node.costs.end());
    for (size_t s = 0; s < node.spans.size(); ++s) {
      const double price = sums[node.spans[s].to] - sums[node.spans[s].from];
      if (price == 0) continue;
      const int64_t* usages = node.usages_in(s);
      for (size_t x = 0; x < priced.size(); ++x)
        priced[x] += price * static_cast<double>(usages[x]);
    }
    costs.push_back(std::move(priced));
  }
  return costs;
}

// Moves all that the edge can give into the node.
void Dual::collect(uint32_t edge, uint32_t node) {
  const uint32_t other = core_.edges[edge].other(node);
  const std::vector<double>& from = message(edge, other);
  std::vector<double>& to = message(edge, node);
  const double* row = tables_.rows(edge, other);
  const size_t options = core_.nodes[other].options(), length = to.size();
  std::ranges::fill(to, kNever);
  double* __restrict const least = to.data();
  for (size_t y = 0; y < options; ++y) {
    const double sent = from[y];
#pragma clang loop vectorize_width(4) interleave_count(1)
    for (size_t x = 0; x < length; ++x) {
      const double cost = row[x] - sent;
      least[x] = cost < least[x] ? cost : least[x];
    }
    row += length;
  }
}

// Adds up the usage of the option that looks best.
void Dual::use(uint32_t index) {
  const CoreNode& node = core_.nodes[index];
  const uint32_t pick = picks_[index];
  for (size_t s = 0; s < node.spans.size(); ++s) {
    const auto usage = static_cast<double>(node.usages_in(s)[pick]);
    change_[node.spans[s].from] += usage;
    change_[node.spans[s].to] -= usage;
  }
}

// Returns the bound that follows, without what is paid for the slack.
double Dual::sweep(bool is_forward) {
  const auto count = static_cast<uint32_t>(core_.nodes.size());
  double bound = 0;
  for (uint32_t step = 0; step < count; ++step) {
    const uint32_t i = is_forward ? step : count - 1 - step;
    const CoreNode& node = core_.nodes[i];
    size_t before = 0;
    for (uint32_t e : node.edges)
      if ((core_.edges[e].other(i) < i) == is_forward) {
        collect(e, i);
        ++before;
      }
    std::vector<double>& marginal = marginals_[i];
    marginal = costs_[i];
    for (uint32_t e : node.edges) {
      const std::vector<double>& received = message(e, i);
      for (size_t x = 0; x < marginal.size(); ++x) marginal[x] += received[x];
    }
    const auto least = std::ranges::min_element(marginal);
    picks_[i] = static_cast<uint32_t>(least - marginal.begin());
    use(i);
    const double lowest = *least;
    const size_t after = node.edges.size() - before;
    if (after == 0) {
      bound += lowest;
      continue;
    }
    const double weight = 1.0 / static_cast<double>(std::max(before, after));
    for (uint32_t e : node.edges)
      if ((core_.edges[e].other(i) > i) == is_forward) {
        std::vector<double>& sent = message(e, i);
        for (size_t x = 0; x < marginal.size(); ++x) sent[x] -= weight * marginal[x];
      }
    bound += (1 - weight * static_cast<double>(after)) * lowest;
  }
  return bound;
}

double Dual::paid_slack() const {
  double paid = 0;
  for (size_t t = 0; t < prices_.size(); ++t)
    paid += prices_[t] * static_cast<double>(core_.slack[t]);
  return paid;
}

void Dual::improve(double known) {
  std::ranges::fill(change_, 0.0);
  sweep(true);
  const double value = sweep(false) - paid_slack();
  if (value > best_) {
    since_best_ = value > best_ + 1e-5 * std::abs(best_) ? 0 : since_best_ + 1;
    best_ = value;
    best_prices_ = prices_;
    best_messages_ = messages_;
  } else {
    ++since_best_;
  }
  if (!prices_.empty()) step(value, known);
}

void Dual::step(double value, double known) {
  constexpr double kNew = 0.1;   // the share of the last usage in the mean
  constexpr double kFar = 0.3;   // share of the gap; below the best bound, steps go back to it
  constexpr int kPatience = 20;  // steps without a gain
  const double gap = std::max(known - best_, 1e-6 * std::abs(known));
  if (value < best_ - gap) pace_ *= 0.9;
  if (since_best_ > kPatience) {
    pace_ *= 0.7;
    since_best_ = 0;
  }
  pace_ = std::max(pace_, 1e-4);
  double usage = 0, norm = 0;
  for (size_t t = 0; t < prices_.size(); ++t) {
    usage += change_[t] / 2;  // of two sweeps
    mean_usage_[t] += kNew * (usage - static_cast<double>(core_.slack[t]) - mean_usage_[t]);
    if (prices_[t] > 0 || mean_usage_[t] > 0) norm += mean_usage_[t] * mean_usage_[t];
  }
  if (norm == 0) return;
  if (value < best_ - kFar * gap) prices_ = best_prices_;
  const double length = pace_ * gap / norm;
  for (size_t t = 0; t < prices_.size(); ++t)
    prices_[t] = std::max(0.0, prices_[t] + length * mean_usage_[t]);
  costs_ = priced_costs(prices_);
}

Int128 Dual::certified() const {
  const int fraction = fraction_for(best_prices_);
  std::vector<Int128> sums = {0};
  Int128 sum = Int128{core_.constant} << fraction;
  for (size_t t = 0; t < best_prices_.size(); ++t) {
    const Int128 price = core_.are_usages_exact ? fixed_point(best_prices_[t], fraction) : 0;
    sums.push_back(sums.back() + price);
    sum -= price * core_.slack[t];
  }
  std::vector<std::vector<Int128>> nodes;
  for (const CoreNode& node : core_.nodes) {
    std::vector<Int128> costs;
    for (int64_t cost : node.costs) costs.push_back(Int128{cost} << fraction);
    for (size_t s = 0; s < node.spans.size(); ++s) {
      const Int128 price = sums[node.spans[s].to] - sums[node.spans[s].from];
      if (price == 0) continue;
      for (size_t x = 0; x < costs.size(); ++x) costs[x] += price * node.usages_in(s)[x];
    }
    nodes.push_back(std::move(costs));
  }
  for (size_t e = 0; e < core_.edges.size(); ++e) {
    const CoreEdge& edge = core_.edges[e];
    std::vector<Int128> to_first, to_second;
    for (size_t x = 0; x < nodes[edge.first].size(); ++x)
      to_first.push_back(fixed_point(best_messages_[e].to_first[x], fraction));
    for (size_t y = 0; y < nodes[edge.second].size(); ++y)
      to_second.push_back(fixed_point(best_messages_[e].to_second[y], fraction));
    for (size_t x = 0; x < to_first.size(); ++x) nodes[edge.first][x] += to_first[x];
    for (size_t y = 0; y < to_second.size(); ++y) nodes[edge.second][y] += to_second[y];
    Int128 least = Int128{kNeverCost} << fraction;
    for (size_t x = 0; x < to_first.size(); ++x)
      for (size_t y = 0; y < to_second.size(); ++y) {
        const int64_t cost = edge.costs[x * to_second.size() + y];
        if (cost < kNeverCost)
          least = std::min(least, (Int128{cost} << fraction) - to_first[x] - to_second[y]);
      }
    sum += least;
  }
  for (const std::vector<Int128>& costs : nodes) sum += std::ranges::min(costs);
  return sum >> fraction;
}

}  // namespace hone
