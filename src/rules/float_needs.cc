#include "rules/float_needs.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/op_facts.h"
#include "rules/exact.h"
#include "rules/numbers.h"
#include "rules/sizes.h"

namespace hone {
namespace {

constexpr size_t kMostSizes = 256;

// The effect of an op on exponents.
enum class Effect : uint8_t {
  none,        // its elements are elements of operands, but for their sign, or no numbers
  adds,        // two operands
  adds_up,     // over an axis, in any order
  multiplies,  // or divides, or is a function: it may vanish, too
  contracts,   // adds up products
};

Effect effect_of(const Graph& graph, NodeId n) {
  const Op op = graph.op(n);
  if (!is_real(graph.type(graph.result(n)).dtype())) return Effect::none;
  switch (class_of(op.opcode())) {
    case OpClass::leaf:
    case OpClass::generator:
    case OpClass::movement:
    case OpClass::indexed: return Effect::none;
    case OpClass::contraction: return Effect::contracts;
    case OpClass::reduction:
    case OpClass::window:
      if (fold_of(op) == Fold::sum) return Effect::adds_up;
      return fold_of(op) == Fold::product ? Effect::multiplies : Effect::none;
    default: break;
  }
  constexpr Opcode kMoves[] = {Opcode::neg, Opcode::abs, Opcode::max, Opcode::min, Opcode::select};
  if (std::ranges::find(kMoves, op.opcode()) != std::end(kMoves)) return Effect::none;
  const bool adds = op.opcode() == Opcode::add || op.opcode() == Opcode::sub;
  return adds ? Effect::adds : Effect::multiplies;
}

// Terms by what is multiplied, with the magnitudes of their factors.
using Terms = Polynomials::Terms;

Terms absolute(const Terms& terms) {
  Terms sizes = terms;
  for (auto& [monomial, factor] : sizes) factor = factor < 0 ? -factor : factor;
  return sizes;
}

bool is_number(const Terms& terms) {
  return std::ranges::all_of(terms, [](const auto& term) { return term.first.empty(); });
}

bool are_among(const Terms& some, const Terms& all) {
  return std::ranges::all_of(some, [&](const auto& term) {
    const auto at = all.find(term.first);
    return at != all.end() && term.second <= at->second;
  });
}

bool has_terms_of(const Terms& all, const Terms& some) {
  return std::ranges::all_of(some, [&](const auto& term) { return all.contains(term.first); });
}

// ---- Both sides at some sizes -------------------------------------------------------------------

struct Evaluated {
  const Graph& graph;
  std::vector<std::vector<Polynomials::Number>> values;
};

Result<Evaluated> evaluated(const Graph& graph, Polynomials& numbers, ReadTables& tables) {
  ExactEvaluator<Polynomials> evaluator(numbers, tables);
  Evaluated side = {graph, std::vector<std::vector<Polynomials::Number>>(graph.value_count())};
  uint64_t next = 0;
  for (ValueId v : graph.inputs())
    for (int64_t i = 0; i < graph.type(v).static_elements(); ++i)
      side.values[v.index].push_back(numbers.variable(next++));
  for (NodeId n : graph.nodes()) {
    if (is_parameter(graph.opcode(n))) continue;
    auto& elements = side.values[graph.result(n).index];
    if (is_constant(graph.opcode(n))) {
      const Tensor& constant = graph.constant(n);
      for (int64_t i = 0; i < constant.elements(); ++i)
        elements.push_back(numbers.number(constant.real_at(i)));
      continue;
    }
    std::vector<const std::vector<Polynomials::Number>*> operands;
    for (ValueId v : graph.operands(n)) {
      if (v.is_none()) return unsupported("{} has an absent operand", graph.describe(n));
      operands.push_back(&side.values[v.index]);
    }
    elements = HONE_TRY(evaluator.apply(graph.op(n), operands, graph.operand_types(n),
                                        graph.type(graph.result(n))));
  }
  if (!numbers.exact()) return over_limit("the polynomials are too large");
  return side;
}

// The elements that outputs depend on.
Result<std::vector<std::vector<bool>>> needed(const Graph& graph, ReadTables& tables) {
  std::vector<std::vector<bool>> is_needed(graph.value_count());
  for (uint32_t v = 0; v < graph.value_count(); ++v)
    is_needed[v].resize(static_cast<size_t>(graph.type(ValueId{v}).static_elements()));
  for (ValueId v : graph.outputs()) is_needed[v.index].assign(is_needed[v.index].size(), true);
  for (uint32_t i = static_cast<uint32_t>(graph.node_count()); i-- > 0;) {
    const NodeId n{i};
    const auto operands = graph.operands(n);
    if (operands.empty()) continue;
    const std::vector<bool>& wanted = is_needed[graph.result(n).index];
    const Reads* reads = nullptr;
    if (!is_elementwise(graph.opcode(n)))
      reads = HONE_TRY(tables.of(graph.op(n), graph.operand_types(n), graph.type(graph.result(n))));
    for (size_t e = 0; e < wanted.size(); ++e) {
      if (!wanted[e]) continue;
      for (size_t o = 0; o < operands.size(); ++o) {
        std::vector<bool>& of_operand = is_needed[operands[o].index];
        if (reads == nullptr) {
          of_operand[e] = true;
          continue;
        }
        for (size_t row = reads->begin[e]; row < reads->begin[e + 1]; ++row)
          if (const int32_t at = reads->at(row, o); at != Reads::kNothing)
            of_operand[static_cast<size_t>(at)] = true;
      }
    }
  }
  return is_needed;
}

// ---- What the left side has ---------------------------------------------------------------------

class LeftSide {
 public:
  LeftSide(const Evaluated& side, const Polynomials& numbers) {
    for (NodeId n : side.graph.nodes()) {
      const Effect effect = effect_of(side.graph, n);
      const bool is_product = may_vanish(side.graph, n);
      // Parts of the sum are sums of some of its terms, where each is one term.
      bool has_parts = effect == Effect::adds_up || effect == Effect::contracts;
      for (ValueId v : side.graph.operands(n))
        for (Polynomials::Number x : side.values[v.index])
          has_parts = has_parts && numbers.terms_of(x).size() <= 1;
      for (Polynomials::Number x : side.values[side.graph.result(n).index]) {
        Terms terms = absolute(numbers.terms_of(x));
        if (has_parts) sums_.insert(terms);
        if (is_product) products_.insert(terms);
        values_.insert(std::move(terms));
      }
    }
  }

