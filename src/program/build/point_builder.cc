#include "program/build/point_builder.h"

#include <algorithm>
#include <bit>

#include "base/planted.h"
#include "ir/op_facts.h"
#include "program/tiles/bounds.h"

namespace hone {

namespace {

bool same(const Guard& a, const Guard& b) {
  return a.value == b.value && a.lower == b.lower && a.upper == b.upper;
}

bool contains(const std::vector<Guard>& guards, const Guard& guard) {
  return std::ranges::any_of(guards, [&](const Guard& other) { return same(guard, other); });
}

std::vector<Guard> both(std::vector<Guard> guards, const std::vector<Guard>& more) {
  for (const Guard& guard : more)
    if (!contains(guards, guard)) guards.push_back(guard);
  return guards;
}

// Compares bits: -0 is not 0.
bool same(const PointBuilder::Value& a, const PointBuilder::Value& b) {
  if (a.index() != b.index()) return false;
  if (const double* real = std::get_if<double>(&a))
    return std::bit_cast<uint64_t>(*real) == std::bit_cast<uint64_t>(std::get<double>(b));
  return a == b;
}

}  // namespace

StagePlace kernel_place(const KernelBody& body, TileBuilder& tiles,
                        const std::optional<PreparedInput>& prepared) {
  const Graph& graph = body.graph;
  StagePlace place;
  for (size_t i = body.in_place ? 1 : 0; i < graph.inputs().size(); ++i) {
    const bool is_prepared = prepared && prepared->parameter == i;
    const Type type =
        is_prepared ? prepared->type : stored_type(body.inputs[i], graph.type(graph.inputs()[i]));
    place.inputs.push_back({tiles.buffer(fmt::format("x{}", i), type, BufferRole::input)});
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i)
    place.outputs.push_back({tiles.buffer(
        fmt::format("y{}", i), stored_type(body.outputs[i], graph.type(graph.outputs()[i])),
        body.in_place ? BufferRole::update : BufferRole::output)});
  for (const Donation& donation : graph.donations())
    tiles.set_donor(place.outputs[donation.output].buffer, place.inputs[donation.input].buffer);
  return place;
}

tile::BufferId ScratchSource::buffer(std::string_view name, Type type) {
  const size_t at = asked_++;
  if (known_ != nullptr && at < known_->size()) {
    const Type before = tiles_.program().buffers[(*known_)[at]].type;
    bool has_room = before.dtype() == type.dtype() && before.rank() == type.rank();
    for (int d = 0; has_room && d < type.rank(); ++d)
      has_room = provably_le(type.dim(d), before.dim(d));
    if (has_room) return (*known_)[at];
  }
  const tile::BufferId buffer = tiles_.buffer(name, type, BufferRole::scratch);
  if (known_ != nullptr) {
    known_->resize(std::max(known_->size(), at + 1), buffer);
    (*known_)[at] = buffer;
  }
  return buffer;
}

PointBuilder::PointBuilder(const KernelBody& body, TileBuilder& tiles, const StagePlace& place)
    : body_(body),
      graph_(body.graph),
      tiles_(tiles),
      outputs_(place.outputs),
      outermost_(tiles.depth()),
      parameters_(graph_.value_count()),
      relations_(graph_.node_count()),
      known_(graph_.value_count()),
      is_pinned_(graph_.value_count()) {
  for (size_t i = 0; i < graph_.inputs().size(); ++i) parameters_[graph_.inputs()[i].index] = i;
  if (body.in_place) inputs_.push_back(std::nullopt);
  inputs_.insert(inputs_.end(), place.inputs.begin(), place.inputs.end());
}

// ---- Values -------------------------------------------------------------------------------------

tile::Scalar PointBuilder::at(ValueId value, Indices index, Guards guards) {
  for (const auto& [known, scalar] : bound_)
    if (known == value) return scalar;
  guards = relevant(guards, index);
  const TileBounds bounds(tiles_.program());
  for (IndexExpr& expr : index) expr = bounds.simplified(expr, guards);
  if (const Known* known = find(value, index, guards)) return known->scalar;
  Scalar scalar = 0;
  tiles_.within(home(value, index, guards), [&] {
    scalar = compute(value, index, guards);
    known_[value.index].push_back({value, std::move(index), std::move(guards), scalar, place()});
  });
  return scalar;
}

tile::Scalar PointBuilder::at_or(ValueId value, Indices index, const Guards& guards,
                                 const Guards& own, Scalar other) {
  const Guards open = needed(own, guards);
  if (open.empty()) return at(value, std::move(index), both(guards, own));
  const TileBounds bounds(tiles_.program());
  for (const Guard& guard : open)
    if (bounds.never(guard, guards)) return other;
  while (follow(value, index)) {
  }
  if (is_parameter(graph_.opcode(graph_.producer(value))))
    return load(value, index, guards, open, other);
  const Scalar inside = at(value, std::move(index), both(guards, open));
  return tiles_.compute(Opcode::select, {holds(open), inside, other});
}

void PointBuilder::pin(NodeId node) {
  for (ValueId result : graph_.results(node)) is_pinned_[result.index] = true;
  for (NodeId user : graph_.nodes())
    for (ValueId operand : graph_.operands(user))
      if (!operand.is_none() && is_pinned_[operand.index])
        for (ValueId result : graph_.results(user)) is_pinned_[result.index] = true;
}

tile::Scalar PointBuilder::compute(ValueId value, const Indices& index, const Guards& guards) {
  const NodeId node = graph_.producer(value);
  const Opcode opcode = graph_.opcode(node);
  const DType dtype = graph_.type(value).dtype();
  if (is_parameter(opcode)) return load(value, index, guards);
  if (is_constant(opcode)) {
    const Tensor& constant = graph_.constant(node);
    HONE_CHECK(constant.elements() == 1, "a constant of {} elements in a kernel",
               constant.elements());
    return is_real(dtype) ? number(wide_type(dtype), constant.real_at(0))
                          : number(dtype, constant.integer_at(0));
  }
  Point point = this->point(node, index, guards);
  switch (class_of(opcode)) {
    case OpClass::elementwise: return elementwise(point);
    case OpClass::movement: return moved(point);
    case OpClass::segmented: return segment_reduce(point);
    case OpClass::contraction: return contract(point, zero(wide_type(dtype)));
    case OpClass::reduction:
    case OpClass::window: return opcode == Opcode::arg_reduce ? arg_reduce(point) : fold(point);
    default: break;
  }
  static constexpr std::pair<Opcode, Scalar (PointBuilder::*)(const Point&)> kOthers[] = {
      {Opcode::iota, &PointBuilder::iota},
      {Opcode::rng_bits, &PointBuilder::rng_bits},
      {Opcode::dynamic_slice, &PointBuilder::dynamic_slice},
      {Opcode::dynamic_update, &PointBuilder::dynamic_update},
      {Opcode::gather, &PointBuilder::gather}};
  for (const auto& [other, compute] : kOthers)
    if (other == opcode) return (this->*compute)(point);
  HONE_CHECK(false, "{} has no points", name(opcode));
}

PointBuilder::Point PointBuilder::point(NodeId node, const Indices& index, const Guards& guards) {
  Point point = {.node = node,
                 .op = graph_.op(node),
                 .operands = graph_.operands(node),
                 .relation = relation(node),
                 .type = graph_.type(graph_.result(node)),
                 .iters = index,
                 .guards = guards};
  point.iters.resize(point.relation.dims.size(), 0);
  return point;
}

tile::Scalar PointBuilder::load(ValueId parameter, const Indices& index, const Guards& guards,
                                const Guards& own, std::optional<Scalar> other) {
  if (elements_) {
    const std::optional<Scalar> element = elements_(parameter, index);
    if (element && (!other || own.empty())) return *element;
    if (element) return tiles_.compute(Opcode::select, {holds(own), *element, *other});
  }
  const size_t at = parameters_[parameter.index];
  const tile::BufferId buffer = inputs_[at].value().buffer;
  const Type type = tiles_.program().buffers[buffer].type;
  const DType dtype = type.dtype(), wide = wide_type(dtype);
  // No element is ever needed.
  if (type.elements().is(0)) return other ? *other : zero(wide);
  const Guards all = both(own, relevant(guards, index));
  const TileBounds bounds(tiles_.program());
  Indices stored = stored_input(at, index);
  for (IndexExpr& expr : stored) expr = bounds.simplified(expr, all);
  // Guards that decide nothing are only there so that the load stays inside.
  const bool is_inside = !bounds.outside(stored, own, type);
  while (std::optional<int> axis = bounds.outside(stored, all, type)) {
    if (!provably_le(1, type.dim(*axis))) break;
    // Nothing that is needed lies outside, whether this can be proved or not.
    IndexExpr& expr = stored[static_cast<size_t>(*axis)];
    expr = tiles_.choose("at", 0, type.dim(*axis), position(DType::i64, expr));
  }
  // A value that a stage has kept ends where its block does.
  const Guards& kept = is_inside && inputs_[at]->first.empty() ? own : all;
  if (kept.empty()) return tiles_.cast(tiles_.load(buffer, std::move(stored)), wide);
  const std::optional<Scalar> otherwise = other ? number_as(dtype, *other) : zero(dtype);
  const Scalar loaded =
      tiles_.load(buffer, std::move(stored), kept, otherwise ? *otherwise : zero(dtype));
  const Scalar number = tiles_.cast(loaded, wide);
  return otherwise ? number : tiles_.compute(Opcode::select, {holds(own), number, *other});
}

TileBuilder::Indices PointBuilder::stored_input(size_t parameter, const Indices& index) const {
  const Indices& first = inputs_[parameter]->first;
  if (first.empty())
    return HONE_PLANT(input_layout, stored_index(body_.inputs[parameter], index), index);
  Indices held;
  for (size_t d = 0; d < index.size(); ++d) held.push_back(index[d] - first[d]);
  return stored_index(body_.inputs[parameter], held);
}

tile::Scalar PointBuilder::operand(const Point& point, int i) {
  const auto at = static_cast<size_t>(i);
  return this->at(point.operands[at], point.here(point.relation.operands[at].at(0)), point.guards);
}

tile::Scalar PointBuilder::rounded(Scalar scalar, DType dtype) {
  return tiles_.cast(tiles_.cast(scalar, dtype), wide_type(dtype));
}

bool PointBuilder::follow(ValueId& value, Indices& index) {
  const NodeId node = graph_.producer(value);
  if (!only_moves(graph_.opcode(node))) return false;
  Indices next;
  for (const IndexExpr& expr : relation(node).operands[0].at(0).index)
    next.push_back(expr.substitute(index));
  index = std::move(next);
  value = graph_.operands(node)[0];
  return true;
}

tile::Scalar PointBuilder::holds(const Guards& guards) {
  std::optional<Scalar> all;
  auto add = [&](Scalar condition) {
    all = all ? tiles_.compute(Opcode::and_, {*all, condition}) : condition;
  };
  const TileBounds bounds(tiles_.program());
  for (const Guard& guard : guards) {
    const DimRange range = bounds.of(guard.value);
    const bool is_small = range.low.range().low > INT32_MIN && range.high.range().high < INT32_MAX;
    const DType dtype = is_small ? DType::i32 : DType::i64;
    const Scalar value = position(dtype, guard.value);
    if (!provably_le(guard.lower, range.low))
      add(compare("ge", value, position(dtype, guard.lower)));
    if (!provably_lt(range.high, guard.upper))
      add(compare("lt", value, position(dtype, guard.upper)));
  }
  HONE_CHECK(all.has_value(), "a choice that is none");
  return *all;
}

const AccessRelation& PointBuilder::relation(NodeId node) {
  std::optional<AccessRelation>& known = relations_[node.index];
  if (!known) known = relation_of(graph_, node);
  return *known;
}

TileBuilder::Indices PointBuilder::Point::here(const Access& access) const {
  Indices index;
  for (const IndexExpr& expr : access.index) index.push_back(expr.substitute(iters));
  return index;
}

PointBuilder::Guards PointBuilder::Point::guards_here(const Access& access) const {
  Guards here;
  for (const Guard& guard : access.guards)
    here.push_back({guard.value.substitute(iters), guard.lower, guard.upper});
  return here;
}

// ---- Outputs ------------------------------------------------------------------------------------

TileBuilder::Indices PointBuilder::stored(size_t output, const Indices& index) const {
  const TileBounds bounds(tiles_.program());
  const Indices& first = outputs_[output].first;
  Indices held = index;
  for (size_t d = 0; d < first.size(); ++d) held[d] = held[d] - first[d];
  Indices stored = stored_index(body_.outputs[output], held);
  for (IndexExpr& expr : stored) expr = bounds.simplified(expr);
  return stored;
}

void PointBuilder::store(size_t output, const Indices& index, Scalar value, const Guards& guards) {
  const tile::BufferId buffer = outputs_[output].buffer;
  const Type type = tiles_.program().buffers[buffer].type;
  value = tiles_.cast(value, type.dtype());
  Indices at = stored(output, index);
  Guards all = guards;
  // In a layout of blocks the guards may bound a quotient that no proof finds. Points that they let
  // through lie inside.
  const TileBounds bounds(tiles_.program());
  for (int i = 0; i < type.rank(); ++i)
    if (const std::optional<int> axis = bounds.outside(at, all, type))
      all.push_back({at[static_cast<size_t>(*axis)], 0, type.dim(*axis)});
  tiles_.store(buffer, std::move(at), value, std::move(all));
}

void PointBuilder::store_outputs(const Indices& index, const Guards& guards) {
  if (body_.in_place) return store_update(index, guards);
  // All before the first is stored, which may lie where another one is computed from.
  std::vector<Scalar> scalars;
  for (ValueId output : graph_.outputs()) scalars.push_back(at(output, index, guards));
  for (size_t i = 0; i < outputs_.size(); ++i) store(i, index, scalars[i], guards);
}

// ---- Numbers ------------------------------------------------------------------------------------

tile::Scalar PointBuilder::number(DType dtype, Value value) {
  for (const KnownNumber& known : numbers_)
    if (known.dtype == dtype && same(known.value, value) && is_open(known.place))
      return known.scalar;
  Scalar scalar = 0;
  tiles_.within(tiles_.outermost(), [&] {
    scalar = std::holds_alternative<double>(value)
                 ? tiles_.real(dtype, std::get<double>(value))
                 : tiles_.integer(dtype, std::get<int64_t>(value));
    numbers_.push_back({dtype, value, scalar, place()});
  });
  return scalar;
}

std::optional<tile::Scalar> PointBuilder::number_as(DType dtype, Scalar scalar) {
  if (tiles_.dtype(scalar) == dtype) return scalar;
  for (const KnownNumber& known : numbers_)
    if (known.scalar == scalar) return number(dtype, Value(known.value));
  return std::nullopt;
}

tile::Scalar PointBuilder::zero(DType dtype) {
  return is_real(dtype) ? number(dtype, 0.0) : number(dtype, int64_t{0});
}

tile::Scalar PointBuilder::compare(std::string_view direction, Scalar a, Scalar b) {
  return tiles_.compute(Opcode::compare, {a, b}, {{"direction", std::string(direction)}});
}

tile::Scalar PointBuilder::position(DType dtype, const IndexExpr& value) {
  if (const std::optional<Dim> constant = value.as_constant(); constant && constant->is_static())
    return number(dtype, wrap_to(dtype, constant->value()));
  return tiles_.position(dtype, value);
}

// ---- Places -------------------------------------------------------------------------------------

PointBuilder::Guards PointBuilder::needed(const Guards& guards, const Guards& others) const {
  const TileBounds bounds(tiles_.program());
  Guards kept;
  for (const Guard& guard : guards) {
    const Guard simple = bounds.simplified(guard, others);
    if (!bounds.always(simple, others) && !contains(kept, simple)) kept.push_back(simple);
  }
  return kept;
}

PointBuilder::Guards PointBuilder::relevant(const Guards& guards, const Indices& index) const {
  const int indices = static_cast<int>(tiles_.program().indices.size());
  Guards kept;
  for (const Guard& guard : needed(guards, {})) {
    bool is_shared = false;
    for (int i = 0; i < indices && !is_shared; ++i)
      is_shared = guard.value.mentions(i) && std::ranges::any_of(index, [&](const IndexExpr& expr) {
                    return expr.mentions(i);
                  });
    if (is_shared) kept.push_back(guard);
  }
  return kept;
}

int PointBuilder::home(ValueId value, const Indices& index, const Guards& guards) const {
  if (is_pinned_[value.index]) return tiles_.depth();
  int depth = std::max(tiles_.outermost(), outermost_);
  for (const IndexExpr& expr : index) depth = std::max(depth, tiles_.depth_of(expr));
  for (const Guard& guard : guards) depth = std::max(depth, tiles_.depth_of(guard.value));
  return depth;
}

bool PointBuilder::is_open(Place place) const {
  return place.depth <= tiles_.depth() && tiles_.loop_at(place.depth) == place.loop;
}

// A value that holds under fewer guards will do.
const PointBuilder::Known* PointBuilder::find(ValueId value, const Indices& index,
                                              const Guards& guards) const {
  for (const Known& known : known_[value.index]) {
    const bool is_wider = std::ranges::all_of(
        known.guards, [&](const Guard& guard) { return contains(guards, guard); });
    if (is_wider && is_open(known.place) && known.index == index) return &known;
  }
  return nullptr;
}

}  // namespace hone
