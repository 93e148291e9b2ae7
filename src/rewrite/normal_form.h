#pragma once

#include <functional>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

// Normal forms of values: two values with one form are equal, reals up to rounding.
//
// Forms are numbered nodes of one table, shared by everything that computes the same. On the way
// in:
//   * composites become their expansions;
//   * a product of reals is a number times a sorted list of factors, a quotient has inverted
//     factors, and numbers move out of products, views, sums and contractions;
//   * a - b is a + (-b); operands of what commutes are sorted;
//   * a constant with equal elements is a splat, whatever its shape was made by;
//   * chains of reshapes, broadcasts and transposes become at most one of each, on a core without
//     dims of 1;
//   * a dot is an einsum that takes up the transposes around it;
//   * comparisons are lt or le; min(max(x, low), high) is max(min(x, high), low).
// Numbers that differ by a few units in the last place count as one.

namespace hone {

using Form = uint32_t;  // index into the table
inline constexpr Form kNoForm = UINT32_MAX;

enum class FormKind : uint8_t {
  leaf,      // a parameter
  constant,  // payload: the content's hash
  splat,     // all elements are payload (a double for reals, else the integer)
  product,   // number() times the operands
  inverse,   // 1 / operand
  op,        // result `result` of op(operands); then the outputs of the regions as operands
};

struct FormNode {
  FormKind kind;
  uint32_t result = 0;
  Op op;  // of kind op
  Type type;
  uint64_t payload = 0;  // of kind op: how many operands are no region outputs
  uint32_t begin = 0;    // operands
  uint32_t count = 0;
};

// number * list[0] * list[1] * ...
struct Factors {
  double number = 1;
  std::vector<Form> list;
};

class NormalForms {
 public:
  NormalForms();

  // ---- Numbering --------------------------------------------------------------------------------

  Form leaf(Type type);
  // The forms of all values, given those of the inputs.
  std::vector<Form> of_graph(const Graph& graph, std::span<const Form> inputs);
  std::vector<Form> of_graph(const Graph& graph);  // the inputs are leaves
  // The forms of a composite's results; nothing if the application is ill-typed. `form` is
  // another spelling than the op's own; kNoForm stands for an absent operand.
  std::vector<Form> of_composite(Op op, std::span<const Form> operands, ExpandFn form = nullptr);

  // ---- Making forms -----------------------------------------------------------------------------

  Form constant(const Tensor& tensor);
  Form splat(Type type, double number);  // converted to the type
  Form reshape(Form x, const Dims& dims);
  Form broadcast(Form x, const Dims& dims, const Ints& map);
  Form transpose(Form x, const Ints& permutation);
  Form product(Type type, Factors factors);
  Form scaled(Form x, double number);
  Form inverse(Form x);
  // Any op with one result of this type.
  Form make(Op op, std::span<const Form> operands, Type type);

  // ---- Reading ----------------------------------------------------------------------------------

  size_t size() const { return nodes_.size(); }
  const FormNode& operator[](Form f) const { return nodes_[f]; }
  std::span<const Form> operands(Form f) const {
    return {operands_.data() + nodes_[f].begin, nodes_[f].count};
  }
  Form operand(Form f, size_t i) const { return operands(f)[i]; }
  Type type(Form f) const { return nodes_[f].type; }
  Dims dims(Form f) const { return {type(f).dims().begin(), type(f).dims().end()}; }
  bool is(Form f, FormKind kind) const { return nodes_[f].kind == kind; }
  bool is(Form f, Opcode opcode) const {
    return nodes_[f].kind == FormKind::op && nodes_[f].op.opcode() == opcode;
  }
  bool is_view(Form f) const {
    return is(f, Opcode::reshape) || is(f, Opcode::broadcast) || is(f, Opcode::transpose);
  }
  Op op(Form f) const { return nodes_[f].op; }
  // Of a product: its number. Of a splat: its element.
  double number(Form f) const;
  bool is_splat(Form f, double number) const;
  // Of a constant: what it holds.
  const Tensor& tensor(Form f) const { return tensors_.at(f); }
  Factors factors(Form f) const;
  // The number that stands for all that differ from this one by rounding to the type.
  double snapped(DType dtype, double number);

 private:
  struct ExpansionKey {
    Op op;
    ExpandFn form;
    std::vector<Type> operands;
    bool operator==(const ExpansionKey&) const = default;
  };
  struct ExpansionHash {
    size_t operator()(const ExpansionKey& key) const;
  };

  Form intern(FormNode node, std::span<const Form> operands);
  std::vector<Form> apply(const Graph& graph, NodeId n, std::span<const Form> operands);
  struct Rules;
  Form simplified(Op op, std::span<const Form> operands, Type type);
  std::vector<Form> region(const Graph& graph);

  // Arithmetic of reals.
  Form multiply(Form a, Form b);
  Form real_power(Op op, Form x, Form exponent);
  Form sum(Form a, Form b);
  Form clamped(Op op, std::span<const Form> operands, Type type);
  Form unary(Opcode opcode, Form x);
  Form root(Opcode opcode, Form x);

  // Views and contractions.
  Form squeezed(Form x);
  Form view_of_product(Form x, Type type, const std::function<Form(Form)>& view);
  Form contraction(Op dot, Form lhs, Form rhs, Type type);
  Form permuted_contraction(Form x, const Ints& permutation);
  Form einsum(std::string lhs, std::string rhs, std::string result, Form a, Form b, Type type);

  std::vector<FormNode> nodes_;
  std::vector<Form> operands_;
  std::vector<uint64_t> hashes_;
  std::vector<Form> slots_;                   // open addressing; kNoForm is free
  std::unordered_map<Form, Tensor> tensors_;  // of constants
  std::map<std::pair<DType, double>, int> numbers_;
  std::unordered_map<ExpansionKey, Result<Graph>, ExpansionHash> expansions_;
  uint64_t leaves_ = 0;
};

}  // namespace hone
