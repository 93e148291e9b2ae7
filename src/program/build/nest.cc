#include "program/build/algorithms.h"

#include <algorithm>

#include "kernel/contraction.h"
#include "program/build/point_builder.h"
#include "program/build/tile_parts.h"

namespace hone {

namespace {

class NestBuilder {
 public:
  NestBuilder(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
              TileBuilder& tiles)
      : schedule_(schedule),
        row_(schedule.if_is<NestFields>() == nullptr ? 0 : schedule.get<NestFields>().row),
        space_(space_of(body)),
        graph_(body.graph),
        tiles_(tiles),
        points_(body, tiles, place),
        dims_(static_cast<size_t>(space_.parallel)) {
    for (size_t d = 0; d < place.first.size(); ++d) dims_[d].first = place.first[d];
    if (place.first.empty() && std::ranges::any_of(computing_nodes(graph_), [&](NodeId n) {
          return op_def(graph_.opcode(n)).traits.is_piecewise;
        }))
      loops_ = KernelFacts(body).loops;
    points_.split_by([this](NodeId node) { return splits_of(node); });
    if (schedule.algorithm() == Algorithm::generic) points_.skip_padding();
    plan_steps();
  }

  void kernel() { phases(0); }
  void stage() { loops(0); }

 private:
  enum class Kind : uint8_t { trips, unroll, lanes, row };
  struct Step {
    Kind kind;
    size_t dim = 0;
    bool is_divided = false;  // among threads
  };
  // Where the loops are in a dim.
  struct Place {
    IndexExpr first = 0;
    TilePart part = {};
    IndexExpr trip = 0, u = 0, lane = 0;
  };

  // ---- Order of the loops -----------------------------------------------------------------------

  void plan_steps() {
    const auto row = schedule_.order.begin() + row_;
    add_steps({schedule_.order.begin(), row});
    if (row_ > 0) steps_.push_back({Kind::row});
    add_steps({row, schedule_.order.end()});
  }

  // Loops over tiles, and the tiles inside of all of them.
  void add_steps(std::span<const int> order) {
    for (int dim : order) {
      const bool is_divided = steps_.size() < static_cast<size_t>(schedule_.threads);
      steps_.push_back({Kind::trips, static_cast<size_t>(dim), is_divided});
    }
    for (int dim : tile_order(order, schedule_.lanes))
      if (tile_of(schedule_.unroll, dim) > 1)
        steps_.push_back({Kind::unroll, static_cast<size_t>(dim)});
    for (int dim : order)
      if (tile_of(schedule_.lanes, dim) > 1)
        steps_.push_back({Kind::lanes, static_cast<size_t>(dim)});
  }

  std::vector<TilePart> parts_of(size_t dim, std::span<const int64_t> cuts = {}) const {
    const int d = static_cast<int>(dim);
    return tile_parts(space_.dims[dim].extent, tile_of(schedule_.unroll, d),
                      tile_of(schedule_.lanes, d), cuts);
  }

  // Dims that threads divide have no cuts: each part would be a phase, at whose end threads wait.
  std::span<const int64_t> cuts_of(size_t dim) const {
    if (dim >= loops_.size()) return {};
    const int64_t lanes = tile_of(schedule_.lanes, static_cast<int>(dim));
    return loops_[dim].cuts_between(lanes);
  }

  // ---- Loops -----------------------------------------------------------------------------------

  // A phase for each choice of parts of the dims that threads divide: a threads loop has nothing
  // beside it.
  void phases(size_t step) {
    if (step < static_cast<size_t>(schedule_.threads)) {
      for (const TilePart& part : parts_of(steps_[step].dim)) {
        dims_[steps_[step].dim].part = part;
        phases(step + 1);
      }
      return;
    }
    row_depth_ = 0;
    if (schedule_.threads > 0) return loops(0);
    tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { loops(0); });
  }

