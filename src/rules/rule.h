#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/text.h"

// A rewrite rule as data: two graphs over the same inputs that compute the same, under a guard, and
// what has been shown about them. docs/rules.md describes the text.

namespace hone {

// How far a rule has been shown to be true; each rung holds for more than the one before.
enum class Rung : uint8_t {
  none,       // not at all
  sampled,    // all elements agree on random numbers of a prime field, at some sizes
  small,      // all elements are the same polynomials, at all small sizes
  all_sizes,  // proved for every size that the guard admits
};
std::string_view name(Rung rung);

// The effect on floats of a rule that is true of real numbers.
enum class FloatEffect : uint8_t {
  unknown,       // not measured
  exact,         // the same bits
  reassociates,  // errors of the same size
  finite_only,   // the same, but NaN of inputs reaches other elements
  real_only,     // overflows or loses accuracy: not used by default
};
std::string_view name(FloatEffect effect);

enum class Relation : uint8_t { equal, unequal, less, at_most };
std::string_view name(Relation relation);

// A condition on sizes.
struct Condition {
  Dim left;
  Relation relation;
  Dim right;

  // Checks sizes that are numbers, once they are bound; symbolic ones must provably fit.
  bool holds(const Bindings& sizes) const;
  std::string to_string() const;
  bool operator==(const Condition&) const = default;
};

// A rule that is written once for several ops is a rule for each of them: it is matched, verified
// and proved as any other. This says which one it is, so that print() can write them as one again.
struct OpChoice {
  std::string rule;  // the name that they have together: @rows_of_add is of @rows_of
  std::string word;  // what stands for the op
  std::vector<Opcode> ops;
  size_t at = 0;
  bool operator==(const OpChoice&) const = default;
};

struct Rule {
  std::string name;
  Graph left, right;  // the same inputs; outputs of the same types, in the same order
  std::vector<Condition> guard;
  Rung rung = Rung::none;
  FloatEffect floats = FloatEffect::unknown;
  // Values of the right side, ascending, that may overflow or vanish though nothing of the left
  // side does (float_needs.h). The rule holds of floats where they are known to do neither.
  std::vector<ValueId> within = {};
  std::optional<OpChoice> choice = {};

  bool admits(const Bindings& sizes) const;
  std::vector<Symbol> symbols() const;
};

// Checks that a match of the left side says everything about the right one. The left side has a
// node for each output and uses all inputs. The types of its inputs and the attributes of its ops
// tell all symbols. Reals and bools, no regions, no effects.
Status check(const Rule& rule);

// `rule @name(%x: f32[N]) -> f32[N] where N in 1..64 { left } => { right } when N < 5 by small`.
// `rule @name for op in add, sub (...)` gives a rule for each of the ops, named @name_add and so
// on. Errors have their place as "file:line:column". Names are unique; each rule passes check().
Result<std::vector<Rule>> parse_rules(std::string_view text, const ParseOptions& options = {});
std::string print(const Rule& rule);
// With empty lines between. Rules for the ops of one choice that are alike in all else are one
// text.
std::string print(std::span<const Rule> rules);

}  // namespace hone
