#include "learn/least_squares.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

TEST(LeastSquares, SolvesEquationsThatHavePositiveSolutions) {
  LeastSquares problem(2);
  problem.add(std::array{1.0, 2.0}, 5);
  problem.add(std::array{3.0, 1.0}, 5);
  const std::vector<double> x = problem.solve_non_negative();
  EXPECT_NEAR(x[0], 1, 1e-9);
  EXPECT_NEAR(x[1], 2, 1e-9);
}

TEST(LeastSquares, SolvesForUnknownsOfAnySign) {
  LeastSquares problem(2);
  problem.add(std::array{1.0, 2.0}, -3);
  problem.add(std::array{3.0, 1.0}, 1);
  EXPECT_NEAR(problem.solve()[0], 1, 1e-9);
  EXPECT_NEAR(problem.solve()[1], -2, 1e-9);
  LeastSquares open(2);
  open.add(std::array{1.0, 0.0}, 1);
  EXPECT_EQ(open.solve(), (std::vector<double>{0, 0}));
}

// x - y = 1 and y = -1 ask for y < 0; with y = 0, x is 1.
TEST(LeastSquares, KeepsAtZeroWhatWouldBeNegative) {
  LeastSquares problem(2);
  problem.add(std::array{1.0, -1.0}, 1);
  problem.add(std::array{0.0, 1.0}, -1);
  const std::vector<double> x = problem.solve_non_negative();
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_EQ(x[1], 0);
}

TEST(LeastSquares, LeavesWhatNoEquationTellsApartAtZero) {
  LeastSquares problem(3);
  problem.add(std::array{1.0, 1.0, 0.0}, 4);
  const std::vector<double> x = problem.solve_non_negative();
  EXPECT_NEAR(x[0] + x[1], 4, 1e-9);
  EXPECT_TRUE(x[0] == 0 || x[1] == 0);
  EXPECT_EQ(x[2], 0);
}

TEST(LeastSquares, IsZeroWithoutEquations) {
  EXPECT_EQ(LeastSquares(2).solve_non_negative(), (std::vector<double>{0, 0}));
}

// The conditions of Karush, Kuhn and Tucker: no unknown has a slope down that it may follow.
TEST(LeastSquares, EndsWhereNothingIsLower) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const size_t n = 1 + rng.below(12), m = 1 + rng.below(30);
    std::vector<std::vector<double>> rows(m, std::vector<double>(n));
    std::vector<double> right(m);
    LeastSquares problem(n);
    for (size_t i = 0; i < m; ++i) {
      for (double& each : rows[i]) each = rng.normal();
      right[i] = rng.normal();
      problem.add(rows[i], right[i]);
    }
    const std::vector<double> x = problem.solve_non_negative();
    for (size_t j = 0; j < n; ++j) {
      double slope = 0;
      for (size_t i = 0; i < m; ++i) {
        double left = right[i];
        for (size_t k = 0; k < n; ++k) left -= rows[i][k] * x[k];
        slope += rows[i][j] * left;
      }
      EXPECT_GE(x[j], 0);
      EXPECT_LT(slope, 1e-6) << "round " << round;
      if (x[j] > 0) EXPECT_GT(slope, -1e-6) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
