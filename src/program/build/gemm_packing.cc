#include "program/build/gemm_builder.h"

#include "base/planted.h"

namespace hone {

void GemmBuilder::set_up(size_t side) {
  Operand& operand = operands_[side];
  if (operand.packing == Packing::panels) set_up_panels(side);
  if (operand.packing == Packing::window) set_up_window(side);
}

void GemmBuilder::set_up_panels(size_t side) {
  const BlockShape shape = block_shape(schedule_, space_, contraction_.sides[side]);
  if (matrix_)
    set_up_matrix_panels(side);
  else if (words_)
    scratch(side, DType::u32, {shape.tiles, words_->words, shape.points});
  else
    scratch(side, wide_, {shape.tiles, block_depth(schedule_, space_), shape.points});
  std::optional<int> last;
  for (int dim = 0; dim < space_.parallel; ++dim)
    if (contraction_.sides[side][static_cast<size_t>(dim)] && tile_of(schedule_.unroll, dim) > 1)
      last = dim;
  for (const Tile& lanes : schedule_.lanes)
    if (contraction_.sides[side][static_cast<size_t>(lanes.dim)]) last = lanes.dim;
  if (words_ && sources_[side]) return;
  if (last && lie_side_by_side(operand_value(side), contraction_.reads[side], *last))
    operands_[side].lanes = last;
}

void GemmBuilder::set_up_window(size_t side) {
  Operand& operand = operands_[side];
  operand.window = window_of(contraction_, space_, schedule_, side).value();
  const int rank = graph_.type(operand_value(side)).rank();
  for (int dim = rank; dim-- > 0 && !operand.lanes;)
    if (lie_side_by_side(operand_value(side), identity_index(rank), dim)) operand.lanes = dim;
  if (words_) set_up_window_of_words(side);
  std::vector<Dim> extents;
  const std::optional<int> last = operand.last ? operand.last : operand.lanes;
  for (int dim = 0; dim < rank; ++dim)
    if (dim != last) operand.order.push_back(static_cast<size_t>(dim));
  if (last) operand.order.push_back(static_cast<size_t>(*last));
  for (size_t dim : operand.order) extents.push_back(operand.window[dim]);
  const DType dtype = words_ ? graph_.type(operand_value(side)).dtype() : wide_;
  if (!extents.empty()) extents.back() = apart(extents.back().value(), dtype);
  scratch(side, dtype, extents);
}

int64_t GemmBuilder::apart(int64_t extent, DType dtype) {
  const int64_t line = 64 * 8 / bits(dtype);
  return extent % (4 * line) == 0 ? extent + line : extent;
}

void GemmBuilder::scratch(size_t side, DType dtype, const std::vector<Dim>& dims) {
  operands_[side].buffer = scratch_.buffer(side == 0 ? "lhs" : "rhs", Type::get(dtype, dims));
}

std::optional<tile::Scalar> GemmBuilder::packed(size_t side, const Indices& iters) {
  const Operand& operand = operands_[side];
  if (!operand.is_packed || in_rest_) return std::nullopt;
  set_reduction(iters);
  return tiles_.load(operand.buffer,
                     operand.packing == Packing::window ? window_index(side) : panel_index(side));
}

void GemmBuilder::set_reduction(const Indices& iters) {
  for (int dim : reduction_)
    place(dim).trip =
        iters[contraction_.index.size() + static_cast<size_t>(dim - space_.parallel)] -
        place(dim).first();
}

bool GemmBuilder::is_to_be_packed(size_t side) const {
  return operands_[side].packing != Packing::no && !operands_[side].is_packed && !in_rest_;
}

void GemmBuilder::pack(size_t side) {
  if (!is_to_be_packed(side)) return;
  Operand& operand = operands_[side];
  if (!blocks_reduction_)
    for (int dim : reduction_) place(dim).block = {.trips = 1, .unroll = extent(dim).value()};
  for (Place& at : dims_) at.tile = {}, at.trip = at.u = at.lane = 0;
  if (operand.packing == Packing::panels) {
    pack_tiles(side, 0);
  } else {
    Indices point(operand.order.size(), 0);
    pack_window(side, 0, point, {});
  }
  operand.is_packed = true;
}

void GemmBuilder::pack_tiles(size_t side, size_t at) {
  if (at == schedule_.order.size()) return pack_depth(side, 0);
  const int dim = schedule_.order[at];
  if (!contraction_.sides[side][static_cast<size_t>(dim)]) return pack_tiles(side, at + 1);
  for (const TilePart& part : packed_tiles_of(dim)) {
    place(dim).tile = part;
    open_loop(tiles_, Exec::loop, name(dim), part.trips, [&](const IndexExpr& trip) {
      place(dim).trip = trip;
      pack_tiles(side, at + 1);
    });
  }
}

std::vector<TilePart> GemmBuilder::packed_tiles_of(int dim) const {
  std::vector<TilePart> parts = tiles_of(dim);
  TilePart& last = parts.back();
  if (!matrix_ || last.unroll * last.lanes == register_tile(schedule_, dim)) return parts;
  last.unroll = tile_of(schedule_.unroll, dim);
  last.has_gaps = true;
  return parts;
}

void GemmBuilder::pack_depth(size_t side, size_t at) {
  if (matrix_ && at + 1 == reduction_.size()) return pack_matrix(side);
  if (at == reduction_.size()) return pack_points(side, Exec::unroll, 0);
  const int dim = reduction_[at];
  const Dim trips = words_ && dim == words_->inner ? inner_words() : place(dim).block.unroll;
  open_loop(tiles_, Exec::loop, name(dim), trips, [&](const IndexExpr& k) {
    move_to(dim, k);
    pack_depth(side, at + 1);
  });
}

void GemmBuilder::pack_points(size_t side, Exec exec, size_t at) {
  if (at == schedule_.order.size()) {
    if (exec == Exec::unroll) return pack_points(side, Exec::lanes, 0);
    return pack_point(side);
  }
  const int dim = schedule_.order[at];
  if (!contraction_.sides[side][static_cast<size_t>(dim)]) return pack_points(side, exec, at + 1);
  Place& here = place(dim);
  const bool is_lanes = exec == Exec::lanes;
  // Elements that lie apart go one by one: it takes longer to gather them in a vector.
  const bool has_lanes = tile_of(schedule_.lanes, dim) > 1;
  const Exec how =
      dim == operands_[side].lanes && is_lanes == has_lanes ? Exec::lanes : Exec::unroll;
  open_loop(tiles_, how, name(dim), is_lanes ? here.tile.lanes : here.tile.unroll,
            [&](const IndexExpr& i) {
              (is_lanes ? here.lane : here.u) = i;
              pack_points(side, exec, at + 1);
            });
}

void GemmBuilder::pack_point(size_t side) {
  tiles_.store(operands_[side].buffer, panel_index(side),
               words_ ? packed_word(side) : packed_number(side, {}));
}

tile::Scalar GemmBuilder::packed_number(size_t side, Guards gaps) {
  for (Guard& gap : gaps_of(side)) gaps.push_back(std::move(gap));
  const Scalar number = points_.factor(space_.anchor, side, factor_index(), {}, gaps);
  const DType dtype = graph_.type(operand_value(side)).dtype();
  if ((!words_ && !matrix_) || wide_type(dtype) == dtype) return number;
  // Words and parts have room for the bits of the operand's type alone.
  return tiles_.cast(tiles_.cast(number, dtype), wide_);
}

PointBuilder::Guards GemmBuilder::gaps_of(size_t side) const {
  Guards gaps;
  for (int dim = 0; dim < space_.parallel; ++dim)
    if (contraction_.sides[side][static_cast<size_t>(dim)] && place(dim).tile.has_gaps)
      gaps.push_back(guard(dim));
  return gaps;
}

PointBuilder::Indices GemmBuilder::factor_index() const {
  Indices iters = anchor_index();
  iters.resize(iters.size() + reduction_.size(), 0);
  for (int dim : reduction_)
    iters[contraction_.index.size() + static_cast<size_t>(dim - space_.parallel)] =
        HONE_PLANT(panel_block, place(dim).first(), IndexExpr(0)) + place(dim).trip;
  return iters;
}

void GemmBuilder::pack_window(size_t side, size_t at, Indices& point, const Guards& gaps) {
  const Operand& operand = operands_[side];
  if (at == operand.order.size()) return pack_window_point(side, point, gaps);
  const size_t dim = operand.order[at];
  const int64_t extent = operand.window[dim];
  const bool has_lanes = operand.lanes == static_cast<int>(dim) && !schedule_.lanes.empty();
  for (const TilePart& part : tile_parts(extent, 1, has_lanes ? schedule_.lanes[0].count : 1)) {
    open_loop(tiles_, Exec::loop, "w", part.trips, [&](const IndexExpr& trip) {
      open_loop(tiles_, Exec::lanes, "w", part.lanes, [&](const IndexExpr& lane) {
        point[dim] = part.point(trip, 0, lane);
        Guards more = gaps;
        if (part.has_gaps) more.push_back({point[dim], 0, extent});
        pack_window(side, at + 1, point, more);
      });
    });
  }
}

void GemmBuilder::pack_window_point(size_t side, const Indices& point, const Guards& gaps) {
  const Operand& operand = operands_[side];
  const Type type = graph_.type(operand_value(side));
  Indices first;
  for (int dim = 0; dim < dim_count(); ++dim) first.push_back(place(dim).first());
  Indices index, in_window;
  Guards inside;
  for (size_t dim = 0; dim < point.size(); ++dim) {
    const Indices from = HONE_PLANT(window_first, first, Indices(first.size(), 0));
    index.push_back(contraction_.reads[side][dim].substitute(from) + point[dim]);
    inside.push_back({index.back(), 0, type.dim(static_cast<int>(dim))});
  }
  for (size_t dim : operand.order) in_window.push_back(point[dim]);
  const Scalar number = points_.at_or(operand_value(side), index, gaps, inside,
                                      points_.zero(wide_type(type.dtype())));
  tiles_.store(operand.buffer, in_window, tiles_.cast(number, words_ ? type.dtype() : wide_), gaps);
}

PointBuilder::Indices GemmBuilder::panel_index(size_t side) const {
  const Indices at = tile_and_point(contraction_.sides[side]);
  IndexExpr depth = 0;
  for (int dim : reduction_)
    depth = words_ && dim == words_->inner
                ? depth * words_->inner_words + word_
                : depth * cache_block(schedule_, space_, dim) + place(dim).trip;
  return {at[0], depth, at[1]};
}

PointBuilder::Indices GemmBuilder::window_index(size_t side) const {
  const Indices none(dims_.size(), 0);
  Indices from_first;
  for (int dim = 0; dim < dim_count(); ++dim) {
    const Place& at = place(dim);
    from_first.push_back(dim < space_.parallel ? at.tile.point(at.trip, at.u, at.lane) : at.trip);
  }
  Indices index;
  for (size_t dim : operands_[side].order) {
    const IndexExpr& expr = contraction_.reads[side][dim];
    index.push_back(expr.substitute(from_first) - expr.substitute(none));
  }
  return index;
}

}  // namespace hone
