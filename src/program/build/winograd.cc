#include <algorithm>

#include "base/planted.h"
#include "kernel/algorithms/winograd.h"
#include "program/build/algorithms.h"
#include "program/build/tile_parts.h"
#include "program/build/winograd_tile.h"

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
  using Line = WinogradTile::Line;
  using Guards = PointBuilder::Guards;

  WinogradBuilder(const KernelBody& body, const Schedule& schedule, std::string_view name,
                  const PreparedInput& weights)
      : schedule_(schedule),
        facts_(body),
        dims_(winograd_dims(body, facts_).value()),
        shape_(dims_, facts_.space, schedule),
        tiles_(name),
        place_(kernel_place(body, tiles_, weights)),
        points_(body, tiles_, place_),
        first_(dims_.spatial.size(), 0),
        wide_(weights.type.dtype()),
        tile_(facts_, dims_, shape_.points, covered(), wide_, tiles_, points_) {
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

  std::vector<int64_t> covered() const {
    std::vector<int64_t> all;
    for (size_t i = 0; i < spatial(); ++i) {
      const int64_t results = extent(dims_.spatial[i]).value();
      all.push_back(shape_.blocks(i, results) * shape_.points * shape_.block[i]);
    }
    return all;
  }
  NodeId anchor() const { return facts_.space.anchor; }
  Dim extent(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].extent; }
  std::string_view name(int dim) const { return facts_.space.dims[static_cast<size_t>(dim)].name; }
  IndexExpr& at(int dim) { return tile_.at(dim); }
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

  // Sets the corner to the first point of each tile of the block; `tile` counts them.
  void each_tile(size_t i, const IndexExpr& tile,
                 const std::function<void(const IndexExpr&)>& body) {
    if (i == spatial()) return body(tile);
    open_loop(
        tiles_, Exec::loop, name(dims_.spatial[i]), shape_.block[i], [&](const IndexExpr& trip) {
          tile_.corner(i) = first_[i] + trip * shape_.points;
          each_tile(i + 1, HONE_PLANT(winograd_tile, tile * shape_.block[i], tile) + trip, body);
        });
  }

  // ---- Transforms -------------------------------------------------------------------------------

  void transform_data(const IndexExpr& tile, bool has_gaps) {
    Guards guards;
    if (has_gaps) guards.push_back({at(dims_.channels), 0, extent(dims_.channels)});
    const Line products = tile_.data(guards);
    for (size_t p = 0; p < products.size(); ++p)
      tiles_.store(data_, {static_cast<int64_t>(p), data_index(tile)}, products[p], guards);
  }
  IndexExpr data_index(const IndexExpr& tile) {
    return tile * shape_.channels + at(dims_.channels);
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
    const int features = dims_.features;
    each_tile(0, 0, [&](const IndexExpr& tile) {
      each_of_panel(Exec::loop, part.unroll, [&](const IndexExpr& feature) {
        Line sums;
        for (int64_t p = 0; p < shape_.products; ++p)
          sums.push_back(tiles_.load(sums_, {p, tile * shape_.panel() + feature}));
        const IndexExpr in_part = panel * shape_.panel() + feature;
        at(features) = part_ * shape_.features + in_part;
        Guards guards;
        if (part.has_gaps) guards.push_back({in_part, 0, shape_.features});
        tile_.store_results(sums, guards);
      });
    });
  }

  const Schedule& schedule_;
  const KernelFacts facts_;
  const WinogradDims dims_;
  const WinogradShape shape_;
  TileBuilder tiles_;
  const StagePlace place_;
  PointBuilder points_;
  std::vector<IndexExpr> first_;  // point of the block at hand, by spatial dim
  IndexExpr part_ = 0;            // the one at hand
  DType wide_;                    // of sums and transformed numbers
  WinogradTile tile_;             // the one at hand
  tile::BufferId weights_ = 0, data_ = 0, sums_ = 0;
};

}  // namespace

Result<TileProgram> build_winograd(const KernelBody& body, const Schedule& schedule,
                                   std::string_view name) {
  return WinogradBuilder(body, schedule, name).build();
}

}  // namespace hone
