#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hone {

// A least squares problem of a few unknowns, by its normal equations:
//
//   LeastSquares problem(2);
//   problem.add(std::array{1.0, 2.0}, 5);  // x + 2 y = 5, as well as may be
//   problem.add(std::array{3.0, 1.0}, 4);
//   problem.solve_non_negative();
class LeastSquares {
 public:
  explicit LeastSquares(size_t unknowns);

  // An equation: as many factors as unknowns, and what they are to add up to. All are finite.
  void add(std::span<const double> row, double right);
  // Uses the active sets of Lawson and Hanson (Solving Least Squares Problems, 1974, chapter 23).
  // An unknown that no equation tells from others stays 0.
  std::vector<double> solve_non_negative() const;
  // The solution may have any sign. Zeros, if equations leave an unknown open.
  std::vector<double> solve() const;

 private:
  double& gram(size_t i, size_t j) { return gram_[i * unknowns_ + j]; }
  double gram(size_t i, size_t j) const { return gram_[i * unknowns_ + j]; }
  std::vector<double> slope(std::span<const double> at) const;
  bool solve(std::span<const size_t> free, std::vector<double>& x) const;
  size_t steepest(std::span<const double> slope, const std::vector<bool>& is_out) const;

  const size_t unknowns_;
  std::vector<double> gram_;   // products of columns
  std::vector<double> right_;  // of columns and right sides
};

}  // namespace hone
