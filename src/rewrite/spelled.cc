#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "ir/graph_copy.h"
#include "ir/op_facts.h"
#include "rewrite/numbers.h"
#include "rewrite/passes.h"
#include "rewrite/taken_parts.h"
#include "rewrite/two_valued.h"

// Exporters spell out what one op does. Long forms that are found here get the short one, so that
// both have the same plan.

namespace hone {
namespace {

// Factors beyond could make numbers overflow, or lose them, where the long form does not.
constexpr int kMostExponent = 60;

bool is_moderate(double number) {
  return std::isfinite(number) && number != 0 && std::abs(std::ilogb(number)) <= kMostExponent;
}

bool is_power_of_two(double number) {
  int exponent = 0;
  return std::abs(std::frexp(number, &exponent)) == 0.5;
}

// Functions that are flat where their operand is large.
constexpr Opcode kBounded[] = {Opcode::erf, Opcode::tanh, Opcode::logistic};

class ShortForms {
 public:
  explicit ShortForms(const Graph& graph)
      : graph_(graph),
        copy_(graph),
        readers_(count_readers(graph)),
        bounded_readers_(graph.value_count()),
        two_valued_(graph) {
    for (NodeId n : graph.nodes())
      if (std::ranges::count(kBounded, graph.opcode(n)) > 0)
        for (ValueId v : graph.operands(n)) ++bounded_readers_[v.index];
  }

  Result<Graph> run() {
    for (NodeId n : graph_.nodes()) {
      if (const std::optional<ValueId> made = HONE_TRY(short_form(n))) {
        copy_.replace(graph_.result(n), *made);
        continue;
      }
      HONE_TRY(copy_.node(n, graph_.op(n),
                          HONE_TRY(transform_regions(graph_, n, spelled_out_functions))));
    }
    return remove_dead_code(copy_.finish());
  }

 private:
  using Made = Result<std::optional<ValueId>>;  // a value of the target; none: the node stays

  Made short_form(NodeId n) {
    const std::optional<TwoValued> chosen = HONE_TRY(two_valued_.of(n));
    if (chosen && !reads(n, chosen->predicate)) return choice(n, *chosen);
    if (is(n, Opcode::div)) return quotient(n);
    if (is(n, Opcode::dot)) return product(n);
    if (is(n, Opcode::gather)) return part_taken_by_gather(copy_, n);
    return std::optional<ValueId>();
  }

  bool is(NodeId n, Opcode opcode) const { return graph_.opcode(n) == opcode; }
  bool reads(NodeId n, ValueId v) const { return std::ranges::count(graph_.operands(n), v) > 0; }

  // ---- Choices ------------------------------------------------------------------------------

  // Steps that turn a predicate into numbers and back, or into other numbers.
  Made choice(NodeId n, const TwoValued& chosen) {
    const Type type = graph_.type(graph_.result(n));
    const ValueId predicate = copy_(chosen.predicate);
    if (type.dtype() == DType::boolean) {
      const bool yes = chosen.on_true.real_at(0) != 0, no = chosen.on_false.real_at(0) != 0;
      if (yes == no) return std::optional<ValueId>();
      return yes ? Made(predicate) : append(Opcode::not_, {predicate});
    }
    const ValueId yes = HONE_TRY(append_number(copy_.target(), chosen.on_true, type));
    const ValueId no = HONE_TRY(append_number(copy_.target(), chosen.on_false, type));
    return append(Opcode::select, {predicate, yes, no});
  }

  // ---- Quotients ----------------------------------------------------------------------------

