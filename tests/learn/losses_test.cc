#include "learn/losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"
#include "tests/grad/grad_testing.h"

namespace hone::HONE_FILE {
namespace {

using Loss = std::function<Value(Value, Value)>;

Graph graph_of(const Loss& loss, Dims dims, Type target) {
  Builder b("loss");
  const Value y = b.parameter("y", DType::f64, dims);
  const Result<Graph> graph = b.finish({loss(y, b.parameter("target", target))});
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

double value_of(const Loss& loss, std::vector<double> y, std::vector<double> target) {
  const Type type = Type::get(DType::f64, {static_cast<int64_t>(y.size())});
  const Graph graph = graph_of(loss, {static_cast<int64_t>(y.size())}, type);
  return evaluated(graph,
                   std::vector{Tensor::from_reals(type, y), Tensor::from_reals(type, target)})
      .at(0)
      .real_at(0);
}

Value noisy(Value y, Value target) {
  return noisy_pairwise_logistic(y, target, y.builder().full(DType::f64, y.dims(), 0.3));
}
Value weighted(Value y, Value target) {
  return weighted_pairwise_logistic(y, target, y.builder().full(DType::f64, y.dims(), 0.3));
}
Value hinge(Value y, Value target) { return pairwise_hinge(y, target); }

TEST(Losses, AreTheirFormulas) {
  EXPECT_NEAR(value_of(mean_squared_error, {1, 3}, {0, 1}), 2.5, 1e-12);
  EXPECT_NEAR(value_of(log_squared_error, {1, std::exp(3)}, {1, std::exp(1)}), 2, 1e-12);
  // The pairs (0, 1), (0, 2), (2, 1), by margin 1: 1 - 2, 1 - 0.5, 1 - 1.5.
  EXPECT_NEAR(value_of(hinge, {2, 0, 1.5}, {3, 1, 2}), 0.5 / 3, 1e-12);
  EXPECT_NEAR(value_of(pairwise_logistic, {2, 0}, {1, 0}), std::log1p(std::exp(-2)), 1e-12);
  EXPECT_EQ(value_of(pairwise_logistic, {2, 0}, {1, 1}), 0);
  // Among the differences 0.4, 0.1 and 0.5, two are more than 0.3 * sqrt(2).
  EXPECT_NEAR(value_of(noisy, {2, 0, 1}, {0, 0.4, 0.5}), std::log1p(std::exp(1)), 1e-12);
  EXPECT_EQ(value_of(noisy, {2, 0}, {0.1, 0.5}), 0);
  const double one = 1 - 0.3 * std::sqrt(2), two = one + 1;  // of differences, beyond the noise
  const double sum = one * std::log1p(std::exp(2)) + two * std::log1p(std::exp(1)) +
                     one * std::log1p(std::exp(-1));
  EXPECT_NEAR(value_of(weighted, {2, 0, 1}, {0, 1, 2}), sum / (2 * one + two), 1e-12);
  EXPECT_EQ(value_of(weighted, {2, 0}, {0.1, 0.5}), 0);
}

TEST(Losses, ListMleIsTheProbabilityOfTheOrder) {
  const double a = std::exp(0.5), b = std::exp(2), c = std::exp(-1);
  // In the order of targets: c, a, b.
  const double probability = c / (a + b + c) * (a / (a + b));
  EXPECT_NEAR(value_of(list_mle, {0.5, 2, -1}, {2, 1, 3}), -std::log(probability), 1e-12);
  EXPECT_NEAR(value_of(list_mle, {1000, 0}, {0, 1}), 1000, 1e-9);  // finite, if far off
}

TEST(Losses, LambdaRankWeighsPairsByTheChangeOfDcg) {
  const double second = std::log(2) / std::log(3), third = 0.5;
  const double ideal = 3 + second;
  // Scores rank the items 1, 0, 2; gains are 1, 3, 0.
  const auto pair = [&](double gains, double discounts, double difference) {
    return std::abs(gains * discounts) / ideal * std::log1p(std::exp(-difference));
  };
  const double sum =
      pair(3 - 1, 1 - second, 1) + pair(3 - 0, 1 - third, 2) + pair(1 - 0, second - third, 1);
  EXPECT_NEAR(value_of(lambda_rank, {1, 2, 0}, {1, 2, 0}), sum / 3, 1e-12);
}

TEST(Losses, PolicyLossIsClipped) {
  const auto loss = [](Value y, Value advantage) {
    return clipped_policy_loss(y, y.builder().full(DType::f64, y.dims(), 0), advantage);
  };
  EXPECT_NEAR(value_of(loss, {std::log(2), std::log(2)}, {1, -1}), -(1.2 - 2) / 2, 1e-12);
}

// Gradients against differences.
void check(const Loss& loss, Type target, bool is_positive) {
  Rng rng(3);
  const Type type = Type::get(DType::f64, {2, 5});
  const Graph graph = graph_of(loss, {2, 5}, target);
  std::vector<double> y, t;
  for (int i = 0; i < 10; ++i) y.push_back(is_positive ? rng.uniform(0.5, 2) : rng.uniform(-2, 2));
  for (int64_t i = 0; i < target.static_elements(); ++i)
    t.push_back(is_real(target.dtype()) ? rng.uniform(0.5, 2) : static_cast<double>(rng.below(5)));
  const std::vector<Tensor> inputs = {Tensor::from_reals(type, y), Tensor::from_reals(target, t)};
  const Mask first = {true, false};
  const std::vector<Tensor> direction = random_direction(graph, first, 5);
  const Slope slope = measured_slope(graph, 0, inputs, direction);
  ASSERT_TRUE(slope.is_smooth);
  const Result<Graph> derived = grad(graph, 0, first);
  ASSERT_TRUE(derived.ok()) << derived.error().to_string();
  const std::vector<Tensor> values = evaluated(*derived, inputs);
  EXPECT_NEAR(product(std::span(values).subspan(1), direction).value, slope.value,
              1e-6 * std::max(1.0, std::abs(slope.value)));
}

TEST(Losses, HaveTheDerivativesOfDifferences) {
  const Type reals = Type::get(DType::f64, {2, 5});
  check(mean_squared_error, reals, false);
  check(log_squared_error, reals, true);
  check(cross_entropy, Type::get(DType::i64, {2}), false);
  check(hinge, reals, false);
  check(pairwise_logistic, reals, false);
  check(noisy, reals, false);
  check(weighted, reals, false);
  check(lambda_rank, reals, false);
  check(list_mle, reals, false);
}

}  // namespace
}  // namespace hone::HONE_FILE
