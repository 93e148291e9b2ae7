#include "lab/models/layout_sums.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace hone {
namespace {

// For the configurable nodes: the weight of the squares of the numbers beside those of the errors.
// Without it assignments that are fewer than layouts would be met exactly, noise included.
constexpr double kShrinkage = 0.01;
constexpr double kLeastPriceDeviation = 1e-5;  // of logarithms of prices: below are roundings
constexpr int kMostSteps = 1000;               // of conjugate gradients
constexpr double kClose = 1e-12;               // of the first residual's square

struct Spread {
  double mean = 0, deviation = 0;
};
template <class Numbers>
Spread spread_of_logs(const Numbers& numbers) {
  double sum = 0, squares = 0;
  for (const auto& each : numbers) {
    const double log = std::log(static_cast<double>(each));
    sum += log;
    squares += log * log;
  }
  const double count = std::max<double>(static_cast<double>(numbers.size()), 1), mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 0.0))};
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

std::vector<float> LayoutSums::layout(const ConfiguredGraph& graph, size_t config,
                                      size_t node) const {
  const size_t columns = graph.configs.names.size();
  const std::span<const float> row = graph.config(config).subspan(node * columns, columns);
  return {row.begin(), row.end()};
}

double LayoutSums::price(const ConfiguredGraph& graph, size_t config) const {
  if (price_factor_ == 0 || graph.besides.priced.empty()) return 0;
  return (std::log(static_cast<double>(graph.besides.priced[config])) - mean_price_) *
         price_factor_;
}

LayoutSums::LayoutSums(const ConfiguredGraph& measured) {
  const ConfiguredGraph graph = merged(measured).graph;
  places_.resize(graph.rows());
  const Spread prices = spread_of_logs(graph.besides.priced);
  mean_price_ = prices.mean;
  price_factor_ = prices.deviation > kLeastPriceDeviation ? 1 / prices.deviation : 0;
  std::vector<Assignment> assignments(graph.times.size());
  const double mean = spread_of_logs(graph.times).mean;
  std::vector<double> right;
  size_t count = 0;
  for (size_t i = 0; i < graph.times.size(); ++i) {
    right.push_back(std::log(graph.times[i]) - mean);
    assignments[i].price = price(graph, i);
    for (size_t node = 0; node < graph.rows(); ++node) {
      const auto [at, is_new] = places_[node].emplace(layout(graph, i, node), count);
      if (is_new) ++count;
      assignments[i].places.push_back(at->second);
    }
  }
  numbers_.resize(count + 1);
  fit(assignments, right);
}

// Solves the least squares by conjugate gradients of the normal equations. X has a row for each
// assignment, of zeros, ones and the price, so that products with it are sums of numbers. Large
// graphs have thousands of unknowns, whose matrix (least_squares.h) would be large.
void LayoutSums::fit(const std::vector<Assignment>& assignments, const std::vector<double>& right) {
  const double shrinkage = kShrinkage * static_cast<double>(places_.size());
  const auto gathered = [&](const std::vector<double>& by_assignment) {
    std::vector<double> sums(numbers_.size());
    for (size_t i = 0; i < assignments.size(); ++i) {
      for (size_t place : assignments[i].places) sums[place] += by_assignment[i];
      sums.back() += assignments[i].price * by_assignment[i];
    }
    return sums;
  };
  const auto applied = [&](const std::vector<double>& x) {
    std::vector<double> sums;
    for (const Assignment& each : assignments) sums.push_back(sum_of(each, x));
    std::vector<double> all = gathered(sums);
    for (size_t i = 0; i < x.size(); ++i) all[i] += shrinkage * x[i];
    return all;
  };
  std::vector<double> residual = gathered(right), direction = residual;
  double square = product(residual, residual);
  const double close = kClose * square;
  for (int step = 0; step < kMostSteps && square > close; ++step) {
    const std::vector<double> image = applied(direction);
    const double along = square / product(direction, image);
    for (size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] += along * direction[i];
      residual[i] -= along * image[i];
    }
    const double next = product(residual, residual);
    for (size_t i = 0; i < numbers_.size(); ++i)
      direction[i] = residual[i] + next / square * direction[i];
    square = next;
  }
}

double LayoutSums::sum_of(const Assignment& assignment, std::span<const double> numbers) {
  double sum = assignment.price * numbers.back();
  for (size_t place : assignment.places) sum += numbers[place];
  return sum;
}

std::vector<double> LayoutSums::scores(const ConfiguredGraph& graph) const {
  HONE_CHECK(graph.rows() == places_.size(), "{} nodes of another graph", graph.rows());
  std::vector<double> scores;
  for (size_t i = 0; i < graph.times.size(); ++i) {
    Assignment assignment = {.places = {}, .price = price(graph, i)};
    for (size_t node = 0; node < places_.size(); ++node)
      if (const auto at = places_[node].find(layout(graph, i, node)); at != places_[node].end())
        assignment.places.push_back(at->second);
    scores.push_back(sum_of(assignment, numbers_));
  }
  return scores;
}

}  // namespace hone
