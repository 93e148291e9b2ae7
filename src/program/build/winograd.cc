#include <algorithm>
#include <array>

#include "base/planted.h"
#include "kernel/algorithms/winograd.h"
#include "program/build/algorithms.h"
#include "program/build/tile_parts.h"

namespace hone {
namespace {

// Blocks of tiles, in the schedule's order. For each block, part by part of the features, the data
// of all channels are transformed, channels in lanes. Then come panels of features, one after
// another. The sums over channels are register tiles of tiles x features, one product of the tiles
// after another. The transformed sums become the points of the results, each with its epilogue,
// features in lanes.
//
// Weights are transformed already (prepared.h), and padded to whole panels.
class WinogradBuilder {
 public:
  WinogradBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : WinogradBuilder(body, schedule, name, prepared_input(body, schedule).value()) {}

  TileProgram build() && {
    if (schedule_.threads > 0)
      blocks(0);
    else
      tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { blocks(0); });
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
  using Line = std::vector<Scalar>;
  using Guards = PointBuilder::Guards;
  using Map = std::function<Line(const Line&)>;

  WinogradBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name,
                  const PreparedInput& weights)
      : graph_(body.graph),
        schedule_(schedule),
        facts_(body),
        dims_(winograd_dims(body, facts_).value()),
        shape_(dims_, facts_.space, schedule),
        transform_(shape_.points),
        tiles_(name),
        place_(kernel_place(body, tiles_, weights)),
        points_(body, tiles_, place_),
        at_(facts_.space.dims.size(), 0),
        first_(dims_.spatial.size(), 0),
        corner_(dims_.spatial.size(), 0),
        wide_(weights.type.dtype()) {
    weights_ = place_.inputs[weights.parameter].buffer;
    data_ = scratch("data", shape_.tiles * shape_.channels);
    sums_ = scratch("sums", shape_.tiles * shape_.panel());
    points_.pin(anchor());
  }

  // Rows for each product, which lie an odd number of lines apart: at powers of two they would
  // compete for the same places of a cache.
  tile::BufferId scratch(std::string_view name, int64_t numbers) {
    const int64_t line = 64 * 8 / bits(wide_);
    const int64_t lines = (numbers + line - 1) / line | 1;
    return tiles_.buffer(name, Type::get(wide_, {shape_.products, lines * line}),
                         BufferRole::scratch);
  }

