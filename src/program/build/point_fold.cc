#include <algorithm>

#include "base/planted.h"
#include "ir/op_facts.h"
#include "program/build/point_builder.h"
#include "program/build/tile_parts.h"
#include "program/tiles/bounds.h"

// Reductions: loops that carry.

namespace hone {

DType wide_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype;
}

tile::Scalar PointBuilder::identity(Opcode combine, DType dtype) {
  return number(dtype, identity_of(combine, dtype));
}

namespace {

// The loops of a reduction: over tiles side by side, and inside of them over the tiles' trips, so
// that each point of a tile gathers for itself.
class FoldLoops {
 public:
  struct FoldDim {
    size_t at;  // in the relation
    std::string_view name;
    IndexExpr first;
    Dim extent;
    std::vector<TilePart> parts;
    TilePart part = {};  // the one at hand
    IndexExpr trip = 0, u = 0, lane = 0;
    bool is_at_lane = false;  // the others are not taken here
  };
  using Step = std::function<tile::Scalar(tile::Scalar, const std::vector<FoldDim>&)>;
  // The trips of a part that come to something.
  using Trips = std::function<std::optional<tile::Span>(const FoldDim&)>;

  FoldLoops(TileBuilder& tiles, std::vector<FoldDim> dims, Opcode combine, Trips trips, Step step)
      : tiles_(tiles),
        dims_(std::move(dims)),
        combine_(combine),
        trips_(std::move(trips)),
        step_(std::move(step)) {}

  // Whole tiles first, then what is left of each dim.
  tile::Scalar run(tile::Scalar so_far, size_t d = 0) {
    if (d == dims_.size()) return nested(Exec::unroll, 0, so_far);
    for (const TilePart& part : dims_[d].parts) {
      dims_[d].part = part;
      so_far = run(so_far, d + 1);
    }
    return so_far;
  }

 private:
  // From outside in: what is side by side in registers, in lanes, and one trip after another.
  tile::Scalar nested(Exec exec, size_t d, tile::Scalar so_far) {
    if (d == dims_.size()) {
      if (exec == Exec::loop) return step_(so_far, dims_);
      return nested(exec == Exec::unroll ? Exec::lanes : Exec::loop, 0, so_far);
    }
    FoldDim& dim = dims_[d];
    const bool is_unroll = exec == Exec::unroll, is_lanes = exec == Exec::lanes;
    if (is_lanes && dim.is_at_lane) return nested(exec, d + 1, so_far);
    const Dim extent = is_unroll ? dim.part.unroll : is_lanes ? dim.part.lanes : dim.part.trips;
    IndexExpr& at = is_unroll ? dim.u : is_lanes ? dim.lane : dim.trip;
    return open_carry(
        tiles_, exec, dim.name, extent, so_far, combine_,
        [&](IndexExpr index, tile::Scalar inside) {
          at = std::move(index);
          return nested(exec, d + 1, inside);
        },
        exec == Exec::loop ? trips_(dim) : std::nullopt);
  }

  TileBuilder& tiles_;
  std::vector<FoldDim> dims_;
  Opcode combine_;
  Trips trips_;
  Step step_;
};

}  // namespace

tile::Scalar PointBuilder::folded(Point& point, Scalar initial, Opcode combine,
                                  std::span<const Guard> padding, const FoldStep& step) {
  Splits splits = splits_ ? splits_(point.node) : Splits{};
  for (size_t d = 0; d < point.relation.dims.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (point.relation.dims[d].kind == IterKind::reduction &&
        std::ranges::find(splits, dim, &Split::dim) == splits.end())
      splits.push_back({.dim = dim});
  }
  std::vector<FoldLoops::FoldDim> dims;
  for (const Split& split : splits) {
    const auto at = static_cast<size_t>(split.dim);
    const IterDim& dim = point.relation.dims[at];
    const Dim extent = split.extent.value_or(dim.extent);
    dims.push_back({.at = at,
                    .name = dim.name,
                    .first = split.first,
                    .extent = extent,
                    .parts = tile_parts(extent, split.unroll, split.lanes),
                    .lane = split.lane.value_or(0),
                    .is_at_lane = split.lane.has_value()});
  }
  const auto trips = [&](const FoldLoops::FoldDim& dim) -> std::optional<tile::Span> {
    if (dim.part.unroll > 1 || dim.part.lanes > 1) return std::nullopt;
    return trips_inside(point, padding, dim.at, dim.first + IndexExpr(dim.part.first),
                        dim.part.trips);
  };
  FoldLoops loops(tiles_, std::move(dims), combine, trips,
                  [&](Scalar so_far, const std::vector<FoldLoops::FoldDim>& at) {
                    Guards guards;
                    for (const FoldLoops::FoldDim& dim : at) {
                      const IndexExpr here = dim.part.point(dim.trip, dim.u, dim.lane);
                      if (dim.part.has_gaps) guards.push_back({here, 0, dim.extent});
                      point.iters[dim.at] = dim.first + here;
                    }
                    return step(so_far, guards);
                  });
  return loops.run(initial);
}

