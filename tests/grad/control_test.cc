#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ir/text.h"
#include "tests/base/says_testing.h"
#include "tests/grad/grad_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

Graph parsed(std::string_view text) {
  Result<Graph> graph = parse_graph(text);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph.ok() ? *graph : Graph();
}

// Gradients of output 0 against differences, at random points.
void check(const Graph& graph, int order = 2) {
  Graph derived = graph;
  uint32_t loss = 0;
  for (int i = 0; i < order; ++i) {
    if (i > 0) {
      derived = *with_loss(derived, 7);
      loss = static_cast<uint32_t>(derived.outputs().size()) - 1;
    }
    const Graph function = derived;
    const Mask inputs = differentiable_inputs(function);
    Result<Graph> made = grad(function, loss, inputs);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    derived = std::move(*made);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<Tensor> direction = random_direction(graph, inputs, seed);
      std::vector<Tensor> values = random_direction(graph, inputs, seed + 10);
      for (size_t k = 0; k < values.size(); ++k)
        if (!values[k])
          values[k] = Tensor::from_integers(graph.type(graph.inputs()[k]),
                                            std::vector<int64_t>{static_cast<int64_t>(seed % 2)});
      const std::vector<Tensor> outputs = evaluated(derived, values);
      const Product back =
          product(std::span(outputs).subspan(function.outputs().size()), direction);
      const Slope slope = measured_slope(function, loss, values, direction);
      if (!slope.is_smooth) continue;
      EXPECT_NEAR(back.value, slope.value, 1e-6 * std::max(1.0, back.size)) << print(derived);
    }
  }
}

TEST(GradControl, IfTakesTheBranchThatWasTaken) {
  check(parsed(R"(
graph @g(%p: bool[], %x: f64[3], %y: f64[]) -> f64[] {
  %r = if %p, %x, %y then (%a: f64[3], %b: f64[]) {
    %e = exp %a
    %s = reduce %e {kind = sum, axes = [0]}
    %q = mul %s, %b
    return %q
  } else (%a: f64[3], %b: f64[]) {
    %e = sin %b
    %f = mul %e, %b
    return %f
  }
  %z = mul %r, %r
  return %z
}
)"));
}

TEST(GradControl, ScanRunsBackwards) {
  check(parsed(R"(
graph @g(%h: f64[2], %w: f64[2, 2], %x: f64[4, 2]) -> f64[] {
  %a, %v, %ys = scan %h, %w, %x {carried = 2} body (%s: f64[2], %m: f64[2, 2], %t: f64[2]) {
    %p = dot %m, %s {lhs_contract = [1], rhs_contract = [0]}
    %q = add %p, %t
    %n = tanh %q
    %o = mul %n, %t
    return %n, %m, %o
  }
  %1 = reduce %ys {kind = sum, axes = [0, 1]}
  %2 = reduce %a {kind = sum, axes = [0]}
  %3 = mul %1, %2
  return %3
}
)"));
}

TEST(GradControl, ScanFromTheBackAndWithoutScannedOperands) {
  check(parsed(R"(
graph @g(%h: f64[], %x: f64[5]) -> f64[] {
  %a, %ys = scan %h, %x {carried = 1, reverse = true} body (%s: f64[], %t: f64[]) {
    %p = mul %s, %t
    %q = sin %p
    return %q, %p
  }
  %b = scan %a {carried = 1, length = [3]} body (%s: f64[]) {
    %p = mul %s, %s
    %q = cos %p
    return %q
  }
  %1 = reduce %ys {kind = sum, axes = [0]}
  %3 = mul %1, %b
  return %3
}
)"));
}

constexpr std::string_view kCounted = R"(
graph @g(%x: f64[], %w: f64[]) -> f64[] {
  %i = constant 0 : i32[]
  %n, %y, %v = while %i, %x, %w condition (%c: i32[], %s: f64[], %f: f64[]) {
    %limit = constant 5 : i32[]
    %p = compare %c, %limit {direction = lt}
    return %p
  } body (%c: i32[], %s: f64[], %f: f64[]) {
    %one = constant 2 : i32[]
    %m = add %c, %one
    %t = mul %s, %f
    %u = sin %t
    return %m, %u, %f
  }
  return %y
}
)";

TEST(GradControl, AWhileThatCountsIsAScan) { check(parsed(kCounted)); }

TEST(GradControl, AWhileThatMayEndEarlier) {
  check(parsed(R"(
graph @g(%x: f64[], %w: f64[]) -> f64[] {
  %i = constant 9 : i64[]
  %n, %y, %v = while %i, %x, %w condition (%c: i64[], %s: f64[], %f: f64[]) {
    %limit = constant 0 : i64[]
    %p = compare %c, %limit {direction = gt}
    %big = constant 100 : f64[]
    %q = compare %s, %big {direction = lt}
    %r = and %p, %q
    return %r
  } body (%c: i64[], %s: f64[], %f: f64[]) {
    %one = constant 1 : i64[]
    %m = sub %c, %one
    %t = exp %s
    %u = mul %t, %f
    return %m, %u, %f
  }
  return %y
}
)"));
}

TEST(GradControl, AWhileWithoutABoundIsRefused) {
  const Graph graph = parsed(R"(
graph @g(%x: f64[]) -> f64[] {
  %y = while %x condition (%s: f64[]) {
    %big = constant 100 : f64[]
    %q = compare %s, %big {direction = lt}
    return %q
  } body (%s: f64[]) {
    %t = add %s, %s
    return %t
  }
  return %y
}
)");
  Result<Graph> made = grad(graph, 0, {true});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code(), ErrorCode::unsupported);
  EXPECT_THAT(made.error().to_string(), says("bound ... rounds"));
  EXPECT_THAT(made.error().to_string(), HasSubstr("%y"));
}

}  // namespace
}  // namespace hone::HONE_FILE
