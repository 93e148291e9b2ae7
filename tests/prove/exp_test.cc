#include <gtest/gtest.h>

#include "prove/prove.h"
#include "prove/verify.h"
#include "tests/prove/rules_testing.h"

// The laws of exp, in the prover and in the checker.

namespace hone::HONE_FILE {
namespace {

Rule rule_of(std::string_view inputs, std::string_view left, std::string_view right) {
  const std::string text = fmt::format(
      "rule @r({}) where M in 1..64, N in 1..64 {{ {} }} => {{ {} }}", inputs, left, right);
  return std::move(parse_rules(text).value()[0]);
}

constexpr std::string_view kTwo = "%x: f32[M, N], %y: f32[M, N]";

// exp(%z)/sum(exp(%z)) along an axis.
std::string softmax(std::string_view axis, std::string_view map) {
  return fmt::format(
      "%e = exp %z %t = reduce %e {{kind = sum, axes = [{}]}} %b = broadcast %t {{dims = [M, N], "
      "map = [{}]}} %r = div %e, %b return %r",
      axis, map);
}
// The shift of every row, or of every column.
std::string shifted(std::string_view map) {
  return fmt::format("%cb = broadcast %c {{dims = [M, N], map = [{}]}} %z = add %x, %cb ", map);
}

void expect_true(const Rule& rule) {
  expect_proved(rule);
  const RuleVerdict verdict = verify(rule).value();
  EXPECT_FALSE(verdict.refuted());
  EXPECT_EQ(verdict.rung, Rung::all_sizes);
}

// Proved by each of those that look at it, and by the checker whatever a certificate says.
void expect_false(const Rule& rule, std::vector<std::string> steps) {
  EXPECT_FALSE(prove(rule).proved) << print(rule);
  EXPECT_TRUE(verify(rule).value().refuted()) << print(rule);
  EXPECT_TRUE(test_reals(rule).value().has_value()) << print(rule);
  const Status status = checked(rule, std::move(steps));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().to_string().find("the sides differ"), std::string::npos)
      << status.error().to_string();
}

TEST(LawsOfExp, MakeProductsOfSums) {
  const std::string product = "%a = exp %x %b = exp %y %c = mul %a, %b return %c";
  expect_true(rule_of(kTwo, "%s = add %x, %y %c = exp %s return %c", product));
  expect_true(rule_of(kTwo, "%s = sub %x, %y %c = exp %s return %c",
                      "%a = exp %x %b = exp %y %c = div %a, %b return %c"));
  expect_true(rule_of("%x: f32[M, N]", "%s = mul %x, 3 %c = exp %s return %c",
                      "%e = exp %x %f = mul %e, %e %c = mul %f, %e return %c"));
  expect_false(rule_of(kTwo, "%s = mul %x, %y %c = exp %s return %c", product), {"result", "box"});
  expect_false(rule_of(kTwo, "%s = add %x, %y %c = exp %s return %c",
                       "%a = exp %x %b = exp %y %c = add %a, %b return %c"),
               {"result", "box"});
  expect_false(rule_of("%x: f32[M, N]", "%s = mul %x, 3 %c = exp %s return %c",
                       "%e = exp %x %c = mul %e, %e return %c"),
               {"result", "box"});
}

TEST(LawsOfExp, CancelInverses) {
  expect_true(rule_of("%x: f32[M, N], %y: f32[M, N]",
                      "%n = neg %x %a = exp %x %b = exp %n %p = mul %a, %b %r = mul %p, %y "
                      "return %r",
                      "return %y"));
  expect_false(rule_of("%x: f32[M, N], %y: f32[M, N]",
                       "%n = neg %y %a = exp %x %b = exp %n %p = mul %a, %b %r = mul %p, %y "
                       "return %r",
                       "return %y"),
               {"result", "box"});
}

TEST(LawsOfExp, LetSoftmaxBeShiftedAlongItsRows) {
  const auto rule = [&](std::string_view size, std::string_view map, std::string_view axis,
                        std::string_view kept) {
    return rule_of(fmt::format("%x: f32[M, N], %c: f32[{}]", size),
                   shifted(map) + softmax(axis, kept), "%z = add %x, 0 " + softmax(axis, kept));
  };
  expect_true(rule("M", "0", "1", "0"));
  expect_true(rule("N", "1", "0", "1"));
  // A number that differs within a row does not shift it.
  expect_false(rule("N", "1", "1", "0"), {"result", "box", "s s"});
  expect_false(rule("M", "0", "0", "1"), {"result", "box", "s s"});
}

}  // namespace
}  // namespace hone::HONE_FILE
