#include <gtest/gtest.h>

#include "rules/rule.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

constexpr std::string_view kTwice =
    R"(rule @twice(%x: f32[M, N]) -> f32[M, N] where M in 1..64, N in 1..64 {
  %t = transpose %x {permutation = [1, 0]} : f32[N, M]
  %y = transpose %t {permutation = [1, 0]} : f32[M, N]
  return %y
} => {
  return %x
} when M != N, M + 1 <= 2*N by all_sizes, exact
)";

std::string error_of(std::string_view text) {
  const Result<std::vector<Rule>> rules = parse_rules(text, {.file = "r"});
  return rules.ok() ? "none" : rules.error().to_string();
}

TEST(RuleText, IsReadAndPrinted) {
  const std::vector<Rule> rules = parse_rules(kTwice).value();
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].name, "twice");
  EXPECT_EQ(rules[0].rung, Rung::all_sizes);
  EXPECT_EQ(rules[0].floats, FloatEffect::exact);
  EXPECT_EQ(rules[0].guard.size(), 2u);
  EXPECT_EQ(print(rules[0]), kTwice);
}

TEST(RuleText, SaysWhereItIsWrong) {
  const auto has = [](std::string_view text, std::string_view part) {
    EXPECT_THAT(error_of(text), says(std::string(part)));
  };
  has("rule @r(%x: f32[2]) { return %x }", "has 1 sides");
  has("rule @r(%x: f32[2]) {\n return %z } => { return %x }", "r:2:9");
  has("rule @r(%x: f32[2]) { return %x } => { return %x }", "which every value matches");
  has("rule @r(%x: f32[2], %z: f32[2]) { %y = exp %x return %y } => { return %x }", "its results");
  has("rule @r(%x: f32[N]) where N in 1..4 { %y = exp %x return %y } => { return %x }\n"
      "  when N < M by small",
      "r:2:12");
  has("rule @r(%x: f32[2]) { %y = exp %x return %y } => { return %x } by magic", "r:1:67");
  has("rule @r(%x: f32[2]) { %y = exp %x return %y } => { return %x, %x }", "returns 1 values");
  has("rule @r(%x: f32[2, 3]) { %y = transpose %x {permutation = [1, 0]} return %y } => "
      "{ return %x }",
      "f32[3, 2] on the left side");
  has("rule @r(%x: f32[2]) { %y = exp %x return %y } => { return %x }\n"
      "rule @r(%x: f32[2]) { %y = exp %x return %y } => { return %x }",
      "r:2:6");
  has("rule @r(%x: i32[2]) { %y = neg %x return %y } => { return %x }", "reals and bools");
}

TEST(RuleText, SurvivesEveryCut) {
  for (size_t n = 0; n < kTwice.size(); ++n)
    if (const auto rules = parse_rules(kTwice.substr(0, n)); rules.ok()) {
      for (const Rule& rule : *rules) EXPECT_TRUE(check(rule).ok());
    }
}

constexpr std::string_view kChoice =
    R"(rule @doubled for op in neg, abs (%x: f32[N]) -> f32[N] where N in 1..64 {
  %a = op %x : f32[N]
  %y = add %a, %a : f32[N]
  return %y
} => {
  %a = add %x, %x : f32[N]
  %y = op %a : f32[N]
  return %y
} by sampled
)";

TEST(RuleText, IsOneRuleForEachOpOfAChoice) {
  std::vector<Rule> rules = parse_rules(kChoice).value();
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "doubled_neg");
  EXPECT_EQ(rules[1].name, "doubled_abs");
  for (const Rule& rule : rules) {
    const Opcode op = rule.choice->ops[rule.choice->at];
    EXPECT_EQ(rule.left.opcode(NodeId{1}), op);
    EXPECT_EQ(rule.right.opcode(NodeId{2}), op);
    EXPECT_EQ(rule.rung, Rung::sampled);
  }
  EXPECT_EQ(print(rules), kChoice);
  const Rule other = parse_rules(kTwice).value()[0];
  EXPECT_EQ(print(std::vector{other, rules[0], rules[1]}), fmt::format("{}\n{}", kTwice, kChoice));
  // One of them alone, or what differs by more than the op, is a text of its own.
  EXPECT_EQ(print(std::span(rules).first(1)), print(rules[0]));
  rules[1].rung = Rung::small;
  EXPECT_EQ(print(rules), print(rules[0]) + "\n" + print(rules[1]));
}

TEST(RuleText, RefusesChoicesThatAreNone) {
  const auto has = [](std::string_view head, std::string_view part,
                      std::string_view body = "%y = op %x") {
    const std::string text = fmt::format(
        "rule @r for {} (%x: f32[2]) {{ {} return %y }} => {{ return %x }}", head, body);
    EXPECT_THAT(error_of(text), says(std::string(part)));
  };
  has("neg in abs, exp", "'neg' is an op");
  has("op in abs, nothing", "no op 'nothing'");
  has("op in abs, abs", "twice");
  has("op in ", "r:1:20");
  has("% in abs", "a word");
  has("op on abs", "expected 'in'");
  has("op in abs, exp", "'exp' ... ops", "%z = op %x %y = exp %z");
  has("op in abs, exp", "op of the rule ... 'op'", "%y = neg %x");
  has("op in abs, add", "r:1:");
}

TEST(Condition, HoldsOfSizes) {
  const Symbol n = Symbol::get("N", 1, 64);
  const Condition less = {Dim(n), Relation::less, 5};
  EXPECT_TRUE(less.holds({{"N", 4}}));
  EXPECT_FALSE(less.holds({{"N", 5}}));
  EXPECT_FALSE(less.holds({}));  // not provable
  EXPECT_EQ(less.to_string(), "N < 5");
}

}  // namespace
}  // namespace hone::HONE_FILE
