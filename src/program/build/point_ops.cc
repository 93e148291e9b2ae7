#include "base/planted.h"
#include "program/build/point_builder.h"

// Computes an op at a point, except reductions.

namespace hone {

tile::Scalar PointBuilder::elementwise(const Point& point) {
  std::vector<Scalar> operands;
  for (ValueId operand : point.operands) operands.push_back(at(operand, point.iters, point.guards));
  const DType dtype = point.type.dtype();
  if (point.op.opcode() == Opcode::cast) return rounded(operands[0], dtype);
  if (point.op.opcode() == Opcode::bitcast)
    operands[0] = tiles_.cast(operands[0], graph_.type(point.operands[0]).dtype());
  return tiles_.cast(tiles_.compute(point.op, std::move(operands)), wide_type(dtype));
}

// Each element comes from the one piece whose guards hold; pad's value from no place in particular.
tile::Scalar PointBuilder::moved(const Point& point) {
  std::optional<Scalar> value;
  for (size_t i = point.operands.size(); i-- > 0;) {
    const ValueId operand = point.operands[i];
    if (point.op.opcode() == Opcode::pad && i == 1) {
      value = at(operand, {}, point.guards);
      continue;
    }
    const Access& piece = point.relation.operands[i].at(0);
    value = at_or(operand, point.here(piece), point.guards, point.guards_here(piece),
                  value ? *value : zero(wide_type(point.type.dtype())));
  }
  return *value;
}

tile::Scalar PointBuilder::iota(const Point& point) {
  const DType dtype = point.type.dtype();
  const IndexExpr& at = point.iters[static_cast<size_t>(point.op.integer("axis"))];
  return rounded(position(is_integer(dtype) ? dtype : DType::i64, at), dtype);
}

// ---- Ops that find elements by their data -------------------------------------------------------

IndexExpr PointBuilder::start(const Point& point, int operand, const Access& access, Dim low,
                              Dim high) {
  const ValueId value = point.operands[static_cast<size_t>(operand)];
  const Indices index = point.here(access);
  const Scalar scalar = at(value, index, point.guards);
  for (const KnownStart& known : starts_)
    if (known.scalar == scalar && known.low == low && known.high == high && is_open(known.place))
      return known.index;
  IndexExpr chosen = 0;
  tiles_.within(home(value, index, relevant(point.guards, index)), [&] {
    chosen = tiles_.choose("s", low, high, scalar);
    starts_.push_back({scalar, low, high, chosen, place()});
  });
  return chosen;
}

// Where a window can move, the start is added to the place within the window.
tile::Scalar PointBuilder::dynamic_slice(const Point& point) {
  const Access& read = point.relation.operands[0].at(0);
  const Type x = graph_.type(point.operands[0]);
  Indices index = point.here(read);
  for (int i = 0; i < x.rank(); ++i) {
    if (!read.is_data_dependent(i)) continue;
    const auto at = static_cast<size_t>(i);
    const Dim last = x.dim(i) - point.type.dim(i);
    index[at] = index[at] + start(point, 1 + i, point.relation.operands[at + 1].at(0), 0, last + 1);
  }
  return at(point.operands[0], std::move(index), point.guards);
}

tile::Scalar PointBuilder::dynamic_update(const Point& point) {
  const Access& read = point.relation.operands[1].at(0);
  const Type x = graph_.type(point.operands[0]), update = graph_.type(point.operands[1]);
  Indices index = point.iters;
  Guards guards;
  for (int i = 0; i < x.rank(); ++i) {
    if (!read.is_data_dependent(i)) continue;
    const auto at = static_cast<size_t>(i);
    index[at] = index[at] - window_start(point, i);
    guards.push_back({index[at], 0, update.dim(i)});
  }
  if (guards.empty()) return at(point.operands[1], std::move(index), point.guards);
  return at_or(point.operands[1], std::move(index), point.guards, guards,
               at(point.operands[0], point.iters, point.guards));
}

IndexExpr PointBuilder::window_start(const Point& point, int dim) {
  const Dim whole = graph_.type(point.operands[0]).dim(dim);
  const Dim size = graph_.type(point.operands[1]).dim(dim);
  const Access& read = point.relation.operands[static_cast<size_t>(dim) + 2].at(0);
  return start(point, 2 + dim, read, 0, whole - size + 1);
}

void PointBuilder::store_update(const Indices& index, const Guards& guards) {
  const Point point = this->point(graph_.producer(graph_.outputs()[0]), index, guards);
  const Access& read = point.relation.operands[1].at(0);
  Indices target = index;
  for (size_t i = 0; i < target.size(); ++i)
    if (read.is_data_dependent(static_cast<int>(i)))
      target[i] =
          HONE_PLANT(update_start, target[i] + window_start(point, static_cast<int>(i)), target[i]);
  store(0, target, at(point.operands[1], index, guards), guards);
}

tile::Scalar PointBuilder::gather(const Point& point) {
  const Access& read = point.relation.operands[0].at(0);
  const Type x = graph_.type(point.operands[0]);
  const Dims& sizes = point.op.dims("sizes");
  Indices index = point.here(read);
  size_t component = 0;
  for (int64_t axis : point.op.ints("index_map")) {
    if (!read.is_data_dependent(static_cast<int>(axis))) continue;
    const auto at = static_cast<size_t>(axis);
    index[at] = index[at] + start(point, 1, point.relation.operands[1].at(component++), 0,
                                  x.dim(static_cast<int>(axis)) - sizes[at] + 1);
  }
  return at(point.operands[0], std::move(index), point.guards);
}

}  // namespace hone
