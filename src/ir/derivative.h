#pragma once

#include <span>
#include <vector>

#include "ir/builder.h"

// How the results of an op change when its operands do: OpDef::derivative. The rules stand in
// src/ir/derivatives, by family; docs/derivatives.md explains them with an example.

namespace hone {

// Only reals that ops compute with change by small amounts. The values of other types are constants
// to derivatives: integers, bools, and numbers that are stored in a few bits.
inline bool is_differentiable(DType dtype) { return kReal.contains(dtype); }
inline bool is_differentiable(Type type) { return is_differentiable(type.dtype()); }

// One application, while its tangents are made.
struct TangentCall {
  Builder& builder;
  Op op;
  std::span<const Value> operands;
  std::span<const Value> results;
  std::span<const Value> tangents;  // per operand; absent: the operand does not change

  Value operand(size_t i) const { return operands[i]; }
  Value result() const { return results[0]; }
  // Absent if the operand does not change, and for one that was left out.
  Value tangent(size_t i) const { return i < tangents.size() ? tangents[i] : Value(); }
};

// One application of an op that is linear in some operands, while cotangents go back through it.
struct TransposeCall {
  Builder& builder;
  Op op;
  std::span<const Value> operands;    // absent where the op is linear
  std::span<const Type> types;        // of the operands
  std::span<const Value> cotangents;  // per result; absent: zero
  const std::vector<bool>& linear;    // per operand: whether its cotangent is asked for
  std::span<const Type> result_types;

  Type type(size_t i) const { return types[i]; }
  Value cotangent() const { return cotangents[0]; }
};

// Per result; absent: it does not change. The tangents are made of linear ops on the tangents of
// operands.
using TangentFn = std::vector<Value> (*)(const TangentCall&);
// Per operand; absent: zero, or not asked for.
using TransposeFn = std::vector<Value> (*)(const TransposeCall&);

struct Derivative {
  // The results do not change, or only in jumps: floor, sign, stop_gradient.
  bool is_constant = false;
  // Null: the op is linear in all operands that can change, together. Its tangent is the op itself,
  // applied to the tangents.
  TangentFn tangent = nullptr;
  // Null: no tangent is made of the op.
  TransposeFn transpose = nullptr;
  // The same function, in ops that have derivatives. No results: this application has a tangent.
  ExpandFn spelling = nullptr;
};

inline constexpr Derivative kConstantDerivative = {.is_constant = true};

}  // namespace hone