std::optional<tile::Span> PointBuilder::trips_inside(const Point& point,
                                                     std::span<const Guard> padding, size_t dim,
                                                     const IndexExpr& first,
                                                     const Dim& trips) const {
  Indices iters = point.iters;
  iters[dim] = first;
  const auto is_of_other_loops = [&](const IndexExpr& value) {
    for (size_t d = 0; d < point.relation.dims.size(); ++d)
      if (d != dim && point.relation.dims[d].kind == IterKind::reduction &&
          value.mentions(static_cast<int>(d)))
        return true;
    return false;
  };
  for (const Guard& guard : padding) {
    if (guard.value.coefficient(static_cast<int>(dim)) != 1 || is_of_other_loops(guard.value))
      continue;
    const IndexExpr start = guard.value.substitute(iters);
    if (tiles_.is_side_by_side(start)) continue;
    const DimRange range = TileBounds(tiles_.program()).of(start);
    if (provably_le(guard.lower, range.low) && provably_le(range.high + trips, guard.upper))
      continue;
    return tile::Span{IndexExpr(guard.lower) - start,
                      IndexExpr(HONE_PLANT(last_window_row, guard.upper, guard.upper - 1)) - start};
  }
  return std::nullopt;
}

// ---- Ops ----------------------------------------------------------------------------------------

tile::Scalar PointBuilder::fold(Point& point) {
  const Opcode combine = combine_of(point.op.word("kind"));
  const DType wide = wide_type(graph_.type(point.operands[0]).dtype());
  const Access& access = point.relation.operands[0].at(0);
  const Scalar nothing = identity(combine, wide);
  return folded(point, nothing, combine, access.guards, [&](Scalar so_far, Guards guards) {
    for (const Guard& guard : point.guards_here(access)) guards.push_back(guard);
    const Scalar element =
        at_or(point.operands[0], point.here(access), point.guards, guards, nothing);
    return tiles_.compute(combine, {so_far, element});
  });
}

tile::Scalar PointBuilder::factor(NodeId node, size_t side, const Indices& iters,
                                  const Guards& guards, const Guards& gaps) {
  Point point = this->point(node, iters, guards);
  const Access& access = point.relation.operands[side].at(0);
  Guards own = gaps;
  if (side == 0 || skips_padding_)
    for (const Guard& guard : point.guards_here(access)) own.push_back(guard);
  const ValueId operand = point.operands[side];
  const Scalar number = at_or(operand, point.here(access), guards, own,
                              zero(wide_type(graph_.type(operand).dtype())));
  return tiles_.cast(number, wide_type(point.type.dtype()));
}

std::optional<PointBuilder::Element> PointBuilder::element_of_factor(NodeId node, size_t side,
                                                                     const Indices& iters,
                                                                     const Guards& gaps) {
  const Point point = this->point(node, iters, {});
  const Access& access = point.relation.operands[side].at(0);
  Guards own = gaps;
  if (side == 0 || skips_padding_)
    for (const Guard& guard : point.guards_here(access)) own.push_back(guard);
  own = needed(own, {});
  ValueId value = point.operands[side];
  Indices index = point.here(access);
  while (follow(value, index)) {
  }
  if (!is_parameter(graph_.opcode(graph_.producer(value)))) return std::nullopt;
  const size_t at = parameters_[value.index];
  const tile::BufferId buffer = inputs_[at].value().buffer;
  const TileBounds bounds(tiles_.program());
  index = stored_input(at, index);
  for (IndexExpr& expr : index) expr = bounds.simplified(expr, own);
  if (bounds.outside(index, own, tiles_.program().buffers[buffer].type)) return std::nullopt;
  return Element{buffer, std::move(index), std::move(own)};
}

