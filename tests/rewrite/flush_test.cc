#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/rng.h"
#include "ir/functional.h"
#include "ir/text.h"
#include "rewrite/effective_terms.h"
#include "rewrite/passes.h"
#include "rewrite/prepare.h"

namespace hone::HONE_FILE {
namespace {

using Numbers = std::function<double(int64_t)>;

Tensor weights(const Dims& dims, const Numbers& number) {
  const Type type = Type::get(DType::f32, dims);
  std::vector<double> all(static_cast<size_t>(type.static_elements()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = number(static_cast<int64_t>(i));
  return Tensor::from_reals(type, all);
}

Numbers normal(Rng& rng) {
  return [&rng](int64_t) { return rng.normal(); };
}

TEST(EffectiveTerms, CountWeightsOfEqualSize) {
  const auto count = [](const Numbers& number) {
    return effective_terms(weights({3, 1000}, number), {1});
  };
  EXPECT_NEAR(count([](int64_t) { return -2; }), 1000, 1e-6);
  EXPECT_NEAR(count([](int64_t i) { return i % 4 == 0 ? 1 : 0; }), 250, 1e-6);
  EXPECT_NEAR(count([](int64_t i) { return i % 1000 == 7 ? 1e6 : 1e-6; }), 1, 1e-6);
  Rng rng(1);
  EXPECT_NEAR(count(normal(rng)), 637, 40);
}

// The terms of the feature with the fewest; one of zeros has no errors.
TEST(EffectiveTerms, AreTheLeastOfAllFeatures) {
  const Tensor all = weights({2, 3, 5}, [](int64_t i) {
    const int64_t feature = i / 5 % 3;
    return feature == 0 ? 0 : feature == 1 ? 1 : i % 5 == 0 ? 3 : 0;
  });
  EXPECT_NEAR(effective_terms(all, {0, 2}), 2, 1e-9);
  EXPECT_NEAR(effective_terms(all, {1, 2}), 64.0 / 14, 1e-9);
  EXPECT_EQ(effective_terms(weights({4, 4}, [](int64_t) { return 0; }), {1}), 0);
}

TEST(EffectiveTerms, AreNoneOfWeightsThatAreNotFinite) {
  for (double one :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(effective_terms(weights({2, 8}, [&](int64_t i) { return i == 3 ? one : 1; }), {1}),
              0);
}

// The permission of the only contraction of the graph.
int64_t parts_of(const Graph& graph, bool flushes = true) {
  const Graph prepared = prepare(graph, {.flushes_denormals = flushes}).value();
  for (NodeId n : prepared.nodes())
    if (prepared.opcode(n) == Opcode::dot || prepared.opcode(n) == Opcode::conv) {
      EXPECT_EQ(prepared.op(n).flag("flush"), flushes);
      return prepared.op(n).integer("parts");
    }
  return -1;
}

Graph product(const Tensor& w, bool is_swapped = false) {
  Builder b;
  const int64_t depth = w.type().dim(0).value();
  const Value x = b.parameter("x", DType::f32, {4, depth}), y = b.constant(w, "w");
  const Value sum =
      is_swapped
          ? b.op(Opcode::dot, {y, x}, {{"lhs_contract", Ints{0}}, {"rhs_contract", Ints{1}}})
          : b.op(Opcode::dot, {x, y}, {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}});
  return b.finish({sum}).value();
}

TEST(PermitFlushing, CutsLongSumsIntoTwoParts) {
  Rng rng(1);
  const Tensor w = weights({10'000, 8}, normal(rng));
  EXPECT_EQ(parts_of(product(w)), 2);
  EXPECT_EQ(parts_of(product(w, true)), 2);
  EXPECT_EQ(parts_of(product(w), false), 3);
}

TEST(PermitFlushing, CutsOtherSumsIntoThreeParts) {
  Rng rng(1);
  EXPECT_EQ(parts_of(product(weights({4608, 8}, normal(rng)))), 3);
  EXPECT_EQ(parts_of(product(
                weights({10'000, 8}, [&](int64_t) { return rng.chance(0.3) ? rng.normal() : 0; }))),
            3);
  EXPECT_EQ(parts_of(product(
                weights({10'000, 8}, [&](int64_t i) { return i == 5 ? HUGE_VAL : rng.normal(); }))),
            3);
  Builder b;
  const Value x = b.parameter("x", DType::f32, {4, 10'000});
  const Value w = b.parameter("w", DType::f32, {10'000, 8});
  const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
  EXPECT_EQ(parts_of(b.finish({b.op(Opcode::dot, {x, w}, contract)}).value()), 3);
}

// Sums that the graph itself makes short: rows of a table, padding, masks.
TEST(PermitFlushing, CutsSumsOfZerosIntoThreeParts) {
  Rng rng(1);
  const Tensor table = weights({10'000, 8}, normal(rng));
  const auto parts = [&](std::string_view data) {
    Graph graph =
        parse_graph(fmt::format("graph @g(%p: f32[4, 10000], %q: f32[4, 5000], %i: i32[4]) {{ {} "
                                "return %x }}",
                                data))
            .value();
    Builder b;
    const std::vector<Value> inputs = {b.parameter("p", DType::f32, {4, 10'000}),
                                       b.parameter("q", DType::f32, {4, 5'000}),
                                       b.parameter("i", DType::i32, {4})};
    const Value x = b.inlined(graph, inputs)[0];
    const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
    return parts_of(b.finish({b.op(Opcode::dot, {x, b.constant(table, "t")}, contract)}).value());
  };
  EXPECT_EQ(parts("%a = tanh %p %x = add %a, %p"), 2);
  EXPECT_EQ(parts("%x = one_hot %i {axis = 1, depth = [10000], dtype = f32}"), 3);
  EXPECT_EQ(parts("%x = pad %q, 0 {low = [0, 0], high = [0, 5000]}"), 3);
  EXPECT_EQ(parts("%n = compare %p, %p {direction = le} %m = cast %n {dtype = f32} "
                  "%x = mul %m, %p"),
            3);
}

TEST(PermitFlushing, LooksAtTheWeightsOfAConv) {
  Rng rng(1);
  const auto parts = [&](int64_t channels, Attrs attrs) {
    Builder b;
    const Value x = b.parameter("x", DType::f32, {1, channels, 5, 5});
    const Value w = b.constant(weights({2, channels, 3, 3}, normal(rng)), "w");
    return parts_of(b.finish({b.op(Opcode::conv, {x, w}, std::move(attrs))}).value());
  };
  EXPECT_EQ(parts(1200, {}), 2);
  EXPECT_EQ(parts(512, {}), 3);
  EXPECT_EQ(parts(1200, {{"order", std::string("bf01_oi01->bf01")}, {"stride", Ints{2, 2}}}), 2);
  // Windows at the border have fewer terms.
  EXPECT_EQ(parts(1200, {{"pad_low", Ints{0, 0}}, {"pad_high", Ints{0, 1}}}), 3);
}

TEST(PermitFlushing, TextKeepsThePermission) {
  const std::string text =
      "graph @g(%x: f32[4, 8], %w: f32[8, 4]) { %y = dot %x, %w {lhs_contract = [1], "
      "rhs_contract = [0], flush = true, parts = 2} return %y }";
  const Graph graph = parse_graph(text).value();
  EXPECT_NE(print(graph).find("parts = 2"), std::string::npos) << print(graph);
  EXPECT_EQ(print(parse_graph(print(graph)).value()), print(graph));
  // It is checked anew.
  EXPECT_EQ(print(permit_flushing(graph).value()).find("parts"), std::string::npos);
  // Whoever asked for tf32 keeps it.
  const Graph asked = parse_graph(
                          "graph @g(%x: f32[4, 8], %w: f32[8, 4]) { %y = dot %x, %w "
                          "{lhs_contract = [1], rhs_contract = [0], parts = 1} return %y }")
                          .value();
  EXPECT_NE(print(permit_flushing(asked).value()).find("parts = 1"), std::string::npos);
  const Result<Graph> wrong = parse_graph(
      "graph @g(%x: f32[4, 8], %w: f32[8, 4]) { %y = dot %x, %w {lhs_contract = [1], "
      "rhs_contract = [0], parts = 4} return %y }");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().to_string().find("not 1 to 3"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
