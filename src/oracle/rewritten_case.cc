#include "oracle/rewritten_case.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compile/compilation.h"
#include "ir/op_facts.h"
#include "plan/random_plan.h"
#include "plan/rewritten.h"
#include "rules/rule_files.h"
#include "rules/sizes.h"

namespace hone {
namespace {

constexpr double kZeros = 0.05;  // the share of elements, in some tensors

const std::vector<RuleMatcher>& matchers() {
  static const std::vector<Rule> rules = default_rules().value();
  static const std::vector<RuleMatcher> matchers(rules.begin(), rules.end());
  return matchers;
}

class RandomTerms {
 public:
  RandomTerms(const RandomMagnitudes& magnitudes, Rng& rng) : magnitudes_(magnitudes), rng_(rng) {}

  Graph make() {
    const int64_t steps = rng_.between(1, 5);
    for (int64_t step = 0; step < steps; ++step) {
      if (rng_.chance(0.3) && !last_.empty()) combine();
      add_left_side(rng_.pick(matchers()).rule());
    }
    if (rng_.chance(0.5)) combine();
    std::vector<bool> is_read(graph_.value_count());
    for (NodeId n : graph_.nodes())
      for (ValueId v : graph_.operands(n)) is_read[v.index] = true;
    std::vector<ValueId> outputs;
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      if (!is_parameter(graph_.opcode(graph_.producer(ValueId{v}))) &&
          (!is_read[v] || rng_.chance(0.1)))
        outputs.push_back(ValueId{v});
    graph_.set_outputs(std::move(outputs));
    return std::move(graph_);
  }

 private:
  // Equal names mostly stand for equal sizes, so that results of one rule fit inputs of another.
  Bindings sizes_of(const Rule& rule) {
    Bindings sizes;
    for (Symbol s : rule.symbols()) {
      const int64_t wanted = 1 + static_cast<int64_t>(s.name()[0]) % 5;
      const int64_t size = rng_.chance(0.2) ? rng_.between(1, 5) : wanted;
      sizes.emplace(s.name(), std::clamp(size, s.min(), s.max()));
    }
    if (rule.admits(sizes)) return sizes;
    std::vector<Bindings> all = small_sizes(rule, 3, 100);
    return rng_.pick(all);
  }

  ValueId input(Type type) {
    std::vector<ValueId> known;
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      if (graph_.type(ValueId{v}) == type) known.push_back(ValueId{v});
    if (!known.empty() && rng_.chance(0.6)) return rng_.pick(known);
    if (rng_.chance(0.5)) return graph_.add_parameter(type);
    return graph_.add_constant(magnitudes_.tensor(type, rng_));
  }

  void add_left_side(const Rule& rule) {
    const Graph left = specialize(rule.left, sizes_of(rule)).value();
    std::vector<ValueId> map(left.value_count());
    for (NodeId n : left.nodes()) {
      const ValueId result = left.result(n);
      if (is_parameter(left.opcode(n))) {
        map[result.index] = input(left.type(result));
      } else if (is_constant(left.opcode(n))) {
        map[result.index] = graph_.add_constant(left.constant(n));
      } else {
        std::vector<ValueId> operands;
        for (ValueId v : left.operands(n)) operands.push_back(map[v.index]);
        map[result.index] = graph_.result(graph_.append(left.op(n), operands).value());
      }
    }
    for (ValueId v : left.outputs()) last_.push_back(map[v.index]);
  }

  // Ops between them, of which tanh bounds what comes behind it.
  void combine() {
    const ValueId a = rng_.pick(last_);
    constexpr Opcode kUnary[] = {Opcode::neg, Opcode::tanh, Opcode::abs, Opcode::tanh};
    constexpr Opcode kBinary[] = {Opcode::add, Opcode::mul, Opcode::max, Opcode::sub};
    std::vector<ValueId> operands = {a};
    if (rng_.chance(0.6)) operands.push_back(input(graph_.type(a)));
    const Op op = Op::get(operands.size() == 1 ? rng_.pick(kUnary) : rng_.pick(kBinary), {});
    last_.push_back(graph_.result(graph_.append(op, operands).value()));
  }