  Made quotient(NodeId n) {
    const ValueId lhs = graph_.operands(n)[0], rhs = graph_.operands(n)[1];
    const Type type = graph_.type(graph_.result(n));
    if (!is_plain_real(type.dtype())) return std::optional<ValueId>();
    if (const std::optional<Tensor> divisor = repeated_element(graph_, rhs)) {
      const double number = divisor->real_at(0);
      if (!is_moderate(number) || !(is_power_of_two(number) || is_read_by_bounded(n)))
        return std::optional<ValueId>();
      const ValueId factor = HONE_TRY(append_number(copy_.target(), 1 / number, type));
      return append(Opcode::mul, {copy_(lhs), factor});
    }
    const std::optional<ValueId> x = logistic_divisor(rhs);
    if (!x) return std::optional<ValueId>();
    const ValueId y = HONE_TRY(append(Opcode::logistic, {copy_(*x)})).value();
    if (is_number(lhs, 1)) return std::optional(y);
    return append(Opcode::mul, {copy_(lhs), y});
  }

  static bool is_plain_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

  // x of 1 + exp(-x).
  std::optional<ValueId> logistic_divisor(ValueId v) const {
    const NodeId sum = graph_.producer(v);
    if (!is(sum, Opcode::add)) return std::nullopt;
    for (size_t i : {0, 1}) {
      const NodeId power = graph_.producer(graph_.operands(sum)[i]);
      if (!is_number(graph_.operands(sum)[1 - i], 1) || !is(power, Opcode::exp)) continue;
      const NodeId negative = graph_.producer(graph_.operands(power)[0]);
      if (is(negative, Opcode::neg)) return graph_.operands(negative)[0];
    }
    return std::nullopt;
  }

  bool is_number(ValueId v, double number) const {
    const std::optional<Tensor> element = repeated_element(graph_, v);
    return element && element->real_at(0) == number;
  }

  // True if such functions alone read the quotient. An operand that is rounded once more changes
  // them by no more than their own rounding.
  bool is_read_by_bounded(NodeId n) const {
    const uint32_t v = graph_.result(n).index;
    return bounded_readers_[v] > 0 && bounded_readers_[v] == readers_[v];
  }

  // ---- Products -----------------------------------------------------------------------------

  struct Scaled {
    ValueId x;
    double factor;
  };

  // Where both operands are scaled, one factor is enough.
  Made product(NodeId n) {
    if (!is_plain_real(graph_.type(graph_.result(n)).dtype())) return std::optional<ValueId>();
    const std::optional<Scaled> lhs = scaled(graph_.operands(n)[0]);
    const std::optional<Scaled> rhs = scaled(graph_.operands(n)[1]);
    if (!lhs || !rhs || !is_moderate(lhs->factor * rhs->factor)) return std::optional<ValueId>();
    const ValueId factor =
        HONE_TRY(append_number(copy_.target(), lhs->factor * rhs->factor, graph_.type(lhs->x)));
    const ValueId x = HONE_TRY(append(Opcode::mul, {copy_(lhs->x), factor})).value();
    const ValueId operands[] = {x, copy_(rhs->x)};
    return std::optional(HONE_TRY(append_value(copy_.target(), graph_.op(n), operands)));
  }

  // A product with a number that nobody else reads.
  std::optional<Scaled> scaled(ValueId v) const {
    const NodeId n = graph_.producer(v);
    if (!is(n, Opcode::mul) || readers_[v.index] != 1) return std::nullopt;
    for (size_t i : {0, 1}) {
      const std::optional<Tensor> number = repeated_element(graph_, graph_.operands(n)[i]);
      if (number && is_moderate(number->real_at(0)))
        return Scaled{graph_.operands(n)[1 - i], number->real_at(0)};
    }
    return std::nullopt;
  }

  Made append(Opcode opcode, std::initializer_list<ValueId> operands) {
    return std::optional(HONE_TRY(append_value(copy_.target(), Op::get(opcode), operands)));
  }

  const Graph& graph_;
  GraphCopy copy_;
  const std::vector<int> readers_;
  std::vector<int> bounded_readers_;  // readers among kBounded
  TwoValuedResults two_valued_;
};

}  // namespace

Result<Graph> spelled_out_functions(const Graph& graph) { return ShortForms(graph).run(); }

}  // namespace hone
