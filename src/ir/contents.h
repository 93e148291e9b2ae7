#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "ir/contents_rules.h"
#include "ir/graph.h"

namespace hone {

// Finds the elements of values before anything runs. Graphs often compute shapes themselves (the
// size of an axis, times two, joined with a constant), and a front end or a pass wants these as
// dims. Works on a graph that is still growing, and remembers its answers.
class Contents {
 public:
  // Tensors with more elements are not followed.
  static constexpr int64_t kMaxElements = 4096;
  // The larger limit for values that are computed from constants alone. A node with a larger
  // operand or result is not computed.
  static constexpr int64_t kMaxConstantElements = int64_t{1} << 16;
  // The elements of all remembered answers together; values beyond it are unknown.
  static constexpr int64_t kMaxRemembered = int64_t{1} << 23;

  explicit Contents(const Graph& graph) : graph_(graph) {}

  // The elements of an integer or bool value in row-major order (bools as 0 and 1): numbers, or
  // expressions of the graph's symbols. Null if they depend on data, or if no dim equals one of
  // them: a number of 2^62 or more, a sum that may wrap.
  std::optional<Dims> of(ValueId v);

  // The value of any type if it is computed from constants alone; null if it is not. Constants
  // themselves are given at any size. Real numbers are rounded to their type at each node.
  std::optional<Tensor> constant(ValueId v);

  // The elements of a value of any type that are known and dims; null for the others. Empty if
  // nothing is known.
  Elements known_elements(ValueId v);

  // Tells the elements of a value, such as a parameter; some may be null.
  void assume(ValueId v, Elements elements);

 private:
  // Either `value`, which is all numbers, or `elements`, or neither.
  struct Known {
    Tensor value = {};
    Elements elements = {};
    bool is_uniform = false;  // the one element stands for all
    bool is_pure = false;     // computed from constants alone
    bool is_assumed = false;

    bool is_unknown() const { return !value && elements.empty(); }
  };
  using Operands = std::vector<const Known*>;  // null: an absent operand

  const Known& known(ValueId v);
  bool is_known(NodeId n) const;
  std::vector<ValueId> missing_operands(NodeId n) const;
  bool is_opaque(NodeId n) const;
  void remember(NodeId n, std::vector<Known> results);

  std::vector<Known> follow(NodeId n) const;
  std::vector<Known> computed(NodeId n, const Operands& operands) const;
  std::vector<Known> symbolic(NodeId n, const Operands& operands) const;
  std::vector<Known> expanded(NodeId n, const Operands& operands) const;
  Known moved(NodeId n, const Operands& operands) const;
  Known elementwise(NodeId n, const Operands& operands) const;
  Known reduced(NodeId n, const Known& operand) const;
  Known accumulated(NodeId n, const Known& operand) const;
  Known uniform(const Known& element, Type type) const;
  Element element_of(Op op, DType result, const Elements& x, DType from) const;
  Known simplified(Known known, Type type) const;

  // All elements of a value, null if there are too many; and the one that stands for all.
  std::optional<Elements> elements_of(const Known& known, Type type) const;
  std::optional<Element> single_element(const Known& known, Type type) const;

  const Graph& graph_;
  std::unordered_map<uint32_t, Known> known_;
  int64_t remembered_ = 0;
};

}  // namespace hone