  void loops(size_t step) {
    if (step == steps_.size()) return store();
    const size_t dim = steps_[step].dim;
    Place& place = dims_[dim];
    const std::string_view name = space_.dims[dim].name;
    switch (steps_[step].kind) {
      case Kind::row:
        row_depth_ = tiles_.depth();
        loops(step + 1);
        row_depth_ = 0;
        break;
      case Kind::trips:
        if (steps_[step].is_divided)
          return tiles_.loop(Exec::threads, name, place.part.trips,
                             [&](const IndexExpr& i) { inside(step, place.trip, i); });
        for (const TilePart& part : parts_of(dim, cuts_of(dim))) {
          place.part = part;
          open_loop(tiles_, Exec::loop, name, part.trips,
                    [&](const IndexExpr& i) { inside(step, place.trip, i); });
        }
        break;
      case Kind::unroll:
        return open_loop(tiles_, Exec::unroll, name, place.part.unroll,
                         [&](const IndexExpr& i) { inside(step, place.u, i); });
      case Kind::lanes:
        return open_loop(tiles_, Exec::lanes, name, place.part.lanes,
                         [&](const IndexExpr& i) { inside(step, place.lane, i); });
    }
  }

  void inside(size_t step, IndexExpr& at, const IndexExpr& index) {
    at = index;
    loops(step + 1);
  }

  void store() {
    PointBuilder::Indices index;
    PointBuilder::Guards guards;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const Place& place = dims_[d];
      const IndexExpr point = place.part.point(place.trip, place.u, place.lane);
      index.push_back(place.first + point);
      if (place.part.has_gaps) guards.push_back({point, 0, space_.dims[d].extent});
    }
    points_.store_outputs(index, guards);
  }

  // ---- Reductions ------------------------------------------------------------------------------

  PointBuilder::Splits splits_of(NodeId node) const {
    PointBuilder::Splits splits;
    const int rank = graph_.type(graph_.result(node)).rank();
    if (node == space_.anchor) {
      for (int d = space_.parallel; d < static_cast<int>(space_.dims.size()); ++d)
        splits.push_back({.dim = rank + d - space_.parallel,
                          .unroll = tile_of(schedule_.unroll, d),
                          .lanes = tile_of(schedule_.lanes, d)});
      const auto is_split = [](const PointBuilder::Split& s) { return s.unroll * s.lanes > 1; };
      if (std::ranges::any_of(splits, is_split)) return splits;
    }
    if (row_depth_ == 0 || tiles_.depth() > row_depth_) return {};
    return row_splits(node, rank);
  }

  // In a row, the tiles of the dims inside of it are still to be opened: a reduction takes them for
  // its last dim.
  PointBuilder::Splits row_splits(NodeId node, int rank) const {
    const int last = static_cast<int>(relation_of(graph_, node).dims.size()) - 1;
    if (last < rank) return {};
    PointBuilder::Split split = {.dim = last};
    for (size_t i = static_cast<size_t>(row_); i < schedule_.order.size(); ++i) {
      split.unroll *= tile_of(schedule_.unroll, schedule_.order[i]);
      split.lanes *= tile_of(schedule_.lanes, schedule_.order[i]);
    }
    if (tiles_.is_open(Exec::lanes)) split.lanes = 1;
    return {split};
  }

  const Schedule& schedule_;
  const int row_;  // dims around a row; 0: there is none
  const KernelSpace space_;
  const Graph& graph_;
  TileBuilder& tiles_;
  PointBuilder points_;
  std::vector<Step> steps_;
  std::vector<Place> dims_;
  std::vector<KernelFacts::Loop> loops_;  // of a body that has cuts
  int row_depth_ = 0;                     // of the loops around a row; 0: not in a row
};

}  // namespace

Result<TileProgram> build_nest(const KernelBody& body, const Schedule& schedule,
                               std::string_view name) {
  TileBuilder tiles(name);
  NestBuilder(body, schedule, kernel_place(body, tiles), tiles).kernel();
  return std::move(tiles).finish();
}

void build_nest(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles) {
  NestBuilder(body, schedule, place, tiles).stage();
}

}  // namespace hone
