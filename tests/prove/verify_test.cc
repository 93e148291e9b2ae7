#include <gtest/gtest.h>

#include <cmath>

#include "prove/verify.h"
#include "tests/base/share_testing.h"
#include "tests/prove/rules_testing.h"

namespace hone::HONE_FILE {
namespace {

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

TEST(CommittedRules, AreAsTrueAsTheySay) {
  uint64_t number = 0;
  for (const Rule& rule : committed_rules()) {
    if (!tested::in_share(number++, 8)) continue;
    const Result<RuleVerdict> verdict = verify(rule);
    ASSERT_TRUE(verdict.ok()) << rule.name << ": " << verdict.error().to_string();
    ASSERT_FALSE(verdict->refuted())
        << rule.name << ": " << verdict->identity.counterexample->to_string();
    EXPECT_GE(verdict->rung, rule.rung) << rule.name << ": " << verdict->stopped;
    EXPECT_EQ(verdict->floats, rule.floats) << rule.name << ": " << verdict->float_fault;
    EXPECT_EQ(verdict->within, rule.within) << rule.name;
    if (verdict->identity.log2_error) {
      EXPECT_LT(*verdict->identity.log2_error, -80) << rule.name;
    }
    EXPECT_EQ(parse_rules(print(rule)).value()[0].left.node_count(), rule.left.node_count());
  }
}

// ---- What must be refused -----------------------------------------------------------------------

void expect_refuted(std::string_view text, std::string_view at) {
  const RuleVerdict verdict = verify(rule_of(text)).value();
  ASSERT_TRUE(verdict.refuted());
  EXPECT_NE(verdict.identity.counterexample->to_string().find(at), std::string::npos)
      << verdict.identity.counterexample->to_string();
}

TEST(Verify, FindsWhatIsWrongOnlyAtABorder) {
  expect_refuted(R"(rule @r(%x: f32[N]) -> f32[N] where N in 4..64 {
  %y = window_reduce %x {kind = sum, window = [3], pad_low = [1], pad_high = [1]}
  return %y
} => {
  %p = pad %x, 1 {low = [1], high = [1]}
  %y = window_reduce %p {kind = sum, window = [3]}
  return %y
})",
                 "element [0]");
}

TEST(Verify, FindsWrongContractedDims) {
  expect_refuted(R"(rule @r(%x: f32[N, N], %y: f32[N, N]) -> f32[N, N] where N in 1..64 {
  %z = dot %x, %y {lhs_contract = [1], rhs_contract = [0]}
  return %z
} => {
  %z = dot %x, %y {lhs_contract = [0], rhs_contract = [0]}
  return %z
})",
                 "differs");
}

TEST(Verify, FindsWrongOrders) {
  expect_refuted(R"(rule @r(%x: f32[N], %y: f32[N]) -> f32[N] where N in 1..64 {
  %a = max %x, %y
  %z = mul %a, %a
  return %z
} => {
  %a = mul %x, %x
  %b = mul %y, %y
  %z = max %a, %b
  return %z
})",
                 "differs");
}

TEST(Verify, HoldsGuardsWhereItTests) {
  // True of two rows alone.
  constexpr std::string_view kText =
      R"(rule @r(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 {
  %s = reduce %x {kind = sum, axes = [0]}
  %two = constant 2 : f32[]
  %b = broadcast %two {dims = [N], map = []}
  %y = div %s, %b
  return %y
} => {
  %half = constant 0.5 : f32[]
  %m = broadcast %half {dims = [M, N], map = []}
  %p = mul %x, %m
  %y = reduce %p {kind = sum, axes = [0]}
  return %y
})";
  Rule rule = rule_of(kText);
  EXPECT_FALSE(verify(rule).value().refuted());  // 1/2 is 0.5 in the field
  rule = rule_of(R"(rule @r(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 {
  %s = reduce %x {kind = sum, axes = [0]}
  return %s
} => {
  %a = slice %x {start = [0, 0], limit = [1, N]}
  %s = reduce %a {kind = sum, axes = [0]}
  return %s
} when M < 2)");
  EXPECT_FALSE(verify(rule).value().refuted());
  rule.guard.clear();
  EXPECT_TRUE(verify(rule).value().refuted());
}

TEST(Floats, AreMarkedWhereARuleIsTrueOfRealsAlone) {
  const FloatTest test = test_floats(rule_of(R"(rule @r(%x: f32[N], %y: f32[N]) where N in 1..64 {
  %d = add %x, %y
  %z = sub %d, %y
  return %z
} => {
  return %x
})"))
                             .value();
  EXPECT_NE(test.effect, FloatEffect::exact);
  const FloatTest quotient = test_floats(rule_of(R"(rule @r(%x: f32[N]) where N in 1..64 {
  %y = mul %x, %x
  return %y
} => {
  %a = mul %x, %x
  %b = mul %a, %a
  %y = div %b, %a
  return %y
})"))
                                 .value();
  EXPECT_EQ(quotient.effect, FloatEffect::real_only);
  EXPECT_FALSE(quotient.fault.empty());
}

}  // namespace
}  // namespace hone::HONE_FILE
