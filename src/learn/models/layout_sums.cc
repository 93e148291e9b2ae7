#include "learn/models/layout_sums.h"

#include <cmath>
#include <numeric>

namespace hone {
namespace {

// Of the configurable nodes: the weight of the squares of the numbers beside those of the errors.
// Without it assignments that are fewer than layouts would be met exactly, noise included.
constexpr double kShrinkage = 0.01;
constexpr int kMostSteps = 1000;  // of conjugate gradients
constexpr double kClose = 1e-12;  // of the first residual's square

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

LayoutSums::LayoutSums(const ConfiguredGraph& measured) {
  const ConfiguredGraph graph = merged(measured).graph;
  places_.resize(graph.rows());
  std::vector<Places> assignments(graph.times.size());
  std::vector<double> logs;
  size_t count = 0;
  for (size_t i = 0; i < graph.times.size(); ++i) {
    logs.push_back(std::log(graph.times[i]));
    for (size_t node = 0; node < graph.rows(); ++node) {
      const auto [at, is_new] = places_[node].emplace(layout(graph, i, node), count);
      if (is_new) ++count;
      assignments[i].push_back(at->second);
    }
  }
  const double mean =
      std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  for (double& each : logs) each -= mean;
  numbers_.resize(count);
  fit(assignments, std::move(logs));
}

// The least squares by conjugate gradients of the normal equations: X has a row of zeros and ones
// for each assignment, so that products with it are sums of numbers.
void LayoutSums::fit(const std::vector<Places>& assignments, std::vector<double> right) {
  const double shrinkage = kShrinkage * static_cast<double>(places_.size());
  const auto gathered = [&](const std::vector<double>& by_assignment) {
    std::vector<double> sums(numbers_.size());
    for (size_t i = 0; i < assignments.size(); ++i)
      for (size_t place : assignments[i]) sums[place] += by_assignment[i];
    return sums;
  };
  const auto applied = [&](const std::vector<double>& x) {
    std::vector<double> sums;
    for (const Places& places : assignments) {
      double& sum = sums.emplace_back(0);
      for (size_t place : places) sum += x[place];
    }
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

std::vector<double> LayoutSums::scores(const ConfiguredGraph& graph) const {
  std::vector<double> scores(graph.times.size());
  for (size_t i = 0; i < scores.size(); ++i)
    for (size_t node = 0; node < places_.size(); ++node)
      if (const auto at = places_[node].find(layout(graph, i, node)); at != places_[node].end())
        scores[i] += numbers_[at->second];
  return scores;
}

}  // namespace hone
