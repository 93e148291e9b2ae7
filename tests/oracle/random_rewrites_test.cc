#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

#include "base/rng.h"
#include "compile/compilation.h"
#include "ir/graph_copy.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/differential.h"
#include "plan/random_plan.h"
#include "plan/rewritten.h"
#include "rules/rule_files.h"
#include "rules/sizes.h"
#include "tests/oracle/host_testing.h"
#include "zoo/inputs.h"

// Random graphs made of what rules match, rewritten at random: the reference evaluates them as the
// graph as it was, and native code under random plans holds to that.

namespace hone {
namespace {

const std::vector<Rule>& rules() {
  static const std::vector<Rule> rules = default_rules().value();
  return rules;
}

const std::vector<RuleMatcher>& matchers() {
  static const std::vector<RuleMatcher> matchers(rules().begin(), rules().end());
  return matchers;
}

// Left sides of rules over each other's results and inputs, with a few ops between them.
class RandomTerms {
 public:
  explicit RandomTerms(uint64_t seed) : rng_(seed) {}

  Graph make() {
    const int64_t steps = rng_.between(2, 6);
    for (int64_t step = 0; step < steps; ++step) {
      if (rng_.chance(0.3) && !last_.empty()) combine();
      add_left_side(rng_.pick(rules()));
    }
    if (rng_.chance(0.5)) combine();
    std::vector<bool> is_read(graph_.value_count());
    for (NodeId n : graph_.nodes())
      for (ValueId v : graph_.operands(n)) is_read[v.index] = true;
    std::vector<ValueId> outputs;
    for (uint32_t v = 0; v < graph_.value_count(); ++v)
      if (graph_.opcode(graph_.producer(ValueId{v})) != Opcode::parameter &&
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
    Graph one("one");
    one.set_outputs({one.add_parameter(type)});
    return graph_.add_constant(random_inputs(one, rng_()).value()[0]);
  }

  void add_left_side(const Rule& rule) {
    const Graph left = specialize(rule.left, sizes_of(rule)).value();
    std::vector<ValueId> map(left.value_count());
    for (NodeId n : left.nodes()) {
      const ValueId result = left.result(n);
      if (left.opcode(n) == Opcode::parameter) {
        map[result.index] = input(left.type(result));
      } else if (left.opcode(n) == Opcode::constant) {
        map[result.index] = graph_.add_constant(left.constant(n));
      } else {
        std::vector<ValueId> operands;
        for (ValueId v : left.operands(n)) operands.push_back(map[v.index]);
        map[result.index] = graph_.result(graph_.append(left.op(n), operands).value());
      }
    }
    for (ValueId v : left.outputs()) last_.push_back(map[v.index]);
  }

  void combine() {
    const ValueId a = rng_.pick(last_);
    constexpr Opcode kUnary[] = {Opcode::neg, Opcode::tanh, Opcode::abs};
    constexpr Opcode kBinary[] = {Opcode::add, Opcode::mul, Opcode::max, Opcode::sub};
    std::vector<ValueId> operands = {a};
    if (rng_.chance(0.6)) operands.push_back(input(graph_.type(a)));
    const Op op = Op::get(operands.size() == 1 ? rng_.pick(kUnary) : rng_.pick(kBinary), {});
    last_.push_back(graph_.result(graph_.append(op, operands).value()));
  }

  Rng rng_;
  Graph graph_ = Graph("g");
  std::vector<ValueId> last_;
};

// Random rewrites, each of what the ones before have made.
std::vector<Rewrite> random_rewrites(Graph& graph, Rng& rng, int64_t most) {
  std::vector<Rewrite> rewrites;
  for (int64_t step = 0; step < most; ++step) {
    std::vector<std::pair<const RuleMatcher*, RuleMatch>> places;
    for (const RuleMatcher& matcher : matchers())
      for (const RuleMatch& match : matcher.all(graph, 4)) {
        std::set<uint32_t> results;
        for (ValueId v : matcher.rule().left.outputs()) results.insert(match.values[v.index].index);
        if (results.size() == matcher.rule().left.outputs().size())
          places.emplace_back(&matcher, match);
      }
    if (places.empty()) break;
    const auto& [matcher, match] = rng.pick(places);
    rewrites.push_back(rewrite_of(*matcher, graph, match));
    graph = rewrite(matcher->rule(), graph, match).value();
    EXPECT_TRUE(verify(graph).ok());
  }
  return rewrites;
}

// Rules are true of numbers: what divides by 0 has other NaN behind a rewrite.
bool is_finite(const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<Tensor> outputs = evaluate(graph, inputs).value();
  for (const Tensor& output : outputs)
    for (int64_t i = 0; i < output.elements(); ++i)
      if (!std::isfinite(output.real_at(i))) return false;
  return true;
}

// To what doubles round, in units of the largest number on the way to an output.
void expect_equal(const Graph& was, const Graph& is, const std::vector<Tensor>& inputs) {
  const EvalOptions wide = {.numerics = Numerics::wide, .real_outputs_as_f64 = true};
  const std::vector<Tensor> wanted = evaluate(was, inputs, wide).value();
  const std::vector<Tensor> found = evaluate(is, inputs, wide).value();
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t o = 0; o < found.size(); ++o) {
    double largest = 1;
    for (int64_t i = 0; i < wanted[o].elements(); ++i)
      largest = std::max(largest, std::abs(wanted[o].real_at(i)));
    for (int64_t i = 0; i < wanted[o].elements(); ++i)
      ASSERT_NEAR(found[o].real_at(i), wanted[o].real_at(i), 1e-6 * largest) << "output " << o;
  }
}

void test_case(uint64_t seed, size_t& applied) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const Graph given = RandomTerms(seed).make();
  ASSERT_TRUE(verify(given).ok());
  Graph made = rewritable(given).value();
  Plan plan;
  plan.graph = given.name();
  plan.rewrite = random_rewrites(made, rng, rng.between(1, 10));
  applied += plan.rewrite.size();
  const Result<Plan> read = parse_plan(print(plan));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(*read, plan);
  DifferentialCase one = {.graph = given, .inputs = random_inputs(given, seed).value()};
  if (!is_finite(given, one.inputs)) return;
  const Result<Graph> graph = rewritten(given, plan);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string() << print(one);
  ASSERT_NO_FATAL_FAILURE(expect_equal(given, *graph, one.inputs)) << print(plan) << print(given);
  if (seed % 4 != 0) return;  // making code takes longest
  one.isa = kIsas[rng.below(static_cast<uint64_t>(host().isa) + 1)];
  one.judge = Judge::accurate;
  one.plan = plan;
  if (rng.chance(0.5)) {
    const Target target = restricted(host(), one.isa);
    Compilation compilation(given, target, {.plan = plan});
    const Result<const Graph*> prepared = compilation.graph();
    ASSERT_TRUE(prepared.ok()) << prepared.error().to_string() << print(one);
    one.plan = random_plan(**prepared, target, seed);
    set_rewrites(one.plan, plan);
  }
  const DifferentialOutcome outcome = run_case(one, host(), team());
  ASSERT_FALSE(is_failure(outcome.verdict))
      << name(outcome.verdict) << ": " << outcome.reason << "\n"
      << print(one);
}

void test_cases(uint64_t first, uint64_t count) {
  size_t applied = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) test_case(seed, applied);
  EXPECT_GT(applied, count);
  std::cout << count << " cases, " << applied << " rewrites\n";
}

TEST(RandomRewrites, ComputeTheSame) { test_cases(0, 60); }
TEST(RandomRewrites, DISABLED_SweepThousands) { test_cases(1000, 4000); }

}  // namespace
}  // namespace hone