  // But for the terms that values of the right side are known to stay within.
  bool bounds(const Terms& terms, const Terms& known) const {
    if (values_.contains(terms)) return true;
    for (const Terms& sum : sums_)
      if (are_among(terms, sum)) return true;
    if (known.empty()) return false;
    return std::ranges::any_of(values_, [&](const Terms& value) {
      if (!are_among(terms, value)) return false;
      Terms others;
      for (const auto& [monomial, factor] : value) {
        const auto at = terms.find(monomial);
        const int64_t left = factor - (at == terms.end() ? 0 : at->second);
        if (left > 0) others.emplace(monomial, left);
      }
      return are_among(others, known);
    });
  }

  bool keeps(const Terms& product) const {
    if (values_.contains(product)) return true;
    return std::ranges::any_of(products_, [&](const Terms& other) {
      return !other.empty() && (has_terms_of(product, other) || has_terms_of(other, product));
    });
  }

 private:
  std::set<Terms> values_, sums_, products_;
};

// ---- The judgement ------------------------------------------------------------------------------

// Small values first: those are more often constants, of which everything is known.
std::vector<NodeId> by_rank(const Graph& graph) {
  std::vector<NodeId> order;
  for (NodeId n : graph.nodes())
    if (effect_of(graph, n) != Effect::none) order.push_back(n);
  std::ranges::sort(
      order, {}, [&](NodeId n) { return std::pair(graph.type(graph.result(n)).rank(), n.index); });
  return order;
}

class Judgement {
 public:
  Judgement(const Evaluated& left, const Evaluated& right, const Polynomials& numbers,
            const std::vector<std::vector<bool>>& is_needed)
      : given_(left, numbers), right_(right), numbers_(numbers), is_needed_(is_needed) {}

