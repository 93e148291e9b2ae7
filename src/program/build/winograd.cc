#include <array>

#include "base/planted.h"
#include "kernel/algorithms/winograd.h"
#include "program/build/algorithms.h"
#include "program/build/tile_parts.h"

namespace hone {
namespace {

// F(2,3): 2 x 2 points of a feature come from 4 x 4 of each channel by 16 products, where the
// direct way takes 36. First all weights are transformed; then, tile by tile, the data of all
// channels, and for one feature after another the sums over channels, back into four points:
//
//   Y = A^T [sum over channels of (G g G^T) * (B^T d B)] A
class WinogradBuilder {
 public:
  WinogradBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name)
      : graph_(body.graph),
        schedule_(schedule),
        facts_(body),
        dims_(winograd_dims(body, facts_).value()),
        tiles_(name),
        points_(body, tiles_, kernel_place(body, tiles_)),
        at_(facts_.space.dims.size(), 0) {
    wide_ = sum_type(graph_.type(graph_.result(anchor())).dtype());
    const Dim channels = extent(dims_.channels);
    weights_ = tiles_.buffer("weights", Type::get(wide_, {16, channels, extent(dims_.features)}),
                             BufferRole::shared);
    data_ = tiles_.buffer("data", Type::get(wide_, {16, channels}), BufferRole::scratch);
    points_.pin(anchor());
  }

  TileProgram build() && {
    transform_weights();
    if (schedule_.threads > 0)
      loops(0);
    else
      tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { loops(0); });
    return std::move(tiles_).finish();
  }

 private:
  using Scalar = tile::Scalar;
  using Line = std::array<Scalar, 4>;
  using Matrix = std::array<Line, 4>;  // by row
  using Guards = PointBuilder::Guards;

