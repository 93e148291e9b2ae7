#include "learn/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace hone {
namespace {

constexpr double kDependent = 1e-12;  // of a column's square: what is left of one that others give

}  // namespace

LeastSquares::LeastSquares(size_t unknowns)
    : unknowns_(unknowns), gram_(unknowns * unknowns), right_(unknowns) {}

void LeastSquares::add(std::span<const double> row, double right) {
  HONE_CHECK(row.size() == unknowns_, "{} factors of {} unknowns", row.size(), unknowns_);
  for (size_t i = 0; i < unknowns_; ++i) {
    right_[i] += row[i] * right;
    for (size_t j = 0; j < unknowns_; ++j) gram(i, j) += row[i] * row[j];
  }
}

// How fast the squares fall along each unknown.
std::vector<double> LeastSquares::slope(std::span<const double> at) const {
  std::vector<double> slope = right_;
  for (size_t i = 0; i < unknowns_; ++i)
    for (size_t j = 0; j < unknowns_; ++j) slope[i] -= gram(i, j) * at[j];
  return slope;
}

// The least squares with all but the free unknowns 0, by Cholesky's factors. False: one of the free
// ones cannot be told from those before.
bool LeastSquares::solve(std::span<const size_t> free, std::vector<double>& x) const {
  const size_t n = free.size();
  std::vector<double> factor(n * n), y(n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = gram(free[i], free[j]);
      for (size_t k = 0; k < j; ++k) sum -= factor[i * n + k] * factor[j * n + k];
      if (i == j && !(sum > kDependent * gram(free[i], free[i]))) return false;
      factor[i * n + j] = i == j ? std::sqrt(sum) : sum / factor[j * n + j];
    }
    y[i] = right_[free[i]];
    for (size_t k = 0; k < i; ++k) y[i] -= factor[i * n + k] * y[k];
    y[i] /= factor[i * n + i];
  }
  std::ranges::fill(x, 0.0);
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) y[i] -= factor[k * n + i] * y[k];
    y[i] /= factor[i * n + i];
    x[free[i]] = y[i];
  }
  return true;
}

// The unknown that is worth freeing most; their number: none is.
size_t LeastSquares::steepest(std::span<const double> slope,
                              const std::vector<bool>& is_out) const {
  size_t best = unknowns_;
  double most = 0;
  for (size_t j = 0; j < unknowns_; ++j) {
    const double size = std::sqrt(gram(j, j));
    if (is_out[j] || !(size > 0) || slope[j] <= 1e-12 * std::abs(right_[j])) continue;
    if (slope[j] / size > most) best = j, most = slope[j] / size;
  }
  return best;
}

std::vector<double> LeastSquares::solve() const {
  std::vector<size_t> all(unknowns_);
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<double> x(unknowns_);
  solve(all, x);
  return x;
}

std::vector<double> LeastSquares::solve_non_negative() const {
  std::vector<double> x(unknowns_), next(unknowns_);
  std::vector<size_t> free;
  std::vector<bool> is_out(unknowns_);  // free already, or not to be told from those that are
  // Each round lowers the squares; the bound is for rounding alone.
  for (size_t round = 0; round < 10 * unknowns_; ++round) {
    const size_t best = steepest(slope(x), is_out);
    if (best == unknowns_) break;
    is_out[best] = true;
    free.push_back(best);
    if (!solve(free, next)) {
      free.pop_back();
      continue;
    }
    while (std::ranges::any_of(free, [&](size_t j) { return next[j] <= 0; })) {
      // As far as all stay positive; who meets 0 first is not free any more.
      double share = 1;
      for (size_t j : free)
        if (next[j] <= 0) share = std::min(share, x[j] / (x[j] - next[j]));
      if (!std::isfinite(share)) share = 0;
      std::erase_if(free, [&](size_t j) {
        const bool is_last = next[j] <= 0 && x[j] + share * (next[j] - x[j]) <= 1e-14;
        x[j] = is_last ? 0 : x[j] + share * (next[j] - x[j]);
        if (is_last && j != best) is_out[j] = false;
        return is_last;
      });
      if (!solve(free, next)) return x;
    }
    x = next;
  }
  return x;
}

}  // namespace hone
