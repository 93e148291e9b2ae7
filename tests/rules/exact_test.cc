#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rules/exact.h"
#include "rules/numbers.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

// The field evaluation of the reference and this one share the field alone.
void expect_same_as_reference(const Graph& graph, Rng& rng, int& compared) {
  std::vector<FieldInput> inputs;
  std::vector<std::vector<FieldElement>> elements;
  // Integers wrap there, and a cast between reals changes nothing.
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == Opcode::cast) return;
    for (ValueId v : graph.results(n))
      if (!is_real(graph.type(v).dtype())) return;
  }
  for (Type type : graph.input_types()) {
    if (!is_real(type.dtype()) || type.static_elements() > 4096) return;
    FieldInput& input = inputs.emplace_back();
    auto& list = elements.emplace_back();
    for (int64_t i = 0; i < type.static_elements(); ++i) {
      list.push_back(FieldElement::from_residue(rng.next()));
      input.residues.push_back(list.back().residue());
    }
  }
  const auto wanted = evaluate_in_field(graph, inputs);
  if (!wanted.ok()) return;
  FieldNumbers numbers(1);
  ReadTables tables;
  const auto actual = ExactEvaluator<FieldNumbers>(numbers, tables).run(graph, elements);
  if (!actual.ok()) return;
  ++compared;
  for (size_t o = 0; o < wanted->size(); ++o)
    for (size_t e = 0; e < (*wanted)[o].size(); ++e)
      ASSERT_EQ((*wanted)[o][e], (*actual)[o][e].residue()) << print(graph);
}

TEST(ExactEvaluator, AgreesWithTheReferenceOnEachOp) {
  Rng rng(7);
  int compared = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Graph graph = random_graph({.seed = seed, .min_steps = 10, .max_steps = 20});
    for (NodeId n : graph.nodes()) {
      if (is_leaf(graph.opcode(n)) || graph.results(n).size() != 1) continue;
      const ValueId result = graph.result(n);
      const Graph one = extract_subgraph(graph, std::span(&n, 1), std::span(&result, 1)).value();
      if (one.is_static()) expect_same_as_reference(one, rng, compared);
    }
  }
  EXPECT_GT(compared, 100);
}

TEST(Polynomials, HaveOneNumberForEqualOnes) {
  Polynomials p;
  const auto x = p.variable(0), y = p.variable(1), z = p.variable(2);
  EXPECT_EQ(p.multiply(p.add(x, y), z), p.add(p.multiply(z, y), p.multiply(x, z)));
  EXPECT_EQ(p.add(x, p.negate(x)), p.number(0));
  EXPECT_EQ(p.divide(p.divide(x, y), z), p.divide(x, p.multiply(y, z)));
  EXPECT_NE(p.divide(x, x), p.number(1));  // not where x is 0
  const Polynomials::Number xy[] = {x, y}, yz[] = {y, z}, xyz[] = {z, y, x};
  const Polynomials::Number left[] = {p.largest(xy), z}, right[] = {x, p.largest(yz)};
  EXPECT_EQ(p.largest(left), p.largest(right));
  EXPECT_EQ(p.largest(left), p.largest(xyz));
  EXPECT_TRUE(p.exact());
}

TEST(PrimeNumbers, AreAField) {
  Rng rng(5);
  const PrimeNumbers p(rng), q(rng);
  EXPECT_NE(p.prime(), q.prime());
  EXPECT_GT(p.prime(), uint64_t{1} << 61);
  const uint64_t x = rng.below(p.prime()), y = rng.below(p.prime());
  EXPECT_EQ(p.multiply(p.divide(x, y), y), x);
  EXPECT_EQ(p.add(x, p.negate(x)), 0u);
  EXPECT_EQ(p.divide(x, 0), 0u);
  EXPECT_EQ(p.multiply(p.number(0.75), p.number(-4)), p.number(-3));
  EXPECT_EQ(p.number(0x1p61), uint64_t{1} << 61);
  EXPECT_NE(p.number(INFINITY), p.number(-INFINITY));
  EXPECT_NE(FieldNumbers(1).number(INFINITY), FieldNumbers(1).number(NAN));
}

TEST(OrderedNumbers, SayWhenTheyAreTooLarge) {
  OrderedNumbers numbers(1);
  __int128 x = numbers.number(1e9);
  for (int i = 0; i < 3; ++i) x = numbers.multiply(x, numbers.number(1e9));
  EXPECT_FALSE(numbers.exact());
}

TEST(ExactEvaluator, KnowsPlacesAndBools) {
  const Graph graph = parse_graph(R"(graph @g(%p: bool[2, 3], %q: bool[2, 3]) {
  %i = iota {dtype = f32, dims = [2, 3], axis = 0}
  %j = iota {dtype = f32, dims = [2, 3], axis = 1}
  %e = compare %i, %j {direction = eq}
  %n = not %p
  %a = and %n, %q
  %o = or %a, %e
  %x = xor %o, %p
  %y = select %x, %i, %j
  return %y
})")
                          .value();
  std::vector<std::vector<__int128>> inputs = {{0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 1, 0}};
  OrderedNumbers ordered(1);
  ReadTables tables;
  const auto found = ExactEvaluator<OrderedNumbers>(ordered, tables).run(graph, inputs).value()[0];
  // not p and q, or on the diagonal: 1 0 1, 0 1 0; and then differing from p: 1 1 1, 1 1 1.
  EXPECT_EQ(found, (std::vector<__int128>{0, 0, 0, 1, 1, 1}));
  // Polynomials know comparisons of numbers.
  const Graph masked = parse_graph(R"(graph @g(%x: f32[2, 3], %y: f32[2, 3]) {
  %i = iota {dtype = f32, dims = [2, 3], axis = 0}
  %j = iota {dtype = f32, dims = [2, 3], axis = 1}
  %e = compare %i, %j {direction = ge}
  %z = select %e, %x, %y
  return %z
})")
                           .value();
  Polynomials polynomials;
  std::vector<std::vector<uint32_t>> variables(2);
  for (uint64_t i = 0; i < 12; ++i) variables[i / 6].push_back(polynomials.variable(i));
  const auto z = ExactEvaluator<Polynomials>(polynomials, tables).run(masked, variables).value()[0];
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(z[i], variables[i / 3 >= i % 3 ? 0 : 1][i]);
}

}  // namespace
}  // namespace hone::HONE_FILE
