#include "program/build/winograd_tile.h"

#include <algorithm>

#include "base/planted.h"

namespace hone {

WinogradTile::WinogradTile(const KernelFacts& facts, const WinogradDims& dims, int64_t points,
                           std::vector<int64_t> covered, DType wide, TileBuilder& tiles,
                           PointBuilder& builder)
    : facts_(facts),
      dims_(dims),
      transform_(points),
      covered_(std::move(covered)),
      wide_(wide),
      tiles_(tiles),
      points_(builder),
      at_(facts.space.dims.size(), 0),
      corner_(dims.spatial.size(), 0) {}

// ---- Points -------------------------------------------------------------------------------------

// True if any tile has the point: that of a short dim may be larger than the dim.
bool WinogradTile::exists(std::span<const size_t> point) const {
  for (size_t i = 0; i < spatial(); ++i)
    if (static_cast<int64_t>(point[i]) >= extent(dims_.spatial[i]).value()) return false;
  return true;
}

// Sets `at_` to a point of the tile; the guards of points beyond the end of a dim.
WinogradTile::Guards WinogradTile::move_to(std::span<const size_t> point) {
  Guards gaps;
  for (size_t i = 0; i < spatial(); ++i) {
    const int dim = dims_.spatial[i];
    at(dim) = corner_[i] + IndexExpr(static_cast<int64_t>(point[i]));
    if (covered_[i] > extent(dim).value()) gaps.push_back({at(dim), 0, extent(dim)});
  }
  return gaps;
}

// Calls f for each index of `side` numbers along each spatial dim, in row-major order.
void WinogradTile::each_index(int64_t side,
                              const std::function<void(std::span<const size_t>)>& f) const {
  const auto count = static_cast<size_t>(side);
  std::array<size_t, 2> index = {};
  const std::span<const size_t> all(index.data(), spatial());
  for (index[0] = 0; index[0] < count; ++index[0]) {
    if (spatial() == 1) {
      f(all);
      continue;
    }
    for (index[1] = 0; index[1] < count; ++index[1]) f(all);
  }
}

// The first two numbers of a tile's data are the first two of its first point's window, the
// others the last of the windows of one point after another.
WinogradTile::Line WinogradTile::data(const Guards& guards) {
  constexpr size_t kLast = kWinogradWindow - 1;
  Line all;
  each_index(transform_.products(), [&](std::span<const size_t> index) {
    std::vector<size_t> point;
    for (size_t i : index) point.push_back(i < kLast ? 0 : i - kLast);
    if (!exists(point)) return all.push_back(points_.zero(wide_));
    Guards gaps = move_to(point);
    gaps.insert(gaps.end(), guards.begin(), guards.end());
    for (size_t i = 0; i < spatial(); ++i)
      at(dims_.window[i]) = static_cast<int64_t>(index[i] - point[i]);
    all.push_back(data_at_hand(gaps));
  });
  return along_all(std::move(all), [&](const Line& d) { return transformed_data(d); });
}

WinogradTile::Scalar WinogradTile::data_at_hand(const Guards& gaps) {
  PointBuilder::Indices iters;
  for (const IndexExpr& expr : facts_.contraction->index) iters.push_back(expr.substitute(at_));
  for (int dim = facts_.space.parallel; dim < static_cast<int>(at_.size()); ++dim)
    iters.push_back(at(dim));
  return points_.factor(anchor(), 0, iters, {}, gaps);
}

void WinogradTile::store_results(const Line& sums, const Guards& guards) {
  const ValueId value = facts_.body.graph.result(anchor());
  const Line all = along_all(sums, [&](const Line& m) { return transformed_sums(m); });
  auto next = all.begin();
  each_index(transform_.points, [&](std::span<const size_t> index) {
    const Scalar number = *next++;
    if (!exists(index)) return;
    Guards gaps = move_to(index);
    gaps.insert(gaps.end(), guards.begin(), guards.end());
    points_.bind(value, number);
    points_.store_outputs({at_.begin(), at_.begin() + facts_.space.parallel}, gaps);
  });
}

// ---- Transforms ---------------------------------------------------------------------------------

// The sum of multiples of numbers.
WinogradTile::Scalar WinogradTile::combined(Multiples terms) {
  const auto one = std::ranges::find(terms, 1, &Multiples::value_type::first);
  if (one != terms.end()) std::rotate(terms.begin(), one, one + 1);
  std::optional<Scalar> so_far;
  for (const auto& [factor, number] : terms) {
    if (factor == 0) continue;
    if (!so_far)
      so_far = factor == 1 ? number
                           : tiles_.compute(Opcode::mul, {number, points_.number(wide_, factor)});
    else if (factor == 1)
      so_far = sum(*so_far, number);
    else if (factor == -1)
      so_far = difference(*so_far, number);
    else
      so_far = tiles_.fma(number, points_.number(wide_, factor), *so_far);
  }
  return *so_far;
}

// The columns of a row whose numbers leave the rest when they are divided by 2.
WinogradTile::Scalar WinogradTile::half_of_row(const std::vector<double>& row, const Line& line,
                                               size_t rest) {
  Multiples terms;
  for (size_t k = rest; k < row.size(); k += 2) terms.emplace_back(row[k], line[k]);
  return combined(std::move(terms));
}

// B^T d. The rows of p and -p share their even and odd parts.
WinogradTile::Line WinogradTile::transformed_data(const Line& d) {
  const WinogradTransform::Matrix& rows = transform_.data;
  Line all = {half_of_row(rows[0], d, 0)};
  for (size_t p = 0; p < transform_.pairs.size(); ++p) {
    const Scalar even = half_of_row(rows[2 * p + 1], d, 0);
    const Scalar odd = half_of_row(rows[2 * p + 1], d, 1);
    all.push_back(sum(even, odd));
    all.push_back(difference(even, odd));
  }
  all.push_back(half_of_row(rows.back(), d, 1));
  return all;
}

// A^T m. Even powers of p and -p are equal, odd ones opposite.
WinogradTile::Line WinogradTile::transformed_sums(const Line& m) {
  Line even, odd;
  for (size_t p = 0; p < transform_.pairs.size(); ++p) {
    even.push_back(sum(m[2 * p + 1], m[2 * p + 2]));
    odd.push_back(difference(m[2 * p + 1], m[2 * p + 2]));
  }
  Line all;
  for (size_t k = 0; k < transform_.results.size(); ++k) {
    const std::vector<double>& row = transform_.results[k];
    Multiples terms = {{row[0], m[0]}, {HONE_PLANT(winograd_sign, 1, -1) * row.back(), m.back()}};
    for (size_t p = 0; p < transform_.pairs.size(); ++p)
      terms.emplace_back(row[2 * p + 1], k % 2 == 0 ? even[p] : odd[p]);
    all.push_back(combined(std::move(terms)));
  }
  return all;
}

// Maps the lines along each dim in turn; `side` numbers along each become what `map` gives.
WinogradTile::Line WinogradTile::along_all(Line now, const Map& map) {
  const auto side = static_cast<size_t>(transform_.products());
  for (size_t dim = 0; dim < spatial(); ++dim) {
    const size_t rest = now.size() / side;
    Line next;
    // The first dim is taken away, and comes back as the last one.
    for (size_t r = 0; r < rest; ++r) {
      Line line;
      for (size_t k = 0; k < side; ++k) line.push_back(now[k * rest + r]);
      const Line mapped = map(line);
      next.insert(next.end(), mapped.begin(), mapped.end());
    }
    now = std::move(next);
  }
  return now;
}

}  // namespace hone
