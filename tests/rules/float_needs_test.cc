#include "rules/float_needs.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "rules/rule_files.h"

namespace hone::HONE_FILE {
namespace {

// "%bc, %s": what the right side is to stay within.
std::string needs_of(const Rule& rule) {
  std::vector<std::string> values;
  const std::vector<ValueId> needs = float_needs(rule).value();
  for (ValueId v : needs) values.push_back(rule.right.label(v));
  return join(values, ", ");
}
std::string needs_of(std::string_view text) { return needs_of(parse_rules(text).value()[0]); }

// A rule about three vectors, by its bodies.
std::string of_vectors(std::string_view left, std::string_view right) {
  return needs_of(
      fmt::format("rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] where N in "
                  "1..64 {{ {} return %r }} => {{ {} return %r }}",
                  left, right));
}

TEST(FloatNeeds, AreProductsThatTheLeftSideDoesNotMake) {
  EXPECT_EQ(of_vectors("%a = div %x, %y %r = div %a, %z", "%p = mul %y, %z %r = div %x, %p"), "%p");
  EXPECT_EQ(of_vectors("%a = mul %x, %y %r = mul %a, %z", "%p = mul %y, %z %r = mul %x, %p"), "%p");
  EXPECT_EQ(of_vectors("%a = mul %x, %y %r = mul %a, %z", "%p = mul %y, %x %r = mul %z, %p"), "");
}

TEST(FloatNeeds, AreSumsThatTheLeftSideDoesNotMake) {
  EXPECT_EQ(of_vectors("%a = mul %x, %z %b = mul %y, %z %r = add %a, %b",
                       "%s = add %x, %y %r = mul %s, %z"),
            "%s");
  // Two masks of -3e38 each.
  EXPECT_EQ(of_vectors("%a = add %x, %y %r = add %a, %z", "%s = add %y, %z %r = add %x, %s"), "%s");
  EXPECT_EQ(
      of_vectors("%a = sub %x, %y %b = neg %a %r = add %b, %z", "%a = sub %y, %x %r = add %a, %z"),
      "");
}

// x - y may be small where both are large: then one of the products is to be known.
TEST(FloatNeeds, AreOneOfTwoTermsThatCancel) {
  EXPECT_EQ(needs_of(R"(rule @r(%x: f32[M, N], %y: f32[N], %z: f32[N]) -> f32[M, N]
    where M in 1..64, N in 1..64 {
  %yb = broadcast %y {dims = [M, N], map = [1]}
  %zb = broadcast %z {dims = [M, N], map = [1]}
  %a = sub %x, %yb
  %r = mul %a, %zb
  return %r
} => {
  %zb = broadcast %z {dims = [M, N], map = [1]}
  %p = mul %x, %zb
  %q = mul %y, %z
  %qb = broadcast %q {dims = [M, N], map = [1]}
  %r = sub %p, %qb
  return %r
})"),
            "%q");
}

// A sum over an axis has any of its terms in any order.
TEST(FloatNeeds, AreNoPartsOfASumOverAnAxis) {
  EXPECT_EQ(needs_of(R"(rule @r(%x: f32[2*N]) -> f32[] where N in 1..64 {
  %r = reduce %x {kind = sum, axes = [0]}
  return %r
} => {
  %a = slice %x {start = [0], limit = [N]}
  %b = slice %x {start = [N], limit = [2*N]}
  %c = reduce %a {kind = sum, axes = [0]}
  %d = reduce %b {kind = sum, axes = [0]}
  %r = add %c, %d
  return %r
})"),
            "");
}

// Elements are told apart: the left side has x[0]*y[0] and x[1]*y[1], not x[0]*y[1].
TEST(FloatNeeds, AreAboutElements) {
  EXPECT_EQ(needs_of(R"(rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] where N in 2..64 {
  %p = mul %x, %y
  %s = reverse %z {axes = [0]}
  %q = mul %p, %s
  %r = reverse %y {axes = [0]}
  %t = mul %q, %r
  return %t
} => {
  %r = reverse %y {axes = [0]}
  %p = mul %x, %r
  %q = mul %p, %y
  %s = reverse %z {axes = [0]}
  %t = mul %q, %s
  return %t
})"),
            "%p, %q");
}

// A value that no result depends on may be anything.
TEST(FloatNeeds, AreNotWhatIsCutAway) {
  EXPECT_EQ(needs_of(R"(rule @r(%x: f32[N], %y: f32[N]) -> f32[N] where N in 1..64 {
  %t = mul %x, %y
  return %t
} => {
  %a = concat %x, %y {axis = 0}
  %b = concat %y, %y {axis = 0}
  %p = mul %a, %b
  %t = slice %p {start = [0], limit = [N]}
  return %t
})"),
            "");
}

TEST(FloatNeeds, AreAllOfWhatIsNotJudged) {
  EXPECT_EQ(needs_of(R"(rule @r(%x: f32[N]) -> f32[N] where N in 1..64 {
  %t = cumulative %x {kind = sum, axis = 0}
  %u = mul %t, %t
  return %u
} => {
  %t = cumulative %x {kind = sum, axis = 0}
  %u = mul %t, %t
  return %u
})"),
            "%t, %u");
}

TEST(FloatNeeds, OfRulesThatAreTrueToTheBitAreNone) {
  const std::vector<Rule> rules = default_rules().value();
  for (const Rule& rule : rules)
    if (rule.floats == FloatEffect::exact) EXPECT_EQ(needs_of(rule), "") << rule.name;
}

TEST(FloatNeeds, AreReadAndPrintedWithTheRule) {
  constexpr std::string_view kText =
      "rule @r(%x: f32[N], %y: f32[N]) -> f32[N] where N in 1..64 {\n"
      "  %t = add %x, %y : f32[N]\n  return %t\n} => {\n"
      "  %t = add %y, %x : f32[N]\n  return %t\n} by all_sizes, reassociates, within %t\n";
  const Rule rule = parse_rules(kText).value()[0];
  ASSERT_EQ(rule.within.size(), 1u);
  EXPECT_EQ(print(rule), kText);
  std::string wrong(kText);
  wrong.replace(wrong.rfind("%t"), 2, "%q");
  const auto refused = parse_rules(wrong, {.file = "w.rules"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::bad_input);
  EXPECT_NE(refused.error().to_string().find("w.rules:7:"), std::string::npos);
  EXPECT_NE(refused.error().to_string().find("%q"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
