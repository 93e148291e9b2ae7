#include "ir/magnitude.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "ir/graph_copy.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/expand.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

MagnitudeSources sources(Magnitude input) {
  return {[input](ValueId) { return input; },
          [](const Tensor& constant) { return magnitude_of(constant); }};
}

// The magnitude of the result of a graph whose inputs are between 2^-4 and 2^4.
Magnitude of_text(std::string_view text) {
  const Graph graph = parse_graph(text).value();
  return magnitudes_of(graph, sources({-4, 4, false, false}))[graph.outputs()[0].index];
}
Magnitude of_body(std::string_view body) {
  return of_text(
      fmt::format("graph @f(%x: f32[8, 4], %y: f32[8, 4]) -> f32[8, 4] {{ {} "
                  "return %r }}",
                  body));
}

TEST(Magnitude, OfConstantsIsThatOfTheirElements) {
  const Magnitude mixed =
      magnitude_of(Tensor::of<float>(Type::get(DType::f32, {3}), std::vector<float>{0, -0.25F, 8}));
  EXPECT_EQ(mixed, (Magnitude{-2, 3, false, false}));
  EXPECT_TRUE(magnitude_of(Tensor::zeros(Type::get(DType::f32, {3}))).is_zero());
  EXPECT_EQ(magnitude_of(Tensor::scalar(DType::f32, NAN)), Magnitude());
  EXPECT_EQ(magnitude_of(Tensor::scalar(DType::f32, -INFINITY)).high, Magnitude::kAny);
}

TEST(Magnitude, OfProductsAddsExponents) {
  EXPECT_EQ(of_body("%r = mul %x, %y"), (Magnitude{-8, 8, false, false}));
  EXPECT_EQ(of_body("%r = div %x, %y"), (Magnitude{-8, 8, false, false}));
  const Magnitude dot = of_text(R"(graph @f(%x: f32[2, 16], %y: f32[16, 2]) -> f32[2, 2] {
  %r = dot %x, %y {lhs_contract = [1], rhs_contract = [0]}
  return %r
})");
  EXPECT_EQ(dot, (Magnitude{-8, 12, true, false}));
}

TEST(Magnitude, OfSumsIsThatOfTheirTerms) {
  EXPECT_EQ(of_body("%r = add %x, %y"), (Magnitude{-4, 5, true, false}));
  EXPECT_EQ(of_body("%a = abs %x %b = abs %y %r = add %a, %b"), (Magnitude{-4, 5, false, true}));
  // A quotient by a sum may be as large as its terms cancel.
  EXPECT_EQ(of_body("%s = add %x, %y %r = div %x, %s").high, Magnitude::kAny);
}

TEST(Magnitude, OfBoundedOpsIsAtMostOne) {
  for (std::string_view op : {"tanh", "erf", "logistic", "sin", "cos"})
    EXPECT_EQ(of_body(fmt::format("%r = {} %x", op)).high, 0) << op;
  EXPECT_EQ(of_body("%0 = constant 0 : f32[8, 4] %6 = constant 6 : f32[8, 4] %a = max %x, %0 "
                    "%r = min %a, %6")
                .high,
            std::log2(6.));
}

TEST(Magnitude, OfSoftmaxIsAtMostOne) {
  constexpr std::string_view kText = R"(graph @f(%x: f32[8, 4]) -> f32[8, 4] {{
  %m = reduce %x {{kind = max, axes = [1]}}
  %mb = broadcast %m {{dims = [8, 4], map = [0]}}
  %d = sub %x, %mb
  %e = exp %d
  %t = reduce {} {{kind = sum, axes = [1]}}
  %tb = broadcast %t {{dims = [8, 4], map = [0]}}
  %y = div %e, %tb
  return %y
}})";
  EXPECT_EQ(of_text(fmt::format(kText, "%e")).high, 0);
  EXPECT_GT(of_text(fmt::format(kText, "%d")).high, 0);
}

TEST(Magnitude, OfNormsIsBoundedByTheirSizes) {
  for (std::string_view op : {"rms_norm", "layer_norm"}) {
    const Graph given = parse_graph(fmt::format("graph @f(%x: f32[8, 64]) -> f32[8, 64] {{ %y = {} "
                                                "%x {{axis = 1}} return %y }}",
                                                op))
                            .value();
    const Graph graph = expand_composites(given, [](Opcode) { return true; }).value();
    const auto all = magnitudes_of(graph, sources(Magnitude()));
    EXPECT_NEAR(all[graph.outputs()[0].index].high, 3, 1e-6) << op;  // sqrt(64)
  }
}

// Whatever the graph: elements are within what is said of them, but for zeros and cancelling sums.
TEST(Magnitude, HoldsOfRandomGraphs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph given =
        random_graph({.seed = seed, .min_steps = 2, .max_steps = 5, .max_elements = 64});
    const Graph graph = expand_composites(given, [](Opcode) { return true; }).value();
    const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
    std::vector<Magnitude> of_inputs(graph.value_count());
    for (size_t i = 0; i < inputs.size(); ++i)
      of_inputs[graph.inputs()[i].index] = magnitude_of(inputs[i]);
    const auto said =
        magnitudes_of(graph, {[&](ValueId v) { return of_inputs[v.index]; },
                              [](const Tensor& constant) { return magnitude_of(constant); }});
    Graph all = graph;
    std::vector<ValueId> values;
    for (uint32_t v = 0; v < graph.value_count(); ++v)
      if (is_real(graph.type(ValueId{v}).dtype())) values.push_back(ValueId{v});
    all.set_outputs(values);
    const EvalOptions wide = {.numerics = Numerics::wide, .real_outputs_as_f64 = true};
    const std::vector<Tensor> found = evaluate(all, inputs, wide).value();
    for (size_t o = 0; o < values.size(); ++o) {
      const Magnitude& bound = said[values[o].index];
      for (int64_t i = 0; i < found[o].elements(); ++i) {
        const double number = found[o].real_at(i), size = std::log2(std::abs(number));
        if (!std::isfinite(number) || number == 0) continue;
        ASSERT_LE(size, bound.high + 1e-3) << graph.describe(graph.producer(values[o]));
        if (!bound.is_sum)
          ASSERT_GE(size, bound.low - 1e-3) << graph.describe(graph.producer(values[o]));
        if (bound.is_positive) ASSERT_GE(number, 0) << graph.describe(graph.producer(values[o]));
      }
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
