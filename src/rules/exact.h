#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/algebra.h"
#include "ir/graph.h"
#include "ir/op_facts.h"
#include "rules/reads.h"

// Evaluates graphs over numbers that do not round, element by element from the access relations:
// another way than the reference evaluator's, and one for any kind of numbers.
//
// Numbers are a class with
//   using Number;
//   Number number(double);
//   Number add(Number, Number); Number negate(Number); Number multiply(Number, Number);
//   Number divide(Number, Number);
//   Number largest(std::span<const Number>);  // of none: the lowest
//   Number compare(std::string_view direction, Number, Number);
//   Number select(Number predicate, Number, Number);
//   Number function(uint64_t key, std::span<const Number>);  // nothing is known of it but its key

namespace hone {

// True if results depend on the order of numbers, or on bools: what is to be tested on numbers that
// have an order.
bool is_about_order(Op op);
bool is_about_order(const Graph& graph);

enum class Fold : uint8_t { sum, product, largest, smallest };
// How a reduction or window combines; nullopt: in another way.
std::optional<Fold> fold_of(Op op);

template <class Numbers>
class ExactEvaluator {
 public:
  using Number = typename Numbers::Number;
  using Elements = std::vector<Number>;

  ExactEvaluator(Numbers& numbers, ReadTables& tables) : numbers_(numbers), tables_(tables) {}

  // The elements of the outputs. The graph is static, of primitive ops.
  Result<std::vector<Elements>> run(const Graph& graph, std::span<const Elements> inputs) {
    std::vector<Elements> values(graph.value_count());
    for (size_t i = 0; i < inputs.size(); ++i) values[graph.inputs()[i].index] = inputs[i];
    for (NodeId n : graph.nodes()) {
      if (is_parameter(graph.opcode(n))) continue;
      const ValueId result = graph.result(n);
      if (is_constant(graph.opcode(n))) {
        values[result.index] = constant(graph.constant(n));
        continue;
      }
      std::vector<const Elements*> operands;
      for (ValueId v : graph.operands(n)) {
        if (v.is_none() || graph.results(n).size() != 1)
          return unsupported("{} has no exact evaluation", graph.describe(n));
        operands.push_back(&values[v.index]);
      }
      Result<Elements> elements =
          apply(graph.op(n), operands, graph.operand_types(n), graph.type(result));
      if (!elements.ok()) return std::move(elements).error().within(graph.describe(n));
      values[result.index] = std::move(*elements);
    }
    std::vector<Elements> outputs;
    for (ValueId v : graph.outputs()) outputs.push_back(values[v.index]);
    return outputs;
  }

  // One op with one result.
  Result<Elements> apply(Op op, std::span<const Elements* const> operands,
                         std::span<const Type> types, Type result) {
    const OpClass op_class = class_of(op.opcode());
    if (op_class == OpClass::elementwise) return pointwise(op, operands, result);
    if (op.opcode() == Opcode::iota) return places(result, op.integer("axis"));
    const bool sums = op_class == OpClass::contraction;
    const bool folds = op_class == OpClass::reduction || op_class == OpClass::window;
    const std::optional<Fold> fold = folds ? fold_of(op) : std::nullopt;
    if (op_class != OpClass::movement && !sums && !fold)
      return unsupported("'{}' has no exact evaluation", op.name());
    const Reads& reads = *HONE_TRY(tables_.of(op, types, result));
    Elements elements;
    elements.reserve(reads.begin.size() - 1);
    for (size_t e = 0; e + 1 < reads.begin.size(); ++e) {
      const Rows rows = {reads, reads.begin[e], reads.begin[e + 1]};
      elements.push_back(sums   ? sum_of_products(rows, operands)
                         : fold ? folded(*fold, rows, *operands[0])
                                : moved(rows, operands));
    }
    return elements;
  }

 private:
  struct Rows {
    const Reads& reads;
    size_t begin, end;
  };

  Elements constant(const Tensor& tensor) {
    Elements elements;
    for (int64_t i = 0; i < tensor.elements(); ++i)
      elements.push_back(numbers_.number(tensor.real_at(i)));
    return elements;
  }