  const RandomMagnitudes& magnitudes_;
  Rng& rng_;
  Graph graph_ = Graph("g");
  std::vector<ValueId> last_;
};

}  // namespace

Tensor RandomMagnitudes::tensor(Type type, Rng& rng) const {
  // f32 is what rules are about; its exponents are those of bf16, and the others have more.
  const double most = decades_ > 0 ? std::log2(10.) * static_cast<double>(decades_) : 126;
  const double spreads[] = {0, 3, 10, 2 * most};
  const double spread = std::min(rng.pick(spreads), 2 * most);
  const double low = rng.uniform(-most, most - spread);
  const bool has_zeros = rng.chance(0.3);
  std::vector<double> numbers;
  for (int64_t i = 0; i < type.static_elements(); ++i) {
    const double size = std::exp2(std::min(low + rng.uniform(0, spread + 1), most - 1e-6));
    const double number = has_zeros && rng.chance(kZeros) ? 0 : rng.chance(0.5) ? size : -size;
    numbers.push_back(type.dtype() == DType::boolean ? number > 0 : number);
  }
  return Tensor::from_reals(type, numbers);
}

std::vector<Tensor> RandomMagnitudes::inputs(const Graph& graph, Rng& rng) const {
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types()) inputs.push_back(tensor(type, rng));
  return inputs;
}

std::optional<RandomRewrite> random_rewrite(const Graph& graph,
                                            std::span<const RuleMatcher> matchers,
                                            const Ranges& ranges, Rng& rng) {
  // Where a rule has several outputs, most matches take one node for two of them.
  constexpr size_t kPlaces = 4, kPlacesOfSeveral = 64;
  std::vector<RandomRewrite> places;
  KnownRanges known(graph, ranges);
  for (const RuleMatcher& matcher : matchers) {
    const auto outputs = matcher.rule().left.outputs();
    for (RuleMatch& match : matcher.all(graph, outputs.size() > 1 ? kPlacesOfSeveral : kPlaces)) {
      std::set<uint32_t> results;
      for (ValueId v : outputs) results.insert(match.values[v.index].index);
      if (results.size() == outputs.size() && known.suffice(matcher.rule(), match))
        places.push_back({&matcher, std::move(match)});
    }
  }
  if (places.empty()) return std::nullopt;
  return rng.pick(places);
}

DifferentialCase random_rewritten_case(uint64_t seed, const Target& host, Isa highest) {
  Rng rng(seed);
  const int32_t decades = rng.chance(0.5) ? 0 : rng.between(1, 12);
  const RandomMagnitudes magnitudes(decades);
  DifferentialCase one;
  one.judge = Judge::accurate;
  one.isa = kIsas[rng.below(static_cast<uint64_t>(std::min(highest, host.isa)) + 1)];
  one.graph = RandomTerms(magnitudes, rng).make();
  one.inputs = magnitudes.inputs(one.graph, rng);
  one.plan.graph = one.graph.name();
  const Ranges ranges(decades);
  Graph made = rewritable(one.graph).value();
  for (int64_t left = rng.between(1, 10); left > 0; --left) {
    const std::optional<RandomRewrite> next = random_rewrite(made, matchers(), ranges, rng);
    if (!next) break;
    one.plan.rewrite.push_back(rewrite_of(*next->matcher, made, next->match));
    made = rewrite(next->matcher->rule(), made, next->match).value();
  }
  if (rng.chance(0.5)) return one;
  const Plan rewrites = one.plan;
  const Target target = restricted(host, one.isa);
  Compilation compilation(one.graph, target, {.plan = rewrites});
  one.plan = random_plan(*compilation.graph().value(), target, seed);
  set_rewrites(one.plan, rewrites);
  return one;
}

}  // namespace hone
