#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op_def.h"
#include "prove/index_form.h"

// An element of a value as a sum of products over symbolic positions:
//   factor * sum over bound variables, where guards >= 0, of a product of
//     input elements at positions, functions of other such sums, and the largest of sets of them.
// A bool is 1 or 0: a comparison of places is a guard, and select(p, x, y) is p*x + (1 - p)*y.
// exp of a sum is the product of the exps of its terms, so that each exp is of one term; exp(t) and
// exp(-t) cancel.

namespace hone {

struct SumFactor;

struct SumTerm {
  Dim factor = 1;
  std::vector<int> bound = {};
  std::vector<IndexForm> guards = {};
  std::vector<std::shared_ptr<const SumFactor>> factors = {};
};
using SumForm = std::vector<SumTerm>;

// One of a set whose largest is taken: the values of a form for all values of its variables.
struct SetMember {
  std::vector<int> bound = {};
  std::vector<IndexForm> guards = {};
  SumForm value;
};

struct SumFactor {
  enum Kind : uint8_t { element, function, largest };
  Kind kind;
  std::string key = {};                // what an element is of; the function
  std::vector<IndexForm> index = {};   // of an element
  std::vector<SumForm> operands = {};  // of a function
  std::vector<SetMember> set = {};     // of a largest
  bool is_bool = false;                // 1 or 0, so its square is itself
};

// A form of this factor alone.
SumForm single(std::shared_ptr<const SumFactor> factor);

// The key of an element that is its place, whatever the inputs.
inline constexpr std::string_view kPlace = "place";

// Names for canonical_text() by which every variable is itself.
std::vector<std::string> plain_names(const LoopVariables& variables);

// The one text of all forms that differ by the names and the order of their bound variables, by the
// order of terms and factors, and by terms that cancel. names[v]: of the variables that are not
// bound. Nothing: numbers are too large to be told apart. If a form has very many orders, not all
// are tried, so that equal forms may have different texts.
std::optional<std::string> canonical_text(const SumForm& form, const LoopVariables& variables,
                                          std::vector<std::string> names);

// Makes the forms of the elements of one graph of primitive ops.
class FormMaker {
 public:
  // unrolls: sums over at most 16 positions are spelled out; those over one are anyway.
  // steps: gets what a certificate says (checker/checker.h), if no refinement is wanted.
  FormMaker(const Graph& graph, LoopVariables& variables, bool unrolls,
            std::vector<std::string>& steps)
      : graph_(graph), variables_(variables), unrolls_(unrolls), script_(steps) {}

  // The element of `v` at a position. If `wanted` is set afterwards the form means nothing: it is
  // to be made anew, with that variable refined.
  SumForm element(ValueId v, const std::vector<IndexForm>& index);

  std::optional<Refinement> wanted;
  std::string fault;  // why there is no form; "" if there is one

 private:
  struct Loop {
    std::vector<IndexForm> iters;
    std::vector<int> variables;
  };
  template <class List>
  List over(Loop loop, const std::function<List(const std::vector<IndexForm>&)>& body);
  template <class List>
  List unrolled(const Loop& loop, std::span<const Dim> extents,
                const std::function<List(const std::vector<IndexForm>&)>& body);

  SumForm constant(const Tensor& tensor, const std::vector<IndexForm>& index);
  SumForm pointwise(NodeId n, const std::vector<IndexForm>& index);
  SumForm moved(NodeId n, const AccessRelation& relation, const std::vector<IndexForm>& index);
  SumForm reduced(NodeId n, const AccessRelation& relation, const std::vector<IndexForm>& index);
  SumForm read(ValueId operand, const Access& access, const std::vector<IndexForm>& iters);
  // The guards that are not known to hold; false: one is known not to.
  bool guards_of(const Access& access, const std::vector<IndexForm>& iters,
                 std::vector<IndexForm>& open);
  bool holds(IndexForm side, std::vector<IndexForm>& open);
  SumForm place(Type type, int64_t axis, const std::vector<IndexForm>& index);
  SumForm comparison(NodeId n, const std::vector<IndexForm>& index);
  SumForm comparison_of_places(std::string_view direction, const IndexForm& difference);
  SumForm is_negative(const SumForm& a);
  SumForm combined(const SumForm& form);
  std::optional<int64_t> multiple_of(const SumForm& a, const SumForm& b);
  std::optional<SumForm> logical(Opcode opcode, std::span<const SumForm> x);
  SumForm selected(NodeId n, const std::vector<IndexForm>& index);
  void drop_equal_bools(SumTerm& term);
  void put_equal(SumTerm& term);
  IndexForm index_of(const IndexExpr& expr, const std::vector<IndexForm>& iters);

  SumForm product(const SumForm& a, const SumForm& b);
  SumForm scaled(SumForm a, Dim factor);
  SumForm inverse(const SumForm& a);
  SumForm exponential(const SumForm& a);
  void cancel_exponentials(SumTerm& term);
  SumForm function(std::string key, std::vector<SumForm> operands, bool is_bool = false);
  SumForm largest_of(std::vector<SetMember> members);
  void simplify(SumTerm& term);
  void check_size(Dim factor);
  bool counts() const { return !wanted && fault.empty(); }
  void fail(std::string why) {
    if (fault.empty()) fault = std::move(why);
  }

  const Graph& graph_;
  LoopVariables& variables_;
  bool unrolls_;
  std::vector<std::string>& script_;
  int steps_ = 0;
  size_t compared_ = 0;  // factors in what exps are of, to find those that cancel
};

// The step that divides the variable at this place of a list: "cut 0 A", "digits 1 B by A*C".
std::string step_text(const Refinement& refinement, size_t place, Dim extent);

}  // namespace hone
