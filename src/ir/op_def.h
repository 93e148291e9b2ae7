#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/access.h"
#include "ir/op.h"

// What defines an op. A family's file under ops/ fills one OpDef per row of ops.def; inference,
// evaluation, access relation, documentation and legality all come from there.

namespace hone {

class Graph;
class Builder;
class Value;

enum class Level : uint8_t { primitive, composite };

// Facts that passes and rewrites ask for.
struct OpTraits {
  bool elementwise = false;  // result[i] depends on operand[i] alone; all have one shape
  bool commutative = false;  // swapping the two operands changes nothing
  bool associative = false;  // up to rounding, for reals
  bool moves_data = false;   // values are copied, never computed
  bool has_effect = false;   // must not be removed or merged (collectives)
  bool is_stepwise = false;  // a composite whose steps are rounded to their types: they are seen
};

// An op application whose operand types are known.
struct Application {
  Op op;
  std::span<const Type> operands;              // an absent optional operand is a null Type
  std::span<const Graph* const> regions = {};  // in the order of OpDef::regions

  Type operand(int i) const { return operands[static_cast<size_t>(i)]; }
  bool has_operand(int i) const {
    return i < static_cast<int>(operands.size()) && static_cast<bool>(operand(i));
  }
  int count() const { return static_cast<int>(operands.size()); }
};

using InferFn = Result<std::vector<Type>> (*)(const Application&);
using AccessFn = AccessRelation (*)(const Application&, std::span<const Type> results);
// Spells the composite out; errors stick to the builder.
using ExpandFn = std::vector<Value> (*)(Builder&, Op, std::span<const Value> operands);

struct OpDef {
  Opcode opcode;
  std::string_view summary;  // one line
  // Semantics, in sentences: NaN, division by zero, overflow, out-of-range. For docs/ops.md.
  std::string_view semantics = "";
  // "lhs, rhs"; a trailing ? marks an optional operand, a trailing * a repeated last one.
  std::string_view operands;
  std::string_view results = "result";  // names; a trailing * for any number
  std::string_view regions = "";        // "then, else"
  std::span<const AttrSpec> attrs = {};
  DTypeSet dtypes = kComputable;  // legal element types of the principal operand
  OpTraits traits = {};
  InferFn infer = nullptr;                 // composites without one infer by expansion
  AccessFn access = nullptr;               // null: opaque (control flow, collectives, composites)
  double flops_per_point = 0;              // arithmetic per point of the iteration space
  const struct EvalTable* eval = nullptr;  // reference/eval.h; null for composites
  ExpandFn expand = nullptr;               // composites only
  Op (*canonical)(Op) = nullptr;           // see Op::canonical; beyond what AttrSpec::each does
};

const OpDef& op_def(Opcode opcode);
std::string_view family(Opcode opcode);
Level level(Opcode opcode);
inline bool is_composite(Opcode opcode) { return level(opcode) == Level::composite; }

// Operand and result counts that the strings above allow.
struct Arity {
  int min = 0;
  int max = 0;  // INT_MAX if repeated
};
Arity operand_arity(const OpDef& def);
std::vector<std::string_view> operand_names(const OpDef& def);  // without marks
std::vector<std::string_view> region_names(const OpDef& def);

// Checks arity, absent operands and regions, then asks OpDef::infer. Errors name the op.
Result<std::vector<Type>> infer(const Application& application);

}  // namespace hone
