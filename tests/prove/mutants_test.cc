#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "ir/reference/evaluate.h"
#include "prove/prove.h"
#include "prove/verify.h"
#include "rules/sizes.h"
#include "tests/prove/rules_testing.h"

// True rules with one thing changed on the right side. The rules that the ladder believes are
// evaluated at all small sizes by the reference evaluator, which shares nothing with it.

namespace hone::HONE_FILE {
namespace {

enum Kind : uint8_t { kAttribute, kAxis, kOperand, kCoincidence, kKinds };
constexpr std::string_view kNames[] = {"attribute", "axis", "operand", "shape coincidence"};

bool is_about_axes(std::string_view attribute) {
  constexpr std::string_view kAxes[] = {"axes",         "axis",         "permutation",
                                        "map",          "lhs_batch",    "rhs_batch",
                                        "lhs_contract", "rhs_contract", "order"};
  return std::ranges::find(kAxes, attribute) != std::end(kAxes);
}

AttrValue mutated(const AttrValue& value, const std::vector<Symbol>& symbols, Rng& rng) {
  if (const Ints* ints = std::get_if<Ints>(&value); ints != nullptr && !ints->empty()) {
    Ints list = *ints;
    if (rng.chance(0.5))
      std::swap(rng.pick(list), rng.pick(list));
    else
      rng.pick(list) += rng.chance(0.5) ? 1 : -1;
    return list;
  }
  if (const Dims* dims = std::get_if<Dims>(&value); dims != nullptr && !dims->empty()) {
    Dims list = *dims;
    Dim& one = rng.pick(list);
    if (rng.chance(0.4) && !symbols.empty())
      one = Dim(symbols[rng.below(symbols.size())]);
    else if (rng.chance(0.3))
      std::swap(one, rng.pick(list));
    else
      one += rng.chance(0.5) ? 1 : -1;
    return list;
  }
  if (const int64_t* number = std::get_if<int64_t>(&value))
    return *number + (rng.chance(0.5) ? 1 : -1);
  if (const std::string* word = std::get_if<std::string>(&value)) {
    if (*word == "sum") return std::string("max");
    if (*word == "max") return std::string(rng.chance(0.5) ? "sum" : "min");
  }
  return value;
}

Result<Op> mutated(Op op, Kind kind, const std::vector<Symbol>& symbols, Rng& rng) {
  constexpr Opcode kBinary[] = {Opcode::add, Opcode::sub, Opcode::mul, Opcode::max, Opcode::div};
  if (kind == kAttribute && std::ranges::find(kBinary, op.opcode()) != std::end(kBinary))
    return Op::make(kBinary[rng.below(std::size(kBinary))], {});
  Attrs attrs;
  const auto specs = op.def().attrs;
  std::vector<size_t> of_kind;
  for (size_t a = 0; a < specs.size(); ++a)
    if (is_about_axes(specs[a].name) == (kind == kAxis)) of_kind.push_back(a);
  if (of_kind.empty()) return op;
  const size_t changed = rng.pick(of_kind);
  for (size_t a = 0; a < specs.size(); ++a)
    attrs.emplace_back(specs[a].name,
                       a == changed ? mutated(op.attrs()[a], symbols, rng) : op.attrs()[a]);
  return Op::make(op.opcode(), std::move(attrs));
}

// The graph with one op or one operand changed; an error if that is not a graph.
Result<Graph> mutant_of(const Graph& graph, Kind kind, Rng& rng) {
  Graph copy(graph.name());
  std::vector<ValueId> map(graph.value_count());
  const uint32_t first = static_cast<uint32_t>(graph.inputs().size());
  const uint32_t changed = first + static_cast<uint32_t>(rng.below(graph.node_count() - first));
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::parameter) {
      map[graph.result(n).index] = copy.add_parameter(graph.type(graph.result(n)));
      continue;
    }
    if (graph.opcode(n) == Opcode::constant) {
      const Tensor& tensor = graph.constant(n);
      const bool is_changed = n.index == changed && kind == kAttribute;
      map[graph.result(n).index] = copy.add_constant(
          is_changed ? Tensor::scalar(tensor.dtype(), tensor.real_at(0) + 1) : tensor);
      continue;
    }
    Op op = graph.op(n);
    std::vector<ValueId> operands;
    for (ValueId v : graph.operands(n)) operands.push_back(map[v.index]);
    if (n.index == changed && kind == kOperand && !operands.empty()) {
      if (rng.chance(0.5))
        std::swap(rng.pick(operands), rng.pick(operands));
      else
        rng.pick(operands) = ValueId{static_cast<uint32_t>(rng.below(copy.value_count()))};
    } else if (n.index == changed) {
      op = HONE_TRY(mutated(op, kind, graph.symbols(), rng));
    }
    const NodeId made = HONE_TRY(copy.append(op, operands));
    for (size_t r = 0; r < graph.results(n).size(); ++r)
      map[graph.result(n, r).index] = copy.result(made, r);
  }
  std::vector<ValueId> outputs;
  for (ValueId v : graph.outputs()) outputs.push_back(map[v.index]);
  copy.set_outputs(std::move(outputs));
  return copy;
}

