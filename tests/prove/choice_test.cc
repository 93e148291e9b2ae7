#include <gtest/gtest.h>

#include "prove/prove.h"
#include "prove/verify.h"
#include "rules/checker/checker.h"
#include "rules/statement.h"
#include "tests/prove/rules_testing.h"

// Laws of comparisons, of bools, and of what they choose, in the prover and in the checker.

namespace hone::HONE_FILE {
namespace {

Rule law(std::string_view left, std::string_view right) {
  return std::move(parse_rules(fmt::format("rule @r(%x: f32[N], %y: f32[N], %z: f32[N], "
                                           "%p: bool[N], %q: bool[N]) where N in 1..64 "
                                           "{{ {0} {2} return %s }} => {{ {1} {2} return %s }}",
                                           left, right,
                                           // All inputs are used.
                                           "%t = select %q, %x, %y %u = select %p, %t, %z "
                                           "%v = select %r, %u, %x %s = add %u, %v"))
                       .value()[0]);
}
// The same with a result that is a number.
Rule law_of_numbers(std::string_view left, std::string_view right) {
  const std::string_view chosen = "%k = compare %n, %z {direction = lt} %r = and %k, %p";
  return law(fmt::format("{} {}", left, chosen), fmt::format("{} {}", right, chosen));
}

Rule law_of_sums(std::string_view left, std::string_view right) {
  return std::move(
      parse_rules(fmt::format("rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) where N in 1..64 "
                              "{{ {0} {2} return %s }} => {{ {1} {2} return %s }}",
                              left, right, "%a = sub %x, %y %b = add %a, %z %s = add %b, %n"))
          .value()[0]);
}

void expect_true(const Rule& rule) {
  expect_proved(rule);
  EXPECT_FALSE(test_identity(rule).value().counterexample);
}

// Proved by each of those that look at it, and by the checker whatever a certificate says.
void expect_false(const Rule& rule, std::vector<std::string> steps) {
  EXPECT_FALSE(prove(rule).proved) << print(rule);
  EXPECT_TRUE(test_identity(rule).value().counterexample) << print(rule);
  EXPECT_FALSE(checked(rule, std::move(steps)).ok());
}

TEST(LawsOfChoice, OfBools) {
  expect_true(law("%r = and %p, %p", "%r = or %p, %p"));
  expect_true(law("%a = not %p %r = and %a, %p", "%a = xor %q, %q %r = and %a, %q"));
  expect_true(law("%a = not %p %b = not %q %c = or %a, %b %r = not %c", "%r = and %q, %p"));
  expect_true(law("%r = select %p, %q, %p", "%r = and %p, %q"));
  expect_true(law("%r = compare %p, %q {direction = lt}", "%a = not %p %r = and %a, %q"));
  expect_true(law("%r = compare %p, %q {direction = ne}", "%r = xor %p, %q"));
  expect_false(law("%r = and %p, %q", "%r = or %p, %q"), {"result", "box"});
  expect_false(law("%r = compare %p, %q {direction = le}", "%r = compare %q, %p {direction = le}"),
               {"result", "box"});
}

TEST(LawsOfChoice, OfComparisons) {
  const auto compare = [](std::string_view sides, std::string_view direction) {
    return fmt::format("%r = compare {} {{direction = {}}}", sides, direction);
  };
  expect_true(law(compare("%x, %y", "lt"), compare("%y, %x", "gt")));
  expect_true(law(compare("%x, %y", "le"), "%a = compare %x, %y {direction = gt} %r = not %a"));
  expect_true(law(compare("%x, %y", "eq"), compare("%y, %x", "eq")));
  expect_true(law(compare("%x, %y", "eq"), "%a = compare %y, %x {direction = ne} %r = not %a"));
  expect_true(law(compare("%x, %x", "lt"), "%r = xor %p, %p"));
  expect_true(law("%a = add %x, %x %r = compare %x, %a {direction = lt}",
                  "%a = neg %x %r = compare %a, %x {direction = lt}"));
  expect_true(
      law("%a = compare %x, %y {direction = lt} %b = compare %y, %x {direction = lt} "
          "%r = and %a, %b",
          "%r = xor %p, %p"));
  expect_false(law(compare("%x, %y", "lt"), compare("%x, %y", "le")), {"result", "box"});
  expect_false(law(compare("%x, %y", "lt"), compare("%y, %x", "lt")), {"result", "box"});
  expect_false(law("%a = add %x, %x %r = compare %x, %a {direction = lt}",
                   "%r = compare %x, %y {direction = lt}"),
               {"result", "box"});
}

TEST(LawsOfChoice, OfNumbers) {
  const std::string_view less = "%l = compare %x, %y {direction = lt}";
  const auto chosen = [&](std::string_view yes, std::string_view no) {
    return fmt::format("{} %n = select %l, {}, {}", less, yes, no);
  };
  expect_true(law_of_sums(chosen("%y", "%x"), "%n = max %x, %y"));
  expect_true(law_of_sums(chosen("%x", "%y"), "%n = min %y, %x"));
  expect_true(law_of_sums("%l = compare %x, %y {direction = ge} %n = select %l, %x, %y",
                          "%n = max %x, %y"));
  expect_true(law_of_numbers("%a = select %p, %x, %y %n = add %a, %z",
                             "%a = add %x, %z %b = add %y, %z %n = select %p, %a, %b"));
  expect_true(
      law_of_numbers("%a = select %p, %x, %y %n = select %p, %a, %z", "%n = select %p, %x, %z"));
  expect_true(law_of_numbers("%a = not %p %n = select %a, %x, %y", "%n = select %p, %y, %x"));
  expect_false(law_of_sums(chosen("%y", "%x"), "%n = min %x, %y"), {"result", "box"});
  expect_false(law_of_sums(chosen("%y", "%z"), "%n = max %x, %y"), {"result", "box"});
  expect_false(law_of_numbers("%n = select %p, %x, %y", "%n = select %p, %y, %x"),
               {"result", "box"});
}

// ---- Places -------------------------------------------------------------------------------------

// A matrix that is `yes` where its places compare so, and 0 elsewhere.
std::string mask(std::string_view direction, std::string_view yes = "%1") {
  return fmt::format(
      "%0 = constant 0 : f32[] {} %i = iota {{dtype = f32, dims = [M, M], axis = 0}} "
      "%j = iota {{dtype = f32, dims = [M, M], axis = 1}} %d = compare %i, %j {{direction = {}}} "
      "%b0 = broadcast %0 {{dims = [M, M], map = []}} "
      "%b1 = broadcast {} {{dims = [M, M], map = {}}} %e = select %d, %b1, %b0 ",
      yes == "%1" ? "%1 = constant 1 : f32[]" : "", direction, yes, yes == "%1" ? "[]" : "[0]");
}

Rule matrices(std::string_view left, std::string_view right) {
  return std::move(
      parse_rules(fmt::format("rule @r(%x: f32[M, N], %s: f32[M]) where M in 1..64, N in 1..64 "
                              "{{ {0} {2} return %z }} => {{ {1} {2} return %z }}",
                              left, right,
                              "%sb = broadcast %s {dims = [M, N], map = [0]} %p = mul %x, %sb "
                              "%z = add %y, %p"))
          .value()[0]);
}
constexpr std::string_view kDot = "%y = dot %e, %x {lhs_contract = [1], rhs_contract = [0]}";

TEST(LawsOfChoice, OfPlaces) {
  const std::string_view same =
      "%0 = constant 0 : f32[] %1 = broadcast %0 {dims = [M, N], map = "
      "[]} %y = add %x, %1";
  const std::string scaled = "%a = broadcast %s {dims = [M, N], map = [0]} %y = mul %x, %a";
  expect_true(matrices(fmt::format("{}{}", mask("eq"), kDot), same));
  expect_true(matrices(fmt::format("{}{}", mask("eq", "%s"), kDot), scaled));
  // The lower triangle is not in the upper one.
  expect_true(matrices(fmt::format("{}{}", mask("le"), kDot),
                       fmt::format("{}%l = not %d %f = select %l, %b0, %b1 {}", mask("le"),
                                   "%y = dot %f, %x {lhs_contract = [1], rhs_contract = [0]}")));
  const std::vector<std::string> steps = {"result", "box", "s", "o", "o"};
  expect_false(matrices(fmt::format("{}{}", mask("le"), kDot), same), steps);
  expect_false(matrices(fmt::format("{}{}", mask("ne"), kDot), same), steps);
  expect_false(matrices(fmt::format("{}{}", mask("eq"), kDot), scaled), steps);
  expect_false(
      matrices(fmt::format("{}{}", mask("lt"), kDot), fmt::format("{}{}", mask("gt"), kDot)),
      steps);
}

// bf16 does not count beyond 256, nor f32 beyond 2^24.
TEST(LawsOfChoice, OfPlacesThatAreExact) {
  const auto unit = [](std::string_view dtype, int64_t most) {
    return std::move(
        parse_rules(
            fmt::format(
                "rule @r(%x: f32[M], %s: f32[M]) where M in 1..{} {{ %y = mul %x, %s return %y }} "
                "=> {{ %i = iota {{dtype = {}, dims = [M], axis = 0}} "
                "%d = compare %i, %i {{direction = eq}} %z = select %d, %x, %s "
                "%y = mul %z, %s return %y }}",
                most, dtype))
            .value()[0]);
  };
  EXPECT_TRUE(prove(unit("f32", 1 << 20)).proved);
  for (const Rule& rule : {unit("bf16", 1 << 20), unit("f32", int64_t{1} << 30)}) {
    EXPECT_EQ(prove(rule).stopped, "places are rounded");
    const Certificate certificate = {.rule = rule.name,
                                     .statement = statement_hash(rule),
                                     .line = 1,
                                     .steps = {"result", "box", "y", "y"}};
    EXPECT_FALSE(check_certificate(rule, certificate).ok());
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
