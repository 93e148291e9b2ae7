#pragma once

#include <functional>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "program/tiles/tiles.h"

namespace hone {

// Writes a TileProgram in code that reads like its text:
//
//   TileBuilder b("sum");
//   auto x = b.buffer("x", type, BufferRole::input);
//   b.loop(Exec::threads, "i", 64, [&](IndexExpr i) {
//     auto zero = b.real(DType::f32, 0);
//     auto sum = b.carry(Exec::loop, "k", 784, zero, Opcode::add, [&](IndexExpr k, tile::Scalar
//     acc) {
//       return b.compute(Opcode::add, {acc, b.load(x, {i, k})});
//     });
//     b.store(y, {i}, sum);
//   });
//   TileProgram program = std::move(b).finish();
//
// What is wrong is found by verify().
class TileBuilder {
 public:
  using Scalar = tile::Scalar;
  using Indices = std::vector<IndexExpr>;

  explicit TileBuilder(std::string_view name) { program_.name = name; }

  // Inputs come first, then outputs, then the others.
  tile::BufferId buffer(std::string_view name, Type type, BufferRole role);

  void loop(Exec exec, std::string_view name, Dim extent,
            const std::function<void(IndexExpr)>& body);
  // A loop that carries a value: `step` makes the next one.
  using Step = std::function<Scalar(IndexExpr, Scalar)>;
  Scalar carry(Exec exec, std::string_view name, Dim extent, Scalar initial,
               std::optional<Opcode> combine, const Step& step);
  // Several values, in order.
  using Steps = std::function<std::vector<Scalar>(IndexExpr, const std::vector<Scalar>&)>;
  std::vector<Scalar> carry(std::string_view name, Dim extent, const std::vector<Scalar>& initial,
                            const Steps& steps);

  Scalar real(DType dtype, double value);
  Scalar integer(DType dtype, int64_t value);  // of bool and integer types
  Scalar zero(DType dtype);
  Scalar position(DType dtype, IndexExpr value);
  Scalar compute(Op op, std::vector<Scalar> operands);
  Scalar compute(Opcode opcode, std::vector<Scalar> operands, Attrs attrs = {}) {
    return compute(Op::get(opcode, std::move(attrs)), std::move(operands));
  }
  Scalar cast(Scalar value, DType dtype);  // the value itself if it has the type
  Scalar fma(Scalar a, Scalar b, Scalar c);
  Scalar load(tile::BufferId buffer, Indices index);
  Scalar load(tile::BufferId buffer, Indices index, std::vector<Guard> guards, Scalar otherwise);
  void store(tile::BufferId buffer, Indices index, Scalar value, std::vector<Guard> guards = {});
  // The nearest index in [low, high).
  IndexExpr choose(std::string_view name, Dim low, Dim high, Scalar value);

  DType dtype(Scalar scalar) const { return program_.scalars[scalar]; }
  TileProgram finish() && { return std::move(program_); }

 private:
  Scalar scalar(DType dtype);
  // Under the name, or one made from it if it is taken.
  tile::Index index(std::string_view name, Dim low, Dim high);
  void add(tile::Statement statement);
  template <class Fill>
  void add_loop(tile::Loop loop, const Fill& fill);

  TileProgram program_;
  std::vector<tile::Block*> open_;  // the bodies of the loops around what comes next
  std::vector<std::string> names_;  // of the indices in scope
};

}  // namespace hone