  std::set<ValueId> run() {
    for (NodeId n : by_rank(right_.graph)) {
      const ValueId v = right_.graph.result(n);
      const std::vector<Terms> elements = terms_of(v);
      const bool vanishes = may_vanish(right_.graph, n);
      if (is_bounded(elements, vanishes, known_)) continue;
      const std::optional<ValueId> input = bounding_input(v, elements, vanishes);
      say(input.value_or(v));
    }
    return std::move(said_);
  }

 private:
  // The needs of the elements that a result depends on.
  std::vector<Terms> terms_of(ValueId v) const {
    std::vector<Terms> elements;
    for (size_t e = 0; e < right_.values[v.index].size(); ++e)
      if (is_needed_[v.index][e])
        elements.push_back(absolute(numbers_.terms_of(right_.values[v.index][e])));
    return elements;
  }

  bool is_bounded(const std::vector<Terms>& elements, bool may_vanish, const Terms& known) const {
    return std::ranges::all_of(elements, [&](const Terms& terms) {
      return is_number(terms) ||
             (given_.bounds(terms, known) && (!may_vanish || given_.keeps(terms)));
    });
  }

  Terms known_with(ValueId v) const {
    Terms known = known_;
    for (const Terms& terms : terms_of(v))
      for (const auto& [monomial, factor] : terms) {
        int64_t& most = known[monomial];
        most = std::max(most, factor);
      }
    return known;
  }

  // An input of fewer dims, as the bias of a convolution, which is enough to know.
  std::optional<ValueId> bounding_input(ValueId v, const std::vector<Terms>& elements,
                                        bool may_vanish) const {
    for (ValueId input : right_.graph.inputs())
      if (right_.graph.type(input).rank() < right_.graph.type(v).rank() &&
          is_bounded(elements, may_vanish, known_with(input)))
        return input;
    return std::nullopt;
  }

  void say(ValueId v) {
    said_.insert(v);
    known_ = known_with(v);
  }

  const LeftSide given_;
  const Evaluated& right_;
  const Polynomials& numbers_;
  const std::vector<std::vector<bool>>& is_needed_;
  std::set<ValueId> said_;
  Terms known_;  // of what is said
};

Result<std::set<ValueId>> needs_at(const RuleSides& sides) {
  Polynomials numbers;
  ReadTables tables;
  const Evaluated left = HONE_TRY(evaluated(sides.left, numbers, tables));
  const Evaluated right = HONE_TRY(evaluated(sides.right, numbers, tables));
  const auto is_needed = HONE_TRY(needed(sides.right, tables));
  return Judgement(left, right, numbers, is_needed).run();
}

bool is_same_form(const Graph& a, const Graph& b) {
  if (a.node_count() != b.node_count() || a.value_count() != b.value_count()) return false;
  for (NodeId n : a.nodes())
    if (a.opcode(n) != b.opcode(n)) return false;
  return true;
}

std::vector<ValueId> all_computed(const Graph& right) {
  std::vector<ValueId> all;
  for (NodeId n : right.nodes())
    if (effect_of(right, n) != Effect::none) all.push_back(right.result(n));
  return all;
}

}  // namespace

bool may_vanish(const Graph& graph, NodeId n) {
  const Effect effect = effect_of(graph, n);
  return effect == Effect::multiplies || effect == Effect::contracts;
}

Result<std::vector<ValueId>> float_needs(const Rule& rule) {
  const std::vector<Bindings> small = small_sizes(rule, 2, kMostSizes);
  if (small.empty()) return unsupported("no sizes were found that the rule admits");
  std::set<ValueId> found;
  for (const Bindings& sizes : {small.front(), small.back()}) {
    const RuleSides sides = HONE_TRY(at_sizes(rule, sizes));
    if (!is_same_form(sides.right, rule.right)) return all_computed(rule.right);
    const Result<std::set<ValueId>> at = needs_at(sides);
    if (!at.ok()) return all_computed(rule.right);
    found.insert(at->begin(), at->end());
  }
  return std::vector<ValueId>(found.begin(), found.end());
}

}  // namespace hone
