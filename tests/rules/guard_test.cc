#include "rules/guard.h"

#include <gtest/gtest.h>

#include "rules/checker/checker.h"
#include "rules/prove.h"

namespace hone {
namespace {

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

std::string guard_of(const Rule& rule) {
  std::string text;
  for (const Condition& condition : rule.guard)
    text += (text.empty() ? "" : ", ") + condition.to_string();
  return text;
}

// The guard that is found; it is proved, and its certificate is good.
void expect_guard(std::string_view text, std::string_view guard) {
  const GuardSearch search = infer_guard(rule_of(text), {.verify = {.floats = false}}).value();
  ASSERT_TRUE(search.rule) << search.why;
  EXPECT_EQ(guard_of(*search.rule), guard);
  EXPECT_TRUE(search.counterexample);
  EXPECT_EQ(search.rule->rung, Rung::all_sizes);
  EXPECT_GT(search.false_sizes, 0u);
  const std::vector<Certificate> certificates =
      parse_certificates(search.verdict.certificate, "c").value();
  ASSERT_EQ(certificates.size(), 1u);
  const Status good = check_certificate(*search.rule, certificates[0]);
  EXPECT_TRUE(good.ok()) << good.error().to_string() << search.verdict.certificate;
}

TEST(Guards, SayThatASizeIsOne) {
  expect_guard(
      "rule @r(%x: f32[M, N]) -> f32[M*N] where M in 1..64, N in 1..64 { %y = reshape %x {dims = "
      "[M*N]} return %y } => { %t = transpose %x {permutation = [1, 0]} %y = reshape %t {dims = "
      "[M*N]} return %y }",
      "M = 1");
  expect_guard(
      "rule @r(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 { %s = reduce %x {kind = sum, "
      "axes = [0]} return %s } => { %s = reduce %x {kind = max, axes = [0]} return %s }",
      "M = 1");
}

TEST(Guards, SayThatASizeIsEven) {
  expect_guard(
      "rule @r(%x: f32[K]) where K in 2..64 { %r = reverse %x {axes = [0]} %y = slice %r {start = "
      "[0], limit = [K/2*2]} return %y } => { %s = slice %x {start = [0], limit = [K/2*2]} %y = "
      "reverse %s {axes = [0]} return %y }",
      "K = 2*(K/2)");
}

TEST(Guards, SayThatPartsAreEqual) {
  expect_guard(
      "rule @r(%a: f32[A, N], %b: f32[B, N]) where A in 4..16, B in 1..4, N in 1..64 { %c = concat "
      "%a, %b {axis = 0} %e = exp %c %s = slice %e {start = [B, 0], limit = [2*B, N]} return %s } "
      "=> { %s = exp %b return %s }",
      "A = B");
}

TEST(Guards, AreConjunctions) {
  // A transpose moves nothing if at most one of the sizes is not one.
  expect_guard(
      "rule @r(%x: f32[L, M, N]) -> f32[L*M*N] where L in 1..16, M in 1..16, N in 1..16 { %y = "
      "reshape %x {dims = [L*M*N]} return %y } => { %t = transpose %x {permutation = [2, 1, 0]} "
      "%y = reshape %t {dims = [L*M*N]} return %y }",
      "L = 1, M = 1");
}

TEST(Guards, AreNotMadeForWhatIsNeverTrue) {
  const GuardSearch search =
      infer_guard(rule_of("rule @r(%x: f32[N], %y: f32[N]) where N in 1..64 { %d = sub %x, %y "
                          "return %d } => { %d = sub %y, %x return %d }"))
          .value();
  EXPECT_FALSE(search.rule);
  ASSERT_TRUE(search.counterexample);
  EXPECT_EQ(search.true_sizes, 0u);
  EXPECT_FALSE(search.why.empty());
}

TEST(Guards, AreNotMadeForWhatIsTrue) {
  const GuardSearch search =
      infer_guard(rule_of("rule @r(%x: f32[N], %y: f32[N]) where N in 1..64 { %d = add %x, %y "
                          "return %d } => { %d = add %y, %x return %d }"))
          .value();
  ASSERT_TRUE(search.rule);
  EXPECT_TRUE(search.rule->guard.empty());
}

// ---- The form of a guard ------------------------------------------------------------------------

std::string form_of(std::string_view guard) {
  const Rule rule = rule_of(fmt::format(
      "rule @r(%x: f32[M, N, K]) where M in 1..64, N in 4..32, K in 1..100 {{ %y = exp %x return "
      "%y }} => {{ %y = exp %x return %y }} when {}",
      guard));
  const std::optional<GuardForm> form = form_of_guard(rule);
  if (!form) return "nothing";
  std::string text;
  for (const auto& [name, dim] : form->bindings)
    text += fmt::format("{}{} = {} in {}..{}", text.empty() ? "" : ", ", name, dim.to_string(),
                        dim.range().low, dim.range().high);
  return text;
}

TEST(GuardForm, PutsConditionsInThePlaceOfSymbols) {
  EXPECT_EQ(form_of("K = 1"), "K = 1 in 1..1");
  EXPECT_EQ(form_of("M = N"), "M = N in 4..32");
  EXPECT_EQ(form_of("K = K/2*2 + 1"), "K = 2*q0 + 1 in 1..101");
  EXPECT_EQ(form_of("M <= 3"), "M = M in 1..3");
  EXPECT_EQ(form_of("M < N"), "N = M + q0 + 1 in 2..95");
  EXPECT_EQ(form_of("K = 2*M"), "K = 2*M in 2..128");
  EXPECT_EQ(form_of("M != N"), "");
  EXPECT_EQ(form_of("M < 1"), "nothing");
  EXPECT_EQ(form_of("N = 3"), "nothing");
  EXPECT_EQ(form_of("N <= M, M < 3"), "nothing");
  EXPECT_EQ(form_of("N = 2*M, 20 < M"), "nothing");
}

}  // namespace
}  // namespace hone