  NodeId anchor() const { return facts_.space.anchor; }
  Dim extent(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].extent; }
  std::string_view name(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].name; }
  IndexExpr& at(int dim) { return at_[static_cast<size_t>(dim)]; }

  Scalar add(Scalar a, Scalar b) { return tiles_.compute(Opcode::add, {a, b}); }
  Scalar sub(Scalar a, Scalar b) { return tiles_.compute(Opcode::sub, {a, b}); }

  // Makes four rows of some, then four columns: M v M^T for the map v -> M v of a line.
  template <class Map>
  Matrix both_ways(const Matrix& from, const Map& map) {
    Matrix half, all;
    for (size_t j = 0; j < 4; ++j) {
      const Line line = map(Line{from[0][j], from[1][j], from[2][j], from[3][j]});
      for (size_t i = 0; i < 4; ++i) half[i][j] = line[i];
    }
    for (size_t i = 0; i < 4; ++i) all[i] = map(half[i]);
    return all;
  }

  // ---- Weights: G g G^T ------------------------------------------------------------------------

  void transform_weights() {
    const Exec exec = schedule_.threads > 0 ? Exec::threads : Exec::loop;
    tiles_.loop(exec, name(dims_.features), extent(dims_.features), [&](const IndexExpr& feature) {
      at(dims_.features) = feature;
      open_loop(tiles_, Exec::loop, name(dims_.channels), extent(dims_.channels),
                [&](const IndexExpr& channel) {
                  at(dims_.channels) = channel;
                  transform_weight();
                });
    });
  }

  void transform_weight() {
    const Scalar half = tiles_.real(wide_, 0.5);
    Matrix weight = {};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 3; ++j) weight[i][j] = factor(1, i, j, {});
    const auto map = [&](const Line& g) {
      const Scalar ends = add(g[0], g[2]);
      const Scalar third = HONE_PLANT(winograd_weight, sub(ends, g[1]), add(ends, g[1]));
      return Line{g[0], tiles_.compute(Opcode::mul, {add(ends, g[1]), half}),
                  tiles_.compute(Opcode::mul, {third, half}), g[2]};
    };
    // The fourth row and column of the weight are not looked at.
    Matrix rows = {};
    for (size_t j = 0; j < 3; ++j) {
      const Line line = map({weight[0][j], weight[1][j], weight[2][j], {}});
      for (size_t i = 0; i < 4; ++i) rows[i][j] = line[i];
    }
    for (size_t i = 0; i < 4; ++i) store(weights_, i, map(rows[i]), {at(dims_.features)});
  }

  void store(tile::BufferId buffer, size_t row, const Line& line,
             const TileBuilder::Indices& further) {
    for (size_t j = 0; j < 4; ++j) {
      TileBuilder::Indices index = {static_cast<int64_t>(4 * row + j), at(dims_.channels)};
      index.insert(index.end(), further.begin(), further.end());
      tiles_.store(buffer, index, line[j]);
    }
  }

  // What the products take from an operand, in the window's row and column.
  Scalar factor(size_t side, size_t row, size_t column, const Guards& gaps) {
    at(dims_.window[0]) = static_cast<int64_t>(row);
    at(dims_.window[1]) = static_cast<int64_t>(column);
    PointBuilder::Indices iters;
    for (const IndexExpr& expr : facts_.contraction->index) iters.push_back(expr.substitute(at_));
    for (int dim = facts_.space.parallel; dim < static_cast<int>(at_.size()); ++dim)
      iters.push_back(at(dim));
    return points_.factor(anchor(), side, iters, {}, gaps);
  }

  // ---- Tiles -----------------------------------------------------------------------------------

  bool is_spatial(int dim) const { return dim == dims_.spatial[0] || dim == dims_.spatial[1]; }
  bool is_odd(int dim) const { return extent(dim).value() % 2 != 0; }

  // Over all dims but the features, which stand last. Of the spatial dims, `at_` is the first point
  // of a tile.
  void loops(size_t depth) {
    if (depth + 1 == schedule_.order.size()) return tile();
    const int dim = schedule_.order[depth];
    const Dim trips = is_spatial(dim) ? Dim((extent(dim).value() + 1) / 2) : extent(dim);
    const auto inside = [&](const IndexExpr& trip) {
      at(dim) = is_spatial(dim) ? trip * 2 : trip;
      loops(depth + 1);
    };
    if (depth < static_cast<size_t>(schedule_.threads))
      tiles_.loop(Exec::threads, name(dim), trips, inside);
    else
      open_loop(tiles_, Exec::loop, name(dim), trips, inside);
  }

  void tile() {
    first_ = {at(dims_.spatial[0]), at(dims_.spatial[1])};
    open_loop(tiles_, Exec::loop, name(dims_.channels), extent(dims_.channels),
              [&](const IndexExpr& channel) {
                at(dims_.channels) = channel;
                transform_data();
              });
    const int feature = dims_.features;
    for (const TilePart& part : tile_parts(extent(feature), tile_of(schedule_.unroll, feature),
                                           tile_of(schedule_.lanes, feature)))
      open_loop(tiles_, Exec::loop, name(feature), part.trips, [&](const IndexExpr& trip) {
        open_loop(tiles_, Exec::unroll, name(feature), part.unroll, [&](const IndexExpr& u) {
          open_loop(tiles_, Exec::lanes, name(feature), part.lanes, [&](const IndexExpr& lane) {
            at(feature) = part.point(trip, u, lane);
            results(part.has_gaps ? Guards{{at(feature), 0, extent(feature)}} : Guards());
          });
        });
      });
  }

  // Sets `at_` to a point of the tile; the guards of points beyond the end of a dim.
  Guards move_to(size_t row, size_t column) {
    Guards gaps;
    const std::array<size_t, 2> by = {row, column};
    for (size_t i = 0; i < 2; ++i) {
      const int dim = dims_.spatial[i];
      at(dim) = first_[i] + IndexExpr(static_cast<int64_t>(by[i]));
      if (by[i] > 0 && is_odd(dim)) gaps.push_back({at(dim), 0, extent(dim)});
    }
    return gaps;
  }

  // B^T d B. The last row and column of the data are those that the second point has last.
  void transform_data() {
    Matrix data;
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 4; ++j) {
        const size_t row = i == 3 ? 1 : 0, column = j == 3 ? 1 : 0;
        const Guards gaps = move_to(row, column);
        data[i][j] = factor(0, i - row, j - column, gaps);
      }
    const Matrix moved = both_ways(data, [&](const Line& d) {
      return Line{sub(d[0], d[2]), add(d[1], d[2]), sub(d[2], d[1]), sub(d[1], d[3])};
    });
    for (size_t i = 0; i < 4; ++i) store(data_, i, moved[i], {});
  }

  // A^T m A, each with the epilogue.
  void results(const Guards& gaps) {
    const std::vector<Scalar> sums = products(gaps);
    const auto map = [&](const Line& m) {
      const Scalar first = add(add(m[0], m[1]), m[2]), inner = sub(m[1], m[2]);
      const Scalar second = HONE_PLANT(winograd_sign, sub(inner, m[3]), add(inner, m[3]));
      return std::array<Scalar, 2>{first, second};
    };
    std::array<Line, 2> half;
    for (size_t j = 0; j < 4; ++j) {
      const auto [first, second] = map({sums[j], sums[4 + j], sums[8 + j], sums[12 + j]});
      half[0][j] = first;
      half[1][j] = second;
    }
    const ValueId value = graph_.result(anchor());
    for (size_t row = 0; row < 2; ++row) {
      const std::array<Scalar, 2> pair = map(half[row]);
      for (size_t column = 0; column < 2; ++column) {
        Guards guards = move_to(row, column);
        guards.insert(guards.end(), gaps.begin(), gaps.end());
        points_.bind(value, tiles_.cast(pair[column], graph_.type(value).dtype()));
        points_.store_outputs({at_.begin(), at_.begin() + facts_.space.parallel}, guards);
      }
    }
  }

  // Of the transformed operands, summed over the channels: sixteen.
  std::vector<Scalar> products(const Guards& gaps) {
    const Scalar zero = tiles_.zero(wide_);
    return tiles_.carry(
        name(dims_.channels), extent(dims_.channels), std::vector(16, zero),
        [&](const IndexExpr& channel, const std::vector<Scalar>& so_far) {
          std::vector<Scalar> next;
          for (int64_t i = 0; i < 16; ++i) {
            const Scalar data = tiles_.load(data_, {i, channel});
            const Scalar weight =
                tiles_.load(weights_, {i, channel, at(dims_.features)}, gaps, zero);
            next.push_back(tiles_.fma(data, weight, so_far[static_cast<size_t>(i)]));
          }
          return next;
        });
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const KernelFacts facts_;
  const WinogradDims dims_;
  TileBuilder tiles_;
  PointBuilder points_;
  std::vector<IndexExpr> at_;                // the point at hand, by the space's dims
  std::array<IndexExpr, 2> first_ = {0, 0};  // of the tile, by spatial dim
  DType wide_ = DType::f32;
  tile::BufferId weights_ = 0, data_ = 0;
};

}  // namespace

Result<TileProgram> build_winograd(const KernelBody& body, const Schedule& schedule,
                                   std::string_view name) {
  return WinogradBuilder(body, schedule, name).build();
}

}  // namespace hone
