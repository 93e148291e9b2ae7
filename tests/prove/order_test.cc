#include <gtest/gtest.h>

#include "prove/prove.h"
#include "rules/checker/checker.h"
#include "rules/statement.h"

// Laws of sums and maxima, which prover and checker each know in their own way.

namespace hone::HONE_FILE {
namespace {

Rule law(std::string_view left, std::string_view right) {
  return std::move(parse_rules(fmt::format("rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) -> f32[N] "
                                           "where N in 1..64 {{ {} return %r }} => {{ {} return %r "
                                           "}}",
                                           left, right))
                       .value()[0]);
}

void expect_proved(std::string_view left, std::string_view right) {
  const Rule rule = law(left, right);
  const Proof proof = prove(rule);
  EXPECT_TRUE(proof.proved) << proof.stopped;
  if (!proof.proved) return;
  const Status good =
      check_certificate(rule, parse_certificates(proof.certificate, "c").value()[0]);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
}

TEST(LawsOfOrder, AreProved) {
  expect_proved("%m = max %y, %z %r = add %x, %m",
                "%a = add %x, %y %b = add %x, %z %r = max %a, %b");
  expect_proved("%m = min %y, %z %r = sub %x, %m",
                "%a = sub %x, %y %b = sub %x, %z %r = max %a, %b");
  expect_proved("%a = max %x, %y %b = min %x, %y %c = add %a, %b %r = add %c, %z",
                "%c = add %x, %y %r = add %c, %z");
  expect_proved("%a = min %x, %y %b = max %x, %a %r = max %b, %z", "%r = max %x, %z");
  expect_proved("%a = max %x, %y %b = max %x, %z %r = min %a, %b",
                "%a = min %y, %z %r = max %x, %a");
  expect_proved("%a = sub %x, %y %b = abs %a %c = add %x, %y %d = add %c, %b %r = max %d, %z",
                "%m = max %x, %y %d = add %m, %m %r = max %d, %z");
  // Maxima of products and functions are as those of inputs.
  expect_proved("%e = exp %y %f = mul %e, %z %m = max %e, %f %r = add %x, %m",
                "%e = exp %y %f = mul %z, %e %a = add %x, %f %b = add %x, %e %r = max %a, %b");
  expect_proved("%a = mul %x, 3 %b = mul %y, 3 %c = max %a, %b %r = add %c, %z",
                "%m = max %x, %y %a = mul %m, 3 %r = add %z, %a");
}

void expect_not_proved(std::string_view left, std::string_view right) {
  const Rule rule = law(left, right);
  EXPECT_FALSE(prove(rule).proved);
  // Nor does the checker believe it by the steps of what is true.
  Certificate lie = parse_certificates(prove(law(left, left)).certificate, "c").value()[0];
  lie.statement = statement_hash(rule);
  EXPECT_FALSE(check_certificate(rule, lie).ok());
}

TEST(LawsOfOrder, ThatAreFalseAreNot) {
  expect_not_proved("%m = max %y, %z %r = mul %x, %m",
                    "%a = mul %x, %y %b = mul %x, %z %r = max %a, %b");
  expect_not_proved("%m = max %y, %z %r = sub %x, %m",
                    "%a = sub %x, %y %b = sub %x, %z %r = max %a, %b");
  expect_not_proved("%m = max %x, %y %r = max %m, %z", "%m = min %x, %y %r = max %m, %z");
  expect_not_proved("%a = add %x, %y %b = max %a, %z %r = add %b, %b",
                    "%c = add %x, %x %d = add %y, %y %e = max %c, %d %f = add %z, %z %r = max %e, "
                    "%f");
  expect_not_proved("%a = max %x, %y %b = mul %a, -2 %r = add %b, %z",
                    "%a = mul %x, -2 %b = mul %y, -2 %c = max %a, %b %r = add %c, %z");
  expect_not_proved("%a = max %x, 1 %b = max %a, %y %r = max %b, %z",
                    "%a = max %x, 2 %b = max %a, %y %r = max %b, %z");
}

// Very many pieces are too many for both.
TEST(LawsOfOrder, TakeNoLongTime) {
  std::string sums = "%s0 = add %x, %y %t0 = add %y, %z ";
  for (int i = 1; i <= 14; ++i)
    sums += fmt::format(
        "%m{0} = max %s{1}, %t{1} %a{0} = mul %s{1}, {0} %b{0} = exp %a{0} %s{0} = add %m{0}, "
        "%b{0} "
        "%t{0} = abs %b{0} ",
        i, i - 1);
  const Rule rule = law(sums + "%r = max %s14, %t14", sums + "%r = add %s14, %t14");
  EXPECT_FALSE(prove(rule).proved);
}

}  // namespace
}  // namespace hone::HONE_FILE