// Two sizes become one, so that more is well-typed.
Status make_equal(Rule& rule, Rng& rng) {
  const std::vector<Symbol> symbols = rule.symbols();
  if (symbols.size() < 2 || !rule.guard.empty()) return bad_input("no two sizes");
  const Symbol a = symbols[rng.below(symbols.size())], b = symbols[rng.below(symbols.size())];
  if (a == b || !check_binding(a, b).ok()) return bad_input("no two sizes");
  rule.left = HONE_TRY(specialize(rule.left, {{a.name(), b}}));
  rule.right = HONE_TRY(specialize(rule.right, {{a.name(), b}}));
  return {};
}

Result<Rule> mutant_of(Rule rule, Kind kind, Rng& rng) {
  Kind how = kind;
  if (kind == kCoincidence) {
    HONE_TRY(make_equal(rule, rng));
    how = static_cast<Kind>(rng.below(kCoincidence));
  }
  Graph mutant = HONE_TRY(mutant_of(rule.right, how, rng));
  if (structural_hash(mutant) == structural_hash(rule.right)) return bad_input("the same");
  rule.right = std::move(mutant);
  HONE_TRY(check(rule));
  return rule;
}

// Normal numbers, or whole ones of which many are equal.
std::vector<Tensor> numbers_for(const Graph& graph, bool are_whole, Rng& rng) {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) {
    std::vector<double> numbers;
    for (int64_t i = 0; i < type.static_elements(); ++i)
      numbers.push_back(are_whole ? static_cast<double>(rng.between(-3, 3)) : rng.normal());
    inputs.push_back(Tensor::from_reals(type, numbers));
  }
  return inputs;
}

// At all sizes of which each symbol is one of the first two of its range.
bool is_refuted_by_reference(const Rule& rule, size_t most_sizes, Rng& rng) {
  for (const Bindings& sizes : small_sizes(rule, 2, most_sizes)) {
    const RuleSides sides = at_sizes(rule, sizes).value();
    for (bool are_whole : {false, true}) {
      const std::vector<Tensor> inputs = numbers_for(sides.left, are_whole, rng);
      const EvalOptions options = {.real_outputs_as_f64 = true};
      const auto left = evaluate(sides.left, inputs, options).value();
      const auto right = evaluate(sides.right, inputs, options).value();
      for (size_t o = 0; o < left.size(); ++o)
        for (int64_t i = 0; i < left[o].elements(); ++i) {
          const double a = left[o].real_at(i), b = right[o].real_at(i);
          // Rules are of reals: a quotient by 0 says nothing.
          if (are_whole && !(std::isfinite(a) && std::isfinite(b))) continue;
          if (!(std::abs(a - b) <= 1e-6 * (1 + std::abs(a)))) return true;
        }
    }
  }
  return false;
}

void test_mutants(int wanted, size_t most_sizes, uint64_t seed) {
  Rng rng(seed);
  const std::vector<Rule> rules = committed_rules();
  struct {
    int made = 0, refuted = 0, untested = 0, accepted = 0, wrong = 0;
  } counts[kKinds];
  int made = 0;
  for (int tries = 0; made < wanted && tries < 1000 * wanted; ++tries) {
    const Kind kind = static_cast<Kind>(made % kKinds);
    const Rule& of = rules[rng.below(rules.size())];
    if (of.right.node_count() == of.right.inputs().size()) continue;
    const Result<Rule> rule = mutant_of(of, kind, rng);
    if (!rule.ok()) continue;
    ++made;
    ++counts[kind].made;
    const Result<RuleVerdict> verdict = verify(*rule, {.floats = false});
    if (!verdict.ok()) ++counts[kind].untested;
    if (verdict.ok() && verdict->refuted()) ++counts[kind].refuted;
    // The proof alone must not believe it either.
    if (!(verdict.ok() && !verdict->refuted()) && !prove(*rule).proved) continue;
    ++counts[kind].accepted;
    if (!is_refuted_by_reference(*rule, most_sizes, rng)) continue;
    ++counts[kind].wrong;
    ADD_FAILURE() << print(*rule);
  }
  EXPECT_EQ(made, wanted);
  int refuted = 0;
  std::cout << "mutants by kind: made, refuted, not testable, accepted, of these wrong\n";
  for (int kind = 0; kind < kKinds; ++kind) {
    const auto& of = counts[kind];
    refuted += of.refuted;
    std::cout << fmt::format("  {:<18} {:>5} {:>5} {:>5} {:>5} {:>5}\n", kNames[kind], of.made,
                             of.refuted, of.untested, of.accepted, of.wrong);
  }
  EXPECT_GT(refuted, wanted / 2);
}

TEST(Mutants, AreNotBelieved) { test_mutants(40, 4, 1); }
TEST(Mutants, DISABLED_SweepThousand) { test_mutants(1000, 256, 2); }

}  // namespace
}  // namespace hone::HONE_FILE