  NodeId anchor() const { return facts_.space.anchor; }
  Dim extent(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].extent; }
  std::string_view name(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].name; }
  IndexExpr& at(int dim) { return at_[static_cast<size_t>(dim)]; }
  size_t spatial() const { return dims_.spatial.size(); }

  // ---- Blocks ----------------------------------------------------------------------------------

  // Over all dims but the features, which stand last. `first_` is the first point of a block.
  void blocks(size_t depth) {
    if (depth + 1 == schedule_.order.size()) return parts();
    const int dim = schedule_.order[depth];
    const auto along = std::ranges::find(dims_.spatial, dim) - dims_.spatial.begin();
    const size_t i = static_cast<size_t>(along);
    const bool is_spatial = i < spatial();
    const Dim trips = is_spatial ? Dim(shape_.blocks(i, extent(dim).value())) : extent(dim);
    const auto inside = [&](const IndexExpr& trip) {
      if (is_spatial)
        first_[i] = trip * (shape_.points * shape_.block[i]);
      else
        at(dim) = trip;
      blocks(depth + 1);
    };
    if (depth < static_cast<size_t>(schedule_.threads))
      tiles_.loop(Exec::threads, name(dim), trips, inside);
    else
      open_loop(tiles_, Exec::loop, name(dim), trips, inside);
  }

  void parts() {
    const bool are_divided = static_cast<size_t>(schedule_.threads) == schedule_.order.size();
    const auto inside = [&](const IndexExpr& part) {
      part_ = part;
      data_of_part();
      features_of_part();
    };
    if (are_divided)
      tiles_.loop(Exec::threads, "part", shape_.parts, inside);
    else
      open_loop(tiles_, Exec::loop, "part", shape_.parts, inside);
  }

  void data_of_part() {
    // It decides where the channels are.
    at(dims_.features) = HONE_PLANT(winograd_group, part_ * shape_.features, 0);
    for (const TilePart& part : tile_parts(shape_.channels, 1, shape_.lanes))
      open_loop(tiles_, Exec::loop, name(dims_.channels), part.trips, [&](const IndexExpr& trip) {
        each_tile(0, 0, [&](const IndexExpr& tile) {
          open_loop(tiles_, Exec::lanes, name(dims_.channels), part.lanes,
                    [&](const IndexExpr& lane) {
                      at(dims_.channels) = part.point(trip, 0, lane);
                      transform_data(tile, part.has_gaps);
                    });
        });
      });
  }

  void features_of_part() {
    // The last panel may have fewer vectors.
    for (const TilePart& part : tile_parts(shape_.features, shape_.vectors, shape_.lanes))
      open_loop(tiles_, Exec::loop, name(dims_.features), part.trips, [&](const IndexExpr& trip) {
        const IndexExpr panel = trip + IndexExpr(part.first.value() / shape_.panel());
        products(part_ * shape_.panels() + panel, part.unroll);
        results(panel, part);
      });
  }

  // Sets `corner_` to the first point of each tile of the block; `tile` counts them.
  void each_tile(size_t i, const IndexExpr& tile,
                 const std::function<void(const IndexExpr&)>& body) {
    if (i == spatial()) return body(tile);
    open_loop(
        tiles_, Exec::loop, name(dims_.spatial[i]), shape_.block[i], [&](const IndexExpr& trip) {
          corner_[i] = first_[i] + trip * shape_.points;
          each_tile(i + 1, HONE_PLANT(winograd_tile, tile * shape_.block[i], tile) + trip, body);
        });
  }

  // True if any tile has the point: that of a short dim may be larger than the dim.
  bool exists(std::span<const size_t> point) const {
    for (size_t i = 0; i < spatial(); ++i)
      if (static_cast<int64_t>(point[i]) >= extent(dims_.spatial[i]).value()) return false;
    return true;
  }

  // Sets `at_` to a point of the tile; the guards of points beyond the end of a dim.
  Guards move_to(std::span<const size_t> point) {
    Guards gaps;
    for (size_t i = 0; i < spatial(); ++i) {
      const int dim = dims_.spatial[i];
      const int64_t results = extent(dim).value(), side = shape_.points * shape_.block[i];
      at(dim) = corner_[i] + IndexExpr(static_cast<int64_t>(point[i]));
      if (shape_.blocks(i, results) * side > results) gaps.push_back({at(dim), 0, extent(dim)});
    }
    return gaps;
  }

  // ---- Transforms -------------------------------------------------------------------------------

  Scalar sum(Scalar a, Scalar b) { return tiles_.compute(Opcode::add, {a, b}); }
  Scalar difference(Scalar a, Scalar b) { return tiles_.compute(Opcode::sub, {a, b}); }

  // The sum of multiples of numbers.
  using Multiples = std::vector<std::pair<double, Scalar>>;
  Scalar combined(Multiples terms) {
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
  Scalar half_of_row(const std::vector<double>& row, const Line& line, size_t rest) {
    Multiples terms;
    for (size_t k = rest; k < row.size(); k += 2) terms.emplace_back(row[k], line[k]);
    return combined(std::move(terms));
  }

  // B^T d. The rows of p and -p share their even and odd parts.
  Line transformed_data(const Line& d) {
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
  Line transformed_sums(const Line& m) {
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
  Line along_all(Line now, size_t side, const Map& map) {
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

  // Calls f for each index of `side` numbers along each spatial dim, in row-major order.
  template <class F>
  void each_index(size_t side, const F& f) {
    std::array<size_t, 2> index = {};
    const std::span<const size_t> all(index.data(), spatial());
    for (index[0] = 0; index[0] < side; ++index[0]) {
      if (spatial() == 1) {
        f(all);
        continue;
      }
      for (index[1] = 0; index[1] < side; ++index[1]) f(all);
    }
  }

  // The first two numbers of a tile's data are the first two of its first point's window, the
  // others the last of the windows of one point after another.
  void transform_data(const IndexExpr& tile, bool has_gaps) {
    const Guard channels = {at(dims_.channels), 0, extent(dims_.channels)};
    const auto side = static_cast<size_t>(transform_.products());
    constexpr size_t kLast = kWinogradWindow - 1;
    Line data;
    each_index(side, [&](std::span<const size_t> index) {
      std::vector<size_t> point;
      for (size_t i : index) point.push_back(i < kLast ? 0 : i - kLast);
      if (!exists(point)) return data.push_back(points_.zero(wide_));
      Guards gaps = move_to(point);
      if (has_gaps) gaps.push_back(channels);
      for (size_t i = 0; i < spatial(); ++i)
        at(dims_.window[i]) = static_cast<int64_t>(index[i] - point[i]);
      data.push_back(data_at_hand(gaps));
    });
    const Line products = along_all(data, side, [&](const Line& d) { return transformed_data(d); });
    for (size_t p = 0; p < products.size(); ++p)
      tiles_.store(data_, {static_cast<int64_t>(p), data_index(tile)}, products[p],
                   has_gaps ? Guards{channels} : Guards());
  }
  IndexExpr data_index(const IndexExpr& tile) {
    return tile * shape_.channels + at(dims_.channels);
  }

  Scalar data_at_hand(const Guards& gaps) {
    PointBuilder::Indices iters;
    for (const IndexExpr& expr : facts_.contraction->index) iters.push_back(expr.substitute(at_));
    for (int dim = facts_.space.parallel; dim < static_cast<int>(at_.size()); ++dim)
      iters.push_back(at(dim));
    return points_.factor(anchor(), 0, iters, {}, gaps);
  }

  // ---- Products --------------------------------------------------------------------------------

  // `panel`: of all parts.
  void products(const IndexExpr& panel, int64_t vectors) {
    tiles_.loop(Exec::loop, "p", shape_.products, [&](const IndexExpr& product) {
      for (const TilePart& part : tile_parts(shape_.tiles, shape_.rows, 1))
        open_loop(tiles_, Exec::loop, "t", part.trips, [&](const IndexExpr& trip) {
          open_loop(tiles_, Exec::unroll, "t", part.unroll, [&](const IndexExpr& u) {
            each_of_panel(Exec::unroll, vectors, [&](const IndexExpr& feature) {
              sum_of_products(panel, product, part.point(trip, u, 0), feature);
            });
          });
        });
    });
  }

  // `exec`: how the vectors of a panel follow each other.
  void each_of_panel(Exec exec, int64_t vectors,
                     const std::function<void(const IndexExpr&)>& body) {
    const std::string_view features = name(dims_.features);
    open_loop(tiles_, exec, features, vectors, [&](const IndexExpr& vector) {
      open_loop(tiles_, Exec::lanes, features, shape_.lanes,
                [&](const IndexExpr& lane) { body(vector * shape_.lanes + lane); });
    });
  }

  void sum_of_products(const IndexExpr& panel, const IndexExpr& product, const IndexExpr& tile,
                       const IndexExpr& feature) {
    const int channels = dims_.channels;
    const Scalar sum = open_carry(
        tiles_, Exec::loop, name(channels), extent(channels), points_.zero(wide_), Opcode::add,
        [&](const IndexExpr& channel, Scalar so_far) {
          at(channels) = channel;
          const Scalar data = tiles_.load(data_, {product, data_index(tile)});
          const Scalar weight = tiles_.load(weights_, {panel, product, channel, feature});
          return tiles_.fma(data, weight, so_far);
        });
    tiles_.store(sums_, {product, tile * shape_.panel() + feature}, sum);
  }

  // `panel`: of the part at hand.
  void results(const IndexExpr& panel, const TilePart& part) {
    const ValueId value = graph_.result(anchor());
    const int features = dims_.features;
    each_tile(0, 0, [&](const IndexExpr& tile) {
      each_of_panel(Exec::loop, part.unroll, [&](const IndexExpr& feature) {
        Line sums;
        for (int64_t p = 0; p < shape_.products; ++p)
          sums.push_back(tiles_.load(sums_, {p, tile * shape_.panel() + feature}));
        const Line points = along_all(sums, static_cast<size_t>(transform_.products()),
                                      [&](const Line& m) { return transformed_sums(m); });
        const IndexExpr in_part = panel * shape_.panel() + feature;
        at(features) = part_ * shape_.features + in_part;
        auto next = points.begin();
        each_index(static_cast<size_t>(shape_.points), [&](std::span<const size_t> index) {
          const Scalar number = *next++;
          if (!exists(index)) return;
          Guards guards = move_to(index);
          if (part.has_gaps) guards.push_back({in_part, 0, shape_.features});
          points_.bind(value, number);
          points_.store_outputs({at_.begin(), at_.begin() + facts_.space.parallel}, guards);
        });
      });
    });
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const KernelFacts facts_;
  const WinogradDims dims_;
  const WinogradShape shape_;
  const WinogradTransform transform_;
  TileBuilder tiles_;
  const StagePlace place_;
  PointBuilder points_;
  std::vector<IndexExpr> at_;      // the point at hand, by the space's dims
  std::vector<IndexExpr> first_;   // point of the block at hand, by spatial dim
  std::vector<IndexExpr> corner_;  // the first point of the tile at hand
  IndexExpr part_ = 0;             // the one at hand
  DType wide_;                     // of sums and transformed numbers
  tile::BufferId weights_ = 0, data_ = 0, sums_ = 0;
};

}  // namespace

Result<TileProgram> build_winograd(const KernelBody& body, const Schedule& schedule,
                                   std::string_view name) {
  return WinogradBuilder(body, schedule, name).build();
}

}  // namespace hone
