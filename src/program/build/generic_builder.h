#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "program/tiles/tile_builder.h"

// What build_generic's files share.

namespace hone {

class GenericBuilder {
 public:
  GenericBuilder(const Application& application, std::span<const Type> results,
                 std::string_view name);
  TileProgram build() &&;

 private:
  using Scalar = tile::Scalar;
  using Indices = TileBuilder::Indices;

  // ---- Ops, by what a point does (generic.cc) --------------------------------------------------
  void pointwise();
  void move();
  void iota();
  void rng_bits();
  void fold();
  void accumulate();
  void arg_reduce();
  void contract();
  // ---- Ops that find elements by their data (generic_indexed.cc) -------------------------------
  void dynamic_slice();
  void dynamic_update();
  void gather();
  void scatter();
  void sort();

  // ---- Loops -----------------------------------------------------------------------------------
  // Over all parallel dims; the innermost within a thread.
  void each_point(const std::function<void()>& body);
  // Over these dims of the relation, nested; `exec` of all but the innermost.
  void nest(std::span<const int> dims, Exec exec, const std::function<void()>& body);
  // Over the reduction dims: step(so far) is what comes next.
  Scalar reduced(Scalar initial, Opcode combine, const std::function<Scalar(Scalar)>& step);
  // Over all elements of a type; the loops of a phase of their own.
  void each_element(Type type, Exec exec, const std::function<void(const Indices&)>& body);
  std::vector<int> dims_of(IterKind kind) const;
  Exec outer_exec() const;  // threads, unless they would share bytes

  // ---- Elements --------------------------------------------------------------------------------
  tile::BufferId input(int operand) const { return inputs_[static_cast<size_t>(operand)]; }
  Type operand(int i) const { return application_.operand(i); }
  Op op() const { return application_.op; }
  Indices here(const std::vector<IndexExpr>& index) const;  // at the point of the loops around
  std::vector<Guard> here(const std::vector<Guard>& guards) const;
  Scalar load(int operand, const Access& access);
  Scalar load(int operand, const Access& access, Scalar otherwise);
  void store(Scalar value, int result = 0);
  Scalar identity(Opcode combine, DType dtype);
  Scalar compare(std::string_view direction, Scalar a, Scalar b);
  // Index values are taken modulo nothing: u64 above i64's range counts as its largest.
  IndexExpr start(std::string_view name, int operand, const Access& access, Dim low, Dim high);

  const Application& application_;
  std::span<const Type> results_;
  AccessRelation relation_;
  TileBuilder tiles_;
  std::vector<tile::BufferId> inputs_;  // per operand; of absent ones unspecified
  std::vector<tile::BufferId> outputs_;
  std::vector<IndexExpr> iters_;  // per dim of the relation: the loop's index
};

}  // namespace hone
