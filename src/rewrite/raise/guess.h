#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "rewrite/normal_form.h"

// Guesses about which composite computes a value. A guess reads normal forms, proposes an op with
// operands, and may be wrong: the proposal counts only if its expansion has the value's form.

namespace hone {

// A composite that computes a form of the graph.
struct Match {
  Op op;
  std::vector<Form> operands;  // kNoForm: absent
  std::vector<Form> results;
};

class Guess {
 public:
  // `available`: whether the form can be had before the root without computing anything.
  // `exists`: whether it is a value of the graph before the root.
  using Test = std::function<bool(Form)>;
  Guess(NormalForms& forms, Form root, Test available, Test exists)
      : forms(forms), root(root), available_(std::move(available)), exists_(std::move(exists)) {}

  NormalForms& forms;
  const Form root;

  // True if the op (spelled as `form`, by default as itself) computes the root from the operands.
  bool propose(Op op, std::vector<Form> operands, ExpandFn form = nullptr);
  const Match& match() const { return match_; }
  bool exists(Form f) const { return exists_(f); }

  // ---- Looking around ---------------------------------------------------------------------------

  bool is(Form f, Opcode opcode) const { return forms.is(f, opcode); }
  Form operand(Form f, size_t i) const { return forms.operand(f, i); }
  // Without reshapes and broadcasts.
  Form core(Form f) const;
  // The operand of `f` (of two) that is not the splat `number`; kNoForm if there is no such splat.
  Form beside(Form f, double number) const;
  // The operand of `f` (of two) that is not a splat, and the splat's number.
  std::optional<std::pair<Form, double>> beside_splat(Form f) const;
  // The factors of `f` that are such ops, or whose cores are.
  std::vector<Form> factors(Form f, Opcode opcode) const;
  std::vector<Form> factors_with_core(Form f, Opcode opcode) const;
  // The other factor; kNoForm if `part` does not divide `whole`.
  Form divided(Form whole, Form part);
  // If `f` is -1 * x, or a sum's operand spelled so.
  Form negated(Form f);
  // The x of x * x; kNoForm if it is no square.
  Form square_root(Form f);

  // ---- Operands ---------------------------------------------------------------------------------

  // The form of an operand of `dims` that broadcast by `map` gives `f`; kNoForm if there is none.
  Form unbroadcast(Form f, const Dims& dims, const Ints& map);
  // Operands that broadcast to `f` by numpy's rule: those that exist first, then the smallest.
  std::vector<Form> numpy_operands(Form f);

 private:
  Test available_, exists_;
  Match match_;
};

// The axis as composites spell it that count the last one as -1.
inline int64_t from_back(int64_t axis, int rank) { return axis == rank - 1 ? -1 : axis; }

// The attribute that gave `number` when it was divided and rounded to the type: the shortest
// decimal.
double recovered(DType dtype, double number, double divisor = 1);

// One row per composite and anchor: where to look, and how to guess. Larger composites stand first.
struct RaiseRule {
  Opcode anchor;  // of the root's normal form; mul for products
  bool (*guess)(Guess&);
};
std::span<const RaiseRule> activation_rules();
std::span<const RaiseRule> norm_rules();
std::span<const RaiseRule> attention_rules();
std::span<const RaiseRule> recurrent_rules();
std::span<const RaiseRule> tensor_rules();
std::span<const RaiseRule> quantize_rules();
std::span<const RaiseRule> resize_rules();

}  // namespace hone
