#pragma once

#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "ir/access.h"
#include "ir/op.h"

// The definition of an op. A family's file under ops/ fills one OpDef per row of ops.def;
// inference, evaluation, access relation, documentation and legality all come from there.

namespace hone {

class Graph;
class Builder;
class Value;

// The kind of work of an op: a column of ops.def.
enum class OpClass : uint8_t {
  leaf,         // holds its elements: parameter, constant
  generator,    // makes elements from their places: iota, rng_bits
  elementwise,  // result[i] depends on operand[i] alone; all have one shape
  movement,     // copies each element from a place that follows from its own: transpose, pad
  contraction,  // sums products of two operands: dot, conv
  reduction,    // combines elements along axes that the result lacks: reduce, arg_reduce
  window,       // combines the elements of windows: window_reduce
  segmented,    // combines rows of segments that data divides: segment_reduce
  indexed,      // finds elements by data: gather, dynamic_slice, dynamic_update
  ordered,      // makes elements in an order, in a kernel of its own: sort, scatter, cumulative
  control,      // runs regions: if, while, scan, call
  collective,   // talks to other devices: all_reduce, permute
  composite,    // has expand() into ops of the other classes: softmax
};

// The element that changes nothing when an op combines it with another one.
enum class Identity : uint8_t { none, zero, one, lowest, highest, all_bits };

// Facts that hold across classes.
struct OpTraits {
  bool commutative = false;  // swapping the two operands changes nothing
  bool moves_data = false;   // values are copied, never computed
  bool has_effect = false;   // must not be removed or merged (collectives)
  bool is_stepwise = false;  // a composite whose steps are rounded to their types: they are seen
  // Dims stay in place, and an element depends on elements around its own place along them: slice
  // and conv do so, transpose and reshape do not. Elementwise ops need not say it.
  bool is_local = false;
  bool is_piecewise = false;  // guards choose which operand an element comes from: pad, concat
  // The result may lie in the operand's memory, or a concat's operands in that of its result.
  bool may_be_view = false;
  // An op that changes its first operand: the operand that holds what is new. 0: another op.
  int8_t updates = 0;
  // Associative ops (up to rounding, for reals) have one; they combine elements in reductions.
  Identity identity = Identity::none;
  std::string_view kind = "";  // what reductions call it, if not by its name: "sum" of add
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
  // derivative.h. Null: a composite's is that of its expansion, other ops have none.
  const struct Derivative* derivative = nullptr;
  Op (*canonical)(Op) = nullptr;  // see Op::canonical; beyond what AttrSpec::each does
};

const OpDef& op_def(Opcode opcode);
std::string_view family(Opcode opcode);
OpClass class_of(Opcode opcode);
std::string_view name(OpClass op_class);
inline bool is_composite(Opcode opcode) { return class_of(opcode) == OpClass::composite; }
inline bool is_elementwise(Opcode opcode) { return class_of(opcode) == OpClass::elementwise; }
inline bool is_leaf(Opcode opcode) { return class_of(opcode) == OpClass::leaf; }
// The cost of one element of the type, in slots of a vector instruction, 2 to a cycle.
double slots_of(Opcode opcode, DType dtype);

// The op that combines elements, by its name or by what reductions call it: "sum" is add.
Opcode combine_of(std::string_view kind);
// The number that changes nothing when the op combines it with others of the type.
std::variant<int64_t, double> identity_of(Opcode combine, DType dtype);

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
