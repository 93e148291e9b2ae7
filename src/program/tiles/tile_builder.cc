#include "program/tiles/tile_builder.h"

#include <algorithm>

#include "ir/op_def.h"

namespace hone {

using namespace tile;

BufferId TileBuilder::buffer(std::string_view name, Type type, BufferRole role) {
  std::string free(name);
  for (int n = 2;
       std::ranges::find(program_.buffers, free, &TileBuffer::name) != program_.buffers.end(); ++n)
    free = fmt::format("{}_{}", name, n);
  program_.buffers.push_back({std::move(free), type, role});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

Scalar TileBuilder::scalar(DType dtype) {
  program_.scalars.push_back(dtype);
  return static_cast<Scalar>(program_.scalars.size() - 1);
}

bool TileBuilder::is_taken(std::string_view name) const {
  auto has = [&](const Open& open) {
    return std::ranges::find(open.names, name) != open.names.end();
  };
  return std::ranges::any_of(open_, has) || std::ranges::any_of(set_aside_, has);
}

Index TileBuilder::index(std::string_view name, Dim low, Dim high, int depth) {
  std::string free(name);
  for (int n = 2; is_taken(free); ++n) free = fmt::format("{}_{}", name, n);
  program_.indices.push_back({std::move(free), low, high});
  index_depths_.push_back(depth);
  return static_cast<Index>(program_.indices.size() - 1);
}

void TileBuilder::add(Statement statement) {
  HONE_CHECK(!open_.empty(), "a statement outside of all loops");
  open_.back().body->push_back(std::move(statement));
}

template <class Fill>
void TileBuilder::add_loop(Loop loop, const Fill& fill) {
  Block body;
  const TileIndex& index = program_.indices[static_cast<size_t>(loop.index)];
  open_.push_back({.body = &body,
                   .exec = loop.exec,
                   .has_trips = provably_le(1, index.high),
                   .number = loops_++,
                   .names = {index.name}});
  fill(loop, IndexExpr::iter(loop.index));
  open_.pop_back();
  loop.body = std::move(body);
  if (open_.empty())
    program_.phases.push_back(std::move(loop));
  else
    add({std::move(loop)});
}

void TileBuilder::loop(Exec exec, std::string_view name, Dim extent,
                       const std::function<void(IndexExpr)>& body, std::optional<Span> span) {
  const Index counter = index(name, 0, extent, depth() + 1);
  program_.indices[static_cast<size_t>(counter)].span = std::move(span);
  add_loop({.index = counter, .exec = exec, .body = {}},
           [&](Loop&, IndexExpr i) { body(std::move(i)); });
}

Scalar TileBuilder::carry(Exec exec, std::string_view name, Dim extent, Scalar initial,
                          std::optional<Opcode> combine, const Step& step,
                          std::optional<Span> span) {
  const Carry carry = {.initial = initial,
                       .inside = scalar(dtype(initial)),
                       .next = 0,
                       .result = scalar(dtype(initial)),
                       .combine = combine};
  const Index counter = index(name, 0, extent, depth() + 1);
  program_.indices[static_cast<size_t>(counter)].span = std::move(span);
  add_loop(
      {.index = counter, .exec = exec, .carried = {carry}, .body = {}},
      [&](Loop& loop, IndexExpr i) { loop.carried[0].next = step(std::move(i), carry.inside); });
  return carry.result;
}

std::vector<Scalar> TileBuilder::carry(std::string_view name, Dim extent,
                                       const std::vector<Scalar>& initial, const Steps& steps) {
  Loop loop = {.index = index(name, 0, extent, depth() + 1), .exec = Exec::loop, .body = {}};
  std::vector<Scalar> inside, results;
  for (Scalar s : initial) {
    inside.push_back(scalar(dtype(s)));
    results.push_back(scalar(dtype(s)));
    loop.carried.push_back({s, inside.back(), 0, results.back()});
  }
  add_loop(std::move(loop), [&](Loop& open, IndexExpr i) {
    const std::vector<Scalar> next = steps(std::move(i), inside);
    for (size_t c = 0; c < next.size(); ++c) open.carried[c].next = next[c];
  });
  return results;
}

Scalar TileBuilder::real(DType dtype, double value) {
  const Scalar result = scalar(dtype);
  add({Number{result, value}});
  return result;
}

Scalar TileBuilder::integer(DType dtype, int64_t value) {
  const Scalar result = scalar(dtype);
  add({Number{result, value}});
  return result;
}

Scalar TileBuilder::zero(DType dtype) {
  return is_real(dtype) ? real(dtype, 0) : integer(dtype, 0);
}

Scalar TileBuilder::position(DType dtype, IndexExpr value) {
  const Scalar result = scalar(dtype);
  add({Position{result, std::move(value)}});
  return result;
}

Scalar TileBuilder::compute(Op op, std::vector<Scalar> operands) {
  std::vector<Type> types;
  for (Scalar operand : operands) types.push_back(Type::scalar(dtype(operand)));
  const std::vector<Type> results = infer({op, types}).value();
  const Scalar result = scalar(results[0].dtype());
  add({Compute{result, op, std::move(operands)}});
  return result;
}

Scalar TileBuilder::cast(Scalar value, DType to) {
  if (dtype(value) == to) return value;
  return compute(Opcode::cast, {value}, {{"dtype", to}});
}

Scalar TileBuilder::fma(Scalar a, Scalar b, Scalar c) {
  const Scalar result = scalar(dtype(c));
  add({Fma{result, a, b, c}});
  return result;
}

Scalar TileBuilder::quad(Scalar a, Scalar b, Scalar c) {
  const Scalar result = scalar(DType::i32);
  add({Quad{result, a, b, c}});
  return result;
}

Scalar TileBuilder::pair(Scalar a, Scalar b, Scalar c) {
  const Scalar result = scalar(DType::f32);
  add({Pair{result, a, b, c}});
  return result;
}

Scalar TileBuilder::load(BufferId buffer, Indices index) {
  const Scalar result = scalar(program_.buffers[buffer].type.dtype());
  add({Load{result, buffer, std::move(index)}});
  return result;
}

Scalar TileBuilder::load(BufferId buffer, Indices index, std::vector<Guard> guards,
                         Scalar otherwise) {
  if (guards.empty()) return load(buffer, std::move(index));
  const Scalar result = scalar(program_.buffers[buffer].type.dtype());
  add({Load{result, buffer, std::move(index), std::move(guards), otherwise}});
  return result;
}

Scalar TileBuilder::load_word(BufferId buffer, Indices index, std::vector<Guard> guards,
                              Scalar otherwise) {
  const Scalar result = scalar(DType::u32);
  Load load{result, buffer, std::move(index), std::move(guards)};
  if (!load.guards.empty()) load.otherwise = otherwise;
  load.is_word = true;
  add({std::move(load)});
  return result;
}

void TileBuilder::store(BufferId buffer, Indices index, Scalar value, std::vector<Guard> guards) {
  add({Store{buffer, std::move(index), value, std::move(guards)}});
}

void TileBuilder::product(Product product) { add({std::move(product)}); }

// The name is seen from here on, also by what stands already in a loop that was set aside.
Index TileBuilder::made_index(std::string_view name, Dim low, Dim high) {
  std::string free(name);
  for (int n = 2; std::ranges::count(program_.indices, free, &TileIndex::name) > 0; ++n)
    free = fmt::format("{}_{}", name, n);
  const Index result = index(free, low, high, depth());
  open_.back().names.push_back(program_.indices[static_cast<size_t>(result)].name);
  return result;
}

IndexExpr TileBuilder::choose(std::string_view name, Dim low, Dim high, Scalar value) {
  const Index result = made_index(name, low, high);
  add({Choose{result, value}});
  return IndexExpr::iter(result);
}

IndexExpr TileBuilder::vote(std::string_view name, BufferId buffer, Indices at) {
  const Index result = made_index(name, 0, 2);
  add({BlockVote{result, buffer, std::move(at)}});
  return IndexExpr::iter(result);
}

// ---- Places -------------------------------------------------------------------------------------

void TileBuilder::within(int depth, const std::function<void()>& body) {
  const size_t before = set_aside_.size();
  std::move(open_.begin() + depth, open_.end(), std::back_inserter(set_aside_));
  open_.erase(open_.begin() + depth, open_.end());
  body();
  std::move(set_aside_.begin() + static_cast<std::ptrdiff_t>(before), set_aside_.end(),
            std::back_inserter(open_));
  set_aside_.erase(set_aside_.begin() + static_cast<std::ptrdiff_t>(before), set_aside_.end());
}

int TileBuilder::depth_of(const IndexExpr& expr) const {
  int depth = 0;
  for (size_t i = 0; i < index_depths_.size(); ++i)
    if (index_depths_[i] > depth && expr.mentions(static_cast<int>(i))) depth = index_depths_[i];
  return depth;
}

int TileBuilder::outermost() const {
  int depth = static_cast<int>(open_.size());
  while (depth > 1 && open_[static_cast<size_t>(depth - 1)].exec != Exec::threads &&
         open_[static_cast<size_t>(depth - 1)].has_trips)
    --depth;
  return depth;
}

bool TileBuilder::is_side_by_side(const IndexExpr& expr) const {
  const auto known = static_cast<size_t>(depth_of(expr));
  return std::ranges::any_of(std::span(open_).first(known), [](const Open& open) {
    return open.exec == Exec::unroll || open.exec == Exec::lanes;
  });
}

bool TileBuilder::is_open(Exec exec) const {
  return std::ranges::any_of(open_, [&](const Open& open) { return open.exec == exec; });
}

}  // namespace hone
