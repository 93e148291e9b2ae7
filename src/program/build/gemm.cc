#include "program/build/gemm_builder.h"

#include <algorithm>

#include "base/planted.h"
#include "program/build/algorithms.h"

namespace hone {

void GemmBuilder::order_reduction() {
  for (int d = space_.parallel; d < dim_count(); ++d) reduction_.push_back(d);
  const Indices index = memory_index();
  auto first_place = [&](int dim) {
    return std::ranges::find_if(index, [&](const IndexExpr& e) { return e.mentions(dim); }) -
           index.begin();
  };
  std::ranges::sort(reduction_, {}, [&](int dim) { return std::pair(first_place(dim), dim); });
  if (!matrix_ && !words_) return;
  const int inner = matrix_ ? matrix_->inner : words_->inner;
  std::erase(reduction_, inner);
  reduction_.push_back(inner);
}

PointBuilder::Indices GemmBuilder::memory_index() const {
  const Operand& lhs = operands_[0];
  if (lhs.packing == Packing::window && operands_[1].packing == Packing::panels) {
    Indices index;
    for (size_t dim : lhs.order) index.push_back(contraction_.reads[0][dim]);
    return index;
  }
  const auto input = std::ranges::find(graph_.inputs(), operand_value(1));
  if (input == graph_.inputs().end()) return {};
  return stored_index(body_.inputs[static_cast<size_t>(input - graph_.inputs().begin())],
                      contraction_.reads[1]);
}

bool GemmBuilder::lie_side_by_side(ValueId value, Indices index, int iter) const {
  for (;;) {
    const NodeId node = graph_.producer(value);
    const auto input = std::ranges::find(graph_.inputs(), value);
    if (input != graph_.inputs().end()) {
      const auto at = static_cast<size_t>(input - graph_.inputs().begin());
      const Indices stored = stored_index(body_.inputs[at], index);
      return !stored.empty() && stored.back().mentions(iter) &&
             stored.back().coefficient(iter).value_or(1) == 1;
    }
    if (graph_.operands(node).empty()) return true;
    index = composed(relation_of(graph_, node).operands[0].at(0).index, index);
    value = graph_.operands(node)[0];
  }
}

PointBuilder::Indices GemmBuilder::composed(const Indices& access, const Indices& iters) {
  Indices index;
  for (const IndexExpr& expr : access) index.push_back(expr.substitute(iters));
  return index;
}

void GemmBuilder::make_sums() {
  if (!blocks_reduction_ && !matrix_) return;
  const BlockShape shape = block_shape(schedule_, space_, all_results());
  sums_ = scratch_.buffer("sums", Type::get(wide_, {shape.tiles, shape.points}));
}

std::vector<bool> GemmBuilder::all_results() const {
  return std::vector<bool>(static_cast<size_t>(space_.parallel), true);
}

std::vector<TilePart> GemmBuilder::blocks_of(int dim) const {
  const int64_t points = cache_block(schedule_, space_, dim);
  if (!extent(dim).is_static()) return open_tile_parts(extent(dim), points);
  return tile_parts(extent(dim), points, 1);
}

void GemmBuilder::each_block(int dim, const std::function<void()>& body) {
  const bool was_in_rest = in_rest_;
  for (const TilePart& block : blocks_of(dim)) {
    place(dim).block = block;
    in_rest_ = was_in_rest || block.is_rest;
    body();
  }
  in_rest_ = was_in_rest;
}

void GemmBuilder::phases(size_t at) {
  if (at < static_cast<size_t>(schedule_.threads))
    return each_block(schedule_.order[at], [&] { phases(at + 1); });
  if (schedule_.threads > 0) return blocks(0);
  tiles_.loop(Exec::loop, "once", 1, [&](const IndexExpr&) { blocks(0); });
}

void GemmBuilder::blocks(size_t at) {
  const std::array<bool, 2> before = {operands_[0].is_packed, operands_[1].is_packed};
  if (at >= static_cast<size_t>(schedule_.threads) && !blocks_reduction_)
    for (size_t side = 0; side < 2; ++side)
      if (HONE_PLANT(panel_early, !depends_beyond(side, at), true)) pack_for_tiles(side, at);
  if (at == schedule_.order.size()) {
    in_block();
  } else {
    const int dim = schedule_.order[at];
    const auto inside = [&](const IndexExpr& trip) {
      place(dim).block_trip = trip;
      blocks(at + 1);
    };
    if (at < static_cast<size_t>(schedule_.threads))
      tiles_.loop(Exec::threads, name(dim), place(dim).block.trips, inside);
    else
      each_block(dim,
                 [&] { open_loop(tiles_, Exec::loop, name(dim), place(dim).block.trips, inside); });
  }
  for (size_t side = 0; side < 2; ++side) operands_[side].is_packed = before[side];
}

void GemmBuilder::pack_for_tiles(size_t side, size_t at) {
  if (!is_to_be_packed(side)) return;
  Dim uses = 1;
  for (size_t i = at; i < schedule_.order.size(); ++i)
    if (const int dim = schedule_.order[i]; !extent(dim).is_static())
      uses = uses * tiles_before_rest(extent(dim), cache_block(schedule_, space_, dim));
  if (uses.is_static()) return pack(side);
  tiles_.loop(
      Exec::loop, "once", 1, [&](const IndexExpr&) { pack(side); }, tile::Span{0, IndexExpr(uses)});
}

bool GemmBuilder::depends_beyond(size_t side, size_t at) const {
  for (size_t i = at; i < schedule_.order.size(); ++i)
    if (contraction_.sides[side][static_cast<size_t>(schedule_.order[i])]) return true;
  return false;
}

void GemmBuilder::in_block() {
  if (matrix_) return matrix_block();
  if (!sums_) {
    for (int dim : reduction_) place(dim).block = {.trips = 1, .unroll = extent(dim).value()};
    if (words_) return add_products(true);
    return all_points([&] { points_.store_outputs(point(), guards()); });
  }
  reduction_blocks(0, false);
}

void GemmBuilder::reduction_blocks(size_t at, bool is_last) {
  if (at == reduction_.size()) return reduction_block(is_last);
  const int dim = reduction_[at];
  const std::vector<TilePart> parts = with_last_trip(blocks_of(dim));
  for (size_t i = 0; i < parts.size(); ++i) {
    place(dim).block = parts[i];
    open_loop(tiles_, Exec::loop, name(dim), parts[i].trips, [&](const IndexExpr& trip) {
      place(dim).block_trip = trip;
      reduction_blocks(at + 1, is_last || (parts.size() > 1 && i + 1 == parts.size()));
    });
  }
}

std::vector<TilePart> GemmBuilder::with_last_trip(std::vector<TilePart> parts) {
  TilePart& last = parts.back();
  const int64_t before = last.trips.value() - 1;
  if (before <= 0) return parts;
  TilePart end = last;
  last.trips = before;
  end.trips = 1;
  end.first = end.first + before * end.unroll;
  parts.push_back(end);
  return parts;
}

void GemmBuilder::reduction_block(bool is_last) {
  for (size_t side = 0; side < 2; ++side) pack(side);
  if (matrix_)
    tiles(schedule_.order.size(), [&] { multiply_tile(); });
  else
    add_products(is_last);
  if (blocks_reduction_)
    for (Operand& operand : operands_) operand.is_packed = false;
}

void GemmBuilder::add_products(bool is_last) {
  all_points([&] {
    const Scalar before = sums_ ? sum_before() : points_.zero(wide_);
    const Scalar sum =
        words_ ? sum_of_words(before, 0)
               : points_.sum_of_products(space_.anchor, anchor_index(), guards(), before);
    if (!is_last) return tiles_.store(*sums_, sums_index(), sum);
    const ValueId value = graph_.result(space_.anchor);
    points_.bind(value, sum);
    points_.store_outputs(point(), guards());
  });
}

tile::Scalar GemmBuilder::sum_before() {
  for (int dim : reduction_) {
    const Place& at = place(dim);
    if (at.block.unroll == extent(dim).value()) continue;
    if (!at.block.first.is(0)) break;
    if (at.block.trips.is(1)) return points_.zero(wide_);
    return tiles_.load(*sums_, sums_index(), {{at.block_trip, 1, at.block.trips}},
                       points_.zero(wide_));
  }
  return tiles_.load(*sums_, sums_index());
}

std::vector<TilePart> GemmBuilder::tiles_of(int dim) const {
  return tile_parts(place(dim).block.unroll, tile_of(schedule_.unroll, dim),
                    tile_of(schedule_.lanes, dim));
}

void GemmBuilder::tiles(size_t left, const std::function<void()>& body) {
  if (left == 0) return body();
  const int dim = schedule_.order[left - 1];
  for (const TilePart& part : tiles_of(dim)) {
    place(dim).tile = part;
    open_loop(tiles_, Exec::loop, name(dim), part.trips, [&](const IndexExpr& trip) {
      place(dim).trip = trip;
      tiles(left - 1, body);
    });
  }
}

void GemmBuilder::all_points(const std::function<void()>& body) {
  tiles(schedule_.order.size(), [&] { tile_points(Exec::unroll, 0, body); });
}

void GemmBuilder::tile_points(Exec exec, size_t at, const std::function<void()>& body) {
  if (at == schedule_.order.size()) {
    if (exec == Exec::lanes) return body();
    return tile_points(Exec::lanes, 0, body);
  }
  const int dim = tile_order_[at];
  Place& here = place(dim);
  const bool is_lanes = exec == Exec::lanes;
  open_loop(tiles_, exec, name(dim), is_lanes ? here.tile.lanes : here.tile.unroll,
            [&](const IndexExpr& i) {
              (is_lanes ? here.lane : here.u) = i;
              tile_points(exec, at + 1, body);
            });
}

IndexExpr GemmBuilder::index_of(int dim) const {
  const Place& at = place(dim);
  return at.first() + at.tile.point(at.trip, at.u, at.lane);
}

PointBuilder::Indices GemmBuilder::point() const {
  Indices index;
  for (int dim = 0; dim < space_.parallel; ++dim) index.push_back(index_of(dim));
  return index;
}

PointBuilder::Guards GemmBuilder::guards() const {
  Guards guards;
  for (int dim = 0; dim < space_.parallel; ++dim)
    if (place(dim).tile.has_gaps || place(dim).block.has_gaps) guards.push_back(guard(dim));
  return guards;
}

PointBuilder::Indices GemmBuilder::tile_and_point(const std::vector<bool>& dims) const {
  IndexExpr tile = 0, point = 0;
  auto count = [&](int dim) {
    const Place& at = place(dim);
    const int64_t points = register_tile(schedule_, dim);
    tile = tile * (cache_block(schedule_, space_, dim) / points) + at.trip +
           IndexExpr(at.tile.first.value() / points);
    point = point * points + at.within_tile();
  };
  const int lanes = schedule_.lanes.empty() ? -1 : schedule_.lanes[0].dim;
  for (int dim = 0; dim < space_.parallel; ++dim)
    if (dims[static_cast<size_t>(dim)] && dim != lanes) count(dim);
  if (lanes >= 0 && dims[static_cast<size_t>(lanes)]) count(lanes);
  return {tile, point};
}

PointBuilder::Splits GemmBuilder::splits() const {
  PointBuilder::Splits splits;
  for (int dim : reduction_)
    splits.push_back({.dim = static_cast<int>(contraction_.index.size()) + dim - space_.parallel,
                      .first = place(dim).first(),
                      .extent = place(dim).block.unroll});
  return splits;
}

Result<TileProgram> build_gemm(const KernelBody& body, const Schedule& schedule,
                               std::string_view name) {
  TileBuilder tiles(name);
  GemmBuilder(body, schedule, kernel_place(body, tiles), tiles).kernel();
  return std::move(tiles).finish();
}

void build_gemm(const KernelBody& body, const Schedule& schedule, const StagePlace& place,
                TileBuilder& tiles) {
  GemmBuilder(body, schedule, place, tiles).stage();
}

}  // namespace hone