tile::Scalar PointBuilder::word(NodeId node, size_t side, const Indices& iters,
                                const WordSource& place, const Guards& gaps) {
  const Point point = this->point(node, iters, {});
  Guards own = gaps;
  if (side == 0 || skips_padding_)
    for (const Guard& guard : point.guards_here(point.relation.operands[side].at(0)))
      own.push_back(guard);
  own = needed(own, {});
  const TileBounds bounds(tiles_.program());
  for (const Guard& guard : own)
    if (bounds.never(guard)) return number(DType::u32, int64_t{0});
  const tile::BufferId buffer = inputs_[parameters_[place.parameter.index]].value().buffer;
  Indices index = place.index;
  for (IndexExpr& expr : index) expr = bounds.simplified(expr, own);
  const Type type = tiles_.program().buffers[buffer].type;
  const auto last = static_cast<int>(index.size()) - 1;
  const auto outside = [&] {
    Indices end = index;
    end.back() = end.back() + IndexExpr(place.each - 1);
    const std::optional<int> axis = bounds.outside(index, own, type);
    return axis ? axis : bounds.outside(end, own, type);
  };
  while (const std::optional<int> axis = outside()) {
    // As for a number: nothing that is needed lies outside.
    const Dim places = type.dim(*axis) - (*axis == last ? place.each - 1 : 0);
    IndexExpr& expr = index[static_cast<size_t>(*axis)];
    expr = tiles_.choose("at", 0, places, position(DType::i64, expr));
  }
  const auto in_each_byte = [&](uint8_t bits) {
    return number(DType::u32, int64_t{bits} * 0x01010101);
  };
  const Scalar flip = in_each_byte(place.flip);
  // So that the byte is 0 when its bits have changed.
  const Scalar otherwise = HONE_PLANT(quad_padding, flip, number(DType::u32, int64_t{0}));
  const Scalar word = own.empty() ? tiles_.load_word(buffer, std::move(index))
                                  : tiles_.load_word(buffer, std::move(index), own, otherwise);
  const Scalar bytes = place.flip == 0 ? word : tiles_.compute(Opcode::xor_, {word, flip});
  if (!place.takes_fields()) return bytes;
  const Scalar down =
      HONE_PLANT(word_field, position(DType::u32, place.shift), number(DType::u32, int64_t{0}));
  return tiles_.compute(
      Opcode::and_, {tiles_.compute(Opcode::shift_right, {bytes, down}), in_each_byte(place.mask)});
}

tile::Scalar PointBuilder::contract(Point& point, Scalar so_far) {
  const Access& windows = point.relation.operands[0].at(0);
  return folded(point, so_far, Opcode::add, windows.guards, [&](Scalar inside, const Guards& gaps) {
    auto side = [&](size_t i) {
      const std::optional<Scalar> other = factors_ ? factors_(i, point.iters) : std::nullopt;
      return other ? *other : factor(point.node, i, point.iters, point.guards, gaps);
    };
    const Scalar a = side(0), b = side(1);
    if (is_real(tiles_.dtype(inside))) return tiles_.fma(a, b, inside);
    return tiles_.compute(Opcode::add, {inside, tiles_.compute(Opcode::mul, {a, b})});
  });
}

tile::Scalar PointBuilder::sum_of_products(NodeId node, const Indices& index, const Guards& guards,
                                           Scalar so_far) {
  Point point = this->point(node, index, guards);
  return contract(point, so_far);
}

// Over the rows between two offsets.
tile::Scalar PointBuilder::segment_reduce(Point& point) {
  const Opcode combine = combine_of(point.op.word("kind"));
  const DType wide = wide_type(point.type.dtype());
  const std::vector<Access>& offsets = point.relation.operands[1];
  const IterDim& row = point.relation.dims.back();
  tile::Span span = {start(point, 1, offsets.at(0), 0, row.extent + 1),
                     start(point, 1, offsets.at(1), 0, row.extent + 1)};
  return tiles_.carry(
      Exec::loop, row.name, row.extent, identity(combine, wide), combine,
      [&](IndexExpr r, Scalar so_far) {
        point.iters.back() = std::move(r);
        return tiles_.compute(combine, {so_far, operand(point, 0)});
      },
      std::move(span));
}

// The best so far and where it is. NaN is better than any number.
tile::Scalar PointBuilder::arg_reduce(Point& point) {
  const bool is_max = point.op.word("kind") == "max";
  const bool takes_last = HONE_PLANT(argument_ties, point.op.flag("last"), false);
  const std::string direction = std::string(is_max ? "g" : "l") + (takes_last ? "e" : "t");
  const DType index_type = point.type.dtype();
  const DType counted = is_integer(index_type) ? index_type : DType::i64;
  const IterDim& dim = point.relation.dims.back();
  point.iters.back() = 0;
  const Scalar first = operand(point, 0);
  const std::vector<Scalar> best = tiles_.carry(
      dim.name, dim.extent, {first, zero(counted)},
      [&](const IndexExpr& i, const std::vector<Scalar>& so_far) {
        point.iters.back() = i;
        const Scalar element = operand(point, 0);
        Scalar wins = compare(direction, element, so_far[0]);
        if (is_real(tiles_.dtype(element))) {
          const Scalar is_nan = tiles_.compute(Opcode::is_nan, {element});
          const Scalar was_nan = tiles_.compute(Opcode::is_nan, {so_far[0]});
          const Scalar none_yet = tiles_.compute(Opcode::not_, {was_nan});
          // A number never wins against NaN: comparing with it is false.
          wins = tiles_.compute(
              Opcode::or_,
              {wins, takes_last ? is_nan : tiles_.compute(Opcode::and_, {is_nan, none_yet})});
        }
        const Scalar position = tiles_.position(counted, i);
        return std::vector<Scalar>{tiles_.compute(Opcode::select, {wins, element, so_far[0]}),
                                   tiles_.compute(Opcode::select, {wins, position, so_far[1]})};
      });
  return rounded(best[1], index_type);
}

}  // namespace hone
