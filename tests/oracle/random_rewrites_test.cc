#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

#include "base/hash.h"
#include "ir/graph_copy.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/accuracy_runs.h"
#include "oracle/rewritten_case.h"
#include "plan/rewritten.h"
#include "rules/rule_files.h"
#include "rules/sizes.h"
#include "search/rewrite_search.h"
#include "tests/oracle/host_testing.h"

// Random graphs made of what rules match, rewritten at random, on numbers of all magnitudes. The
// results are as accurate as those of the graph as it was, in floats of the reference and in native
// code under random plans.

namespace hone::HONE_FILE {
namespace {

const std::vector<RuleMatcher>& matchers() {
  static const std::vector<Rule> rules = default_rules().value();
  static const std::vector<RuleMatcher> matchers(rules.begin(), rules.end());
  return matchers;
}

using Tensors = std::vector<Tensor>;

constexpr EvalOptions kWide = {.numerics = Numerics::wide, .real_outputs_as_f64 = true};

// Nothing may be said where the graph as it was overflows, nor close to that. Sums whose terms
// cancel may overflow in one order and not in another, and kernels add up in any.
bool stays_finite(const Graph& given, const Tensors& inputs) {
  constexpr double kMost = 0x1p118;
  Graph all = given;
  std::vector<ValueId> values;
  for (uint32_t v = 0; v < all.value_count(); ++v)
    if (is_real(all.type(ValueId{v}).dtype())) values.push_back(ValueId{v});
  all.set_outputs(values);
  const Tensors computed = evaluate(all, inputs, kWide).value();
  for (const Tensor& value : computed)
    for (int64_t i = 0; i < value.elements(); ++i)
      if (!(std::abs(value.real_at(i)) < kMost)) return false;
  return true;
}

// A sum in double that loses much of the smaller of its terms: more than a float would keep of it.
bool loses_terms(const Graph& given, const Tensors& inputs) {
  Graph sums = given;
  std::vector<ValueId> operands;
  for (NodeId n : given.nodes())
    if (given.opcode(n) == Opcode::add || given.opcode(n) == Opcode::sub)
      for (ValueId operand : given.operands(n))
        if (is_real(given.type(operand).dtype())) operands.push_back(operand);
  sums.set_outputs(operands);
  const Tensors terms = evaluate(sums, inputs, kWide).value();
  constexpr double kKept = 0x1p29;  // of 53 bits, those that a float does not have
  for (size_t i = 0; i + 1 < terms.size(); i += 2)
    for (int64_t j = 0; j < terms[i].elements(); ++j) {
      const double a = std::abs(terms[i].real_at(j)), b = std::abs(terms[i + 1].real_at(j));
      if (std::min(a, b) > 0 && std::max(a, b) > kKept * std::min(a, b)) return true;
    }
  return false;
}

// Double is the judge of floats. Where it loses terms itself, both graphs have to agree in it,
// closer than floats do.
bool double_decides(const Graph& was, const Graph& is, const Tensors& inputs) {
  if (!loses_terms(was, inputs)) return true;
  const Tensors before = evaluate(was, inputs, kWide).value();
  const Tensors after = evaluate(is, inputs, kWide).value();
  constexpr double kPart = 0x1p-26;  // of the largest number
  for (size_t o = 0; o < before.size(); ++o) {
    if (!is_real(before[o].dtype())) continue;
    double largest = 0, apart = 0;
    for (int64_t i = 0; i < before[o].elements(); ++i) {
      largest = std::max(largest, std::abs(before[o].real_at(i)));
      apart = std::max(apart, std::abs(before[o].real_at(i) - after[o].real_at(i)));
    }
    if (apart > kPart * largest) return false;
  }
  return true;
}

// The tolerance by the rule of 'hone check', in plain float.
void expect_as_accurate(const Graph& was, const Graph& is, const Tensors& inputs) {
  const Contest contest = {
      .native =
          [&](const Tensors& with) { return evaluate(is, with, {.numerics = Numerics::fp32}); },
      .reference =
          [&](const Tensors& with, Numerics numerics) {
            return evaluate(was, with, {.numerics = numerics, .real_outputs_as_f64 = true});
          }};
  const Result<ContestResult> result = judge(contest, inputs);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  for (size_t o = 0; o < result->outputs.size(); ++o)
    ASSERT_TRUE(result->outputs[o].passed())
        << "output " << o << ": " << result->outputs[o].to_string();
}

struct Counts {
  size_t cases = 0, judged = 0, rewrites = 0, assuming = 0;
};

void test_case(uint64_t seed, Counts& counts) {
  SCOPED_TRACE(seed);
  const DifferentialCase one = random_rewritten_case(seed, host(), host().isa);
  ASSERT_TRUE(verify(one.graph).ok());
  ++counts.cases;
  counts.rewrites += one.plan.rewrite.size();
  counts.assuming += assumed_range(one.plan) > 0 ? 1 : 0;
  const Result<Plan> read = parse_plan(print(one.plan));
  ASSERT_TRUE(read.ok()) << read.error().to_string();
  ASSERT_EQ(*read, one.plan);
  const Result<Graph> graph = rewritten(one.graph, one.plan);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string() << print(one);
  ASSERT_TRUE(verify(*graph).ok());
  if (!stays_finite(one.graph, one.inputs)) return;
  if (!double_decides(one.graph, *graph, one.inputs)) return;
  ++counts.judged;
  ASSERT_NO_FATAL_FAILURE(expect_as_accurate(one.graph, *graph, one.inputs)) << print(one);
  if (seed % 4 != 0) return;  // making code takes longest
  const DifferentialOutcome outcome = run_case(one, host(), team());
  ASSERT_FALSE(is_failure(outcome.verdict))
      << name(outcome.verdict) << ": " << outcome.reason << "\n"
      << print(one);
}

void test_cases(uint64_t first, uint64_t count) {
  Counts counts;
  for (uint64_t seed = first; seed < first + count; ++seed) test_case(seed, counts);
  EXPECT_GT(counts.rewrites, count);
  EXPECT_GT(counts.judged, count / 4);
  std::cout << counts.cases << " cases, " << counts.judged << " judged, " << counts.rewrites
            << " rewrites, " << counts.assuming << " plans that assume a range\n";
}

TEST(RandomRewrites, ComputeTheSame) { test_cases(0, 80); }
TEST(RandomRewrites, DISABLED_SweepThousands) { test_cases(1000, 4000); }

// ---- -O3 ----------------------------------------------------------------------------------------

// The graph that a search finds by a price that any graph may have: as -O3 does, but for the price.
void test_search(uint64_t seed, size_t& rewritten_graphs) {
  SCOPED_TRACE(seed);
  constexpr size_t kPriced = 12;
  const DifferentialCase one = random_rewritten_case(seed, host(), host().isa);
  Rng rng(seed);
  CancelToken enough;
  size_t priced = 0;
  const auto price = [&](const Graph& graph) -> Result<double> {
    if (++priced >= kPriced) enough.cancel();
    return 1 + static_cast<double>(hash_combine(structural_hash(graph), seed) % 1000);
  };
  const NodeCost cost = [&](const EGraph&, NodeId n) {
    return static_cast<double>(1 + hash_combine(n.index, seed) % 100);
  };
  std::vector<Rule> rules;
  for (const RuleMatcher& matcher : matchers()) rules.push_back(matcher.rule());
  RewriteOptions options = {.seconds = 60, .cancel = &enough};
  options.egraph = {.nodes = 2000, .rounds = 3, .seconds = 60};
  options.assumed_decades = assumed_range(one.plan);
  const Result<Rewritten> found = search_rewrites(one.graph, rules, price, {&cost, 1}, options);
  ASSERT_TRUE(found.ok()) << found.error().to_string();
  if (found->rewrites.empty()) return;
  ++rewritten_graphs;
  Plan plan;
  plan.graph = one.graph.name();
  plan.rewrite = found->rewrites;
  const Result<Graph> graph = rewritten(one.graph, plan);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string() << print(plan) << print(one);
  if (!stays_finite(one.graph, one.inputs)) return;
  if (!double_decides(one.graph, *graph, one.inputs)) return;
  ASSERT_NO_FATAL_FAILURE(expect_as_accurate(one.graph, *graph, one.inputs))
      << print(plan) << print(one);
}

void test_searches(uint64_t first, uint64_t count) {
  size_t rewritten_graphs = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) test_search(seed, rewritten_graphs);
  EXPECT_GT(rewritten_graphs, count / 3);
  std::cout << rewritten_graphs << " of " << count << " graphs were rewritten\n";
}

TEST(RandomRewrites, ThatASearchFindsComputeTheSame) { test_searches(0, 20); }
TEST(RandomRewrites, DISABLED_SweepSearches) { test_searches(1000, 2000); }

// ---- Each rule by itself ------------------------------------------------------------------------

// The left side alone, with inputs of which some are constants.
Graph left_side(const Rule& rule, const RandomMagnitudes& magnitudes, Rng& rng) {
  const std::vector<Bindings> sizes = small_sizes(rule, 3, 100);
  const Graph left = specialize(rule.left, rng.pick(sizes)).value();
  GraphCopy copy(left);
  for (NodeId n : left.nodes()) {
    if (left.opcode(n) == Opcode::parameter && rng.chance(0.5))
      copy.replace(left.result(n),
                   copy.target().add_constant(magnitudes.tensor(left.type(left.result(n)), rng)));
    else
      EXPECT_TRUE(copy.node(n).ok());
  }
  return copy.finish();
}

void test_rules(uint64_t seeds, bool needs_all) {
  std::map<std::string, size_t> applied;
  for (const RuleMatcher& matcher : matchers()) {
    SCOPED_TRACE(matcher.rule().name);
    size_t& count = applied[matcher.rule().name];
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(hash_combine(hash_string(matcher.rule().name), seed));
      const int32_t decades = rng.chance(0.5) ? 0 : rng.between(1, 18);
      const RandomMagnitudes magnitudes(decades);
      const Graph given = left_side(matcher.rule(), magnitudes, rng);
      const Tensors inputs = magnitudes.inputs(given, rng);
      const Ranges ranges(decades);
      const std::optional<RandomRewrite> found = random_rewrite(given, {&matcher, 1}, ranges, rng);
      if (!found || !stays_finite(given, inputs)) continue;
      const Graph made = rewrite(matcher.rule(), given, found->match).value();
      if (!double_decides(given, made, inputs)) continue;
      ++count;
      ASSERT_NO_FATAL_FAILURE(expect_as_accurate(given, made, inputs)) << print(given);
    }
    if (needs_all) EXPECT_GT(count, 0u);
  }
}

TEST(RandomRewrites, OfEachRuleComputeTheSame) { test_rules(4, false); }
TEST(RandomRewrites, DISABLED_SweepEachRule) { test_rules(200, true); }

}  // namespace
}  // namespace hone::HONE_FILE