  Elements places(Type result, int64_t axis) {
    int64_t stride = 1;
    for (int d = static_cast<int>(axis) + 1; d < result.rank(); ++d)
      stride *= result.dim(d).value();
    const int64_t extent = result.dim(static_cast<int>(axis)).value();
    Elements elements;
    for (int64_t i = 0; i < result.static_elements(); ++i)
      elements.push_back(numbers_.number(static_cast<double>(i / stride % extent)));
    return elements;
  }

  Number moved(const Rows& rows, std::span<const Elements* const> operands) {
    for (size_t o = 0; o < operands.size() && rows.begin < rows.end; ++o) {
      const int32_t at = rows.reads.at(rows.begin, o);
      if (at != Reads::kNothing) return (*operands[o])[static_cast<size_t>(at)];
    }
    return numbers_.number(0);
  }

  Number sum_of_products(const Rows& rows, std::span<const Elements* const> operands) {
    Number sum = numbers_.number(0);
    for (size_t r = rows.begin; r < rows.end; ++r) {
      const size_t a = static_cast<size_t>(rows.reads.at(r, 0));
      const size_t b = static_cast<size_t>(rows.reads.at(r, 1));
      sum = numbers_.add(sum, numbers_.multiply((*operands[0])[a], (*operands[1])[b]));
    }
    return sum;
  }

  Number folded(Fold fold, const Rows& rows, const Elements& x) {
    scratch_.clear();
    for (size_t r = rows.begin; r < rows.end; ++r)
      scratch_.push_back(x[static_cast<size_t>(rows.reads.at(r, 0))]);
    if (fold == Fold::largest) return numbers_.largest(scratch_);
    if (fold == Fold::smallest) return smallest(scratch_);
    Number all = numbers_.number(fold == Fold::sum ? 0 : 1);
    for (const Number& one : scratch_)
      all = fold == Fold::sum ? numbers_.add(all, one) : numbers_.multiply(all, one);
    return all;
  }

  Number smallest(std::span<const Number> list) {
    std::vector<Number> negated;
    for (const Number& one : list) negated.push_back(numbers_.negate(one));
    return numbers_.negate(numbers_.largest(negated));
  }

  Elements pointwise(Op op, std::span<const Elements* const> operands, Type result) {
    Elements elements;
    const size_t count = static_cast<size_t>(result.static_elements());
    elements.reserve(count);
    std::vector<Number> row(operands.size());
    Algebra algebra = {*this, op};
    for (size_t e = 0; e < count; ++e) {
      for (size_t o = 0; o < operands.size(); ++o) row[o] = (*operands[o])[e];
      elements.push_back(compute(algebra, op, std::span<const Number>(row)));
    }
    return elements;
  }

  // Bools are 1 and 0.
  struct Algebra {
    using Computed = Number;
    ExactEvaluator& evaluator;
    Op op;
    Numbers& numbers = evaluator.numbers_;

    bool takes_bools() const { return true; }
    Number sum(const Number& a, const Number& b) { return numbers.add(a, b); }
    Number difference(const Number& a, const Number& b) { return sum(a, negative(b)); }
    Number negative(const Number& a) { return numbers.negate(a); }
    Number product(const Number& a, const Number& b) { return numbers.multiply(a, b); }
    Number quotient(const Number& a, const Number& b) { return numbers.divide(a, b); }
    Number largest(const Number& a, const Number& b) {
      const Number both[] = {a, b};
      return numbers.largest(both);
    }
    Number smallest(const Number& a, const Number& b) {
      const Number both[] = {a, b};
      return evaluator.smallest(both);
    }
    Number size(const Number& a) { return largest(a, negative(a)); }
    Number exponential(const Number& a) { return function(op, std::span(&a, 1)); }
    Number choice(const Number& predicate, const Number& yes, const Number& no) {
      return numbers.select(predicate, yes, no);
    }
    Number comparison(std::string_view direction, const Number& a, const Number& b) {
      return numbers.compare(direction, a, b);
    }
    Number opposite(const Number& a) { return difference(numbers.number(1), a); }
    Number both(const Number& a, const Number& b) { return product(a, b); }
    Number either(const Number& a, const Number& b) { return largest(a, b); }
    Number differ(const Number& a, const Number& b) { return comparison("ne", a, b); }
    Number function(Op op, std::span<const Number> x) { return numbers.function(op.hash(), x); }
  };

  Numbers& numbers_;
  ReadTables& tables_;
  std::vector<Number> scratch_;
};

}  // namespace hone
