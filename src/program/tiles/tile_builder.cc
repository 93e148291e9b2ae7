#include "program/tiles/tile_builder.h"

#include <algorithm>

#include "ir/op_def.h"

namespace hone {

using namespace tile;

BufferId TileBuilder::buffer(std::string_view name, Type type, BufferRole role) {
  program_.buffers.push_back({std::string(name), type, role});
  return static_cast<BufferId>(program_.buffers.size() - 1);
}

Scalar TileBuilder::scalar(DType dtype) {
  program_.scalars.push_back(dtype);
  return static_cast<Scalar>(program_.scalars.size() - 1);
}

Index TileBuilder::index(std::string_view name, Dim low, Dim high) {
  std::string free(name);
  for (int n = 2; std::ranges::find(names_, free) != names_.end(); ++n)
    free = fmt::format("{}_{}", name, n);
  names_.push_back(free);
  program_.indices.push_back({std::move(free), low, high});
  return static_cast<Index>(program_.indices.size() - 1);
}

void TileBuilder::add(Statement statement) {
  HONE_CHECK(!open_.empty(), "a statement outside of all loops");
  open_.back()->push_back(std::move(statement));
}

template <class Fill>
void TileBuilder::add_loop(Loop loop, const Fill& fill) {
  Block body;
  const size_t around = names_.size() - 1;  // without the loop's own
  open_.push_back(&body);
  fill(loop, IndexExpr::iter(loop.index));
  open_.pop_back();
  names_.resize(around);
  loop.body = std::move(body);
  if (open_.empty())
    program_.phases.push_back(std::move(loop));
  else
    add({std::move(loop)});
}

void TileBuilder::loop(Exec exec, std::string_view name, Dim extent,
                       const std::function<void(IndexExpr)>& body) {
  add_loop({.index = index(name, 0, extent), .exec = exec, .body = {}},
           [&](Loop&, IndexExpr i) { body(std::move(i)); });
}

Scalar TileBuilder::carry(Exec exec, std::string_view name, Dim extent, Scalar initial,
                          std::optional<Opcode> combine, const Step& step) {
  const Carry carry = {.initial = initial,
                       .inside = scalar(dtype(initial)),
                       .next = 0,
                       .result = scalar(dtype(initial)),
                       .combine = combine};
  add_loop(
      {.index = index(name, 0, extent), .exec = exec, .carried = {carry}, .body = {}},
      [&](Loop& loop, IndexExpr i) { loop.carried[0].next = step(std::move(i), carry.inside); });
  return carry.result;
}

std::vector<Scalar> TileBuilder::carry(std::string_view name, Dim extent,
                                       const std::vector<Scalar>& initial, const Steps& steps) {
  Loop loop = {.index = index(name, 0, extent), .exec = Exec::loop, .body = {}};
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

void TileBuilder::store(BufferId buffer, Indices index, Scalar value, std::vector<Guard> guards) {
  add({Store{buffer, std::move(index), value, std::move(guards)}});
}

IndexExpr TileBuilder::choose(std::string_view name, Dim low, Dim high, Scalar value) {
  const Index result = index(name, low, high);
  add({Choose{result, value}});
  return IndexExpr::iter(result);
}

}  // namespace hone
