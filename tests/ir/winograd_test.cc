#include "ir/winograd.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

// The sums of windows over n + 2 numbers, in the way of the transforms.
std::vector<double> by_products(const WinogradTransform& t, const std::vector<double>& weights,
                                const std::vector<double>& data) {
  const std::vector<double> matrix = weights_matrix(t, 1);
  std::vector<double> g, sums;
  for (size_t row = 0; row < matrix.size(); row += weights.size())
    g.push_back(std::inner_product(weights.begin(), weights.end(), &matrix[row], 0.0));
  for (const std::vector<double>& row : t.results) {
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) {
      double moved = 0;
      for (size_t k = 0; k < data.size(); ++k) moved += t.data[i][k] * data[k];
      sum += row[i] * g[i] * moved;
    }
    sums.push_back(sum);
  }
  return sums;
}

TEST(WinogradTransforms, ComputeSumsOverWindows) {
  Rng rng(1);
  for (int64_t points : kWinogradPoints) {
    const WinogradTransform t(points);
    for (int round = 0; round < 20; ++round) {
      std::vector<double> weights(3), data(static_cast<size_t>(t.products()));
      for (double& each : weights) each = rng.normal();
      for (double& each : data) each = rng.normal();
      const std::vector<double> sums = by_products(t, weights, data);
      ASSERT_EQ(sums.size(), static_cast<size_t>(points));
      for (size_t i = 0; i < sums.size(); ++i)
        EXPECT_NEAR(sums[i],
                    weights[0] * data[i] + weights[1] * data[i + 1] + weights[2] * data[i + 2],
                    1e-13);
    }
  }
}

TEST(WinogradTransforms, AreMadeAlongEachDimInTurn) {
  const WinogradTransform t(2);
  const std::vector<double> all = weights_matrix(t, 2);
  ASSERT_EQ(all.size(), 16U * 9);
  for (size_t i = 0; i < 4; ++i)
    for (size_t j = 0; j < 4; ++j)
      EXPECT_EQ(all[9 * (4 * i + j) + 5], t.weights[i][1] * t.weights[j][2]) << i << " " << j;
}

Tensor weights(int64_t features, int64_t channels, const std::function<double(size_t)>& number) {
  std::vector<double> all(static_cast<size_t>(features * channels * 9));
  for (size_t i = 0; i < all.size(); ++i) all[i] = number(i);
  return Tensor::from_reals(Type::get(DType::f32, {features, channels, 3, 3}), all);
}

constexpr int64_t kAll[] = {0, 1, 2, 3, 4, 5, 6, 7};

double loss(int64_t points, const Tensor& tensor, int64_t features) {
  const WinogradWindows windows(tensor, {0, 1, {2, 3}});
  return winograd_loss(WinogradTransform(points), windows,
                       std::span(kAll).first(static_cast<size_t>(features)));
}

// Measured, with data of mean 0 and 64 channels: 0.6 and 1.9 times the errors of plain f32.
TEST(WinogradLoss, IsAsMeasuredForRandomWeights) {
  Rng rng(2);
  const Tensor all = weights(8, 64, [&](size_t) { return rng.normal(); });
  EXPECT_NEAR(loss(2, all, 8), 0.6, 0.2);
  EXPECT_NEAR(loss(4, all, 8), 1.9, 0.4);
}

int64_t permitted(const Tensor& tensor) {
  return winograd_points(tensor, parse_conv_order("", 2).value());
}

TEST(WinogradLoss, DecidesWhatWeightsPermit) {
  Rng rng(3);
  EXPECT_EQ(permitted(weights(8, 16, [&](size_t) { return rng.normal(); })), 4);
  // With eight channels those windows lose most whose products are large and cancel each other.
  // Sums of fewer channels are exact more often without transforms, so less is permitted to them.
  double worst = 0, least = 1e9;
  int refused_to_few = 0;
  for (int signs = 0; signs < 512; ++signs) {
    const auto sign = [&](size_t i) { return (signs >> i % 9 & 1) != 0 ? 1.0 : -1.0; };
    const double lost = loss(4, weights(1, 8, sign), 1);
    worst = std::max(worst, lost);
    least = std::min(least, lost);
    EXPECT_EQ(permitted(weights(1, 8, sign)) == 4, lost <= 2.5) << lost;
    const double of_few = loss(4, weights(1, 7, sign), 1);
    EXPECT_EQ(permitted(weights(1, 7, sign)) == 4, of_few <= 1.6) << of_few;
    refused_to_few += static_cast<int>(of_few > 1.6 && of_few <= 2.5);
  }
  EXPECT_LT(least, 2.5);
  EXPECT_GT(worst, 1.3 * least);
  EXPECT_GT(refused_to_few, 0);
  // One channel has nine products, of which plain f32 loses next to nothing.
  const Tensor single = weights(8, 1, [&](size_t) { return rng.normal(); });
  EXPECT_GT(loss(2, single, 8), 1.6);
  EXPECT_EQ(permitted(single), 0);
}

TEST(WinogradLoss, LooksAtTheFeaturesWithTheLargestWeights) {
  // All channels but one of 40 features are 0; one feature of the middle is larger.
  const auto number = [](size_t i) {
    const size_t feature = i / (4 * 9), channel = i / 9 % 4;
    if (feature != 21) return channel == 0 ? 1e-3 : 0.0;
    return i % 9 % 2 == 0 ? 1.0 : -1.0;
  };
  const Tensor all = weights(40, 4, number);
  const Tensor one = weights(1, 4, [&](size_t i) { return number(i + size_t{21 * 4 * 9}); });
  EXPECT_EQ(permitted(all), permitted(one));
}

TEST(WinogradLoss, PermitsNothingToOtherWindowsAndExtremeWeights) {
  for (double extreme : {double{INFINITY}, -double{INFINITY}, double{NAN}, 3e38, 1e30})
    EXPECT_EQ(permitted(weights(8, 16, [=](size_t i) { return i == 300 ? extreme : 1; })), 0)
        << extreme;
  EXPECT_EQ(permitted(Tensor::zeros(Type::get(DType::f32, {4, 4, 5, 5}))), 0);
  EXPECT_EQ(permitted(Tensor::zeros(Type::get(DType::i32, {4, 4, 3, 3}))), 0);
  EXPECT_EQ(permitted(Tensor::zeros(Type::get(DType::f32, {0, 4, 3, 3}))), 0);
}

}  // namespace
}  // namespace hone::HONE_FILE
