#include "prove/guard.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "prove/prove.h"
#include "rules/checker/checker.h"

namespace hone::HONE_FILE {
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

// A size of random small parts.
Dim random_dim(const std::vector<Symbol>& symbols, Rng& rng) {
  Dim dim = rng.between(-2, 4);
  for (int64_t i = rng.between(0, 2); i > 0; --i) {
    Dim part = Dim(rng.pick(symbols)) * rng.between(1, 3);
    if (rng.chance(0.3)) part = floordiv(part, rng.between(2, 4)) * rng.between(1, 4);
    if (rng.chance(0.2)) part = part * Dim(rng.pick(symbols));
    dim = rng.chance(0.7) ? dim + part : dim - part;
  }
  return dim;
}

// Each list of sizes that the guard admits is one of the form's.
TEST(GuardForm, LosesNoSizes) {
  Rng rng(11);
  Rule rule = rule_of(
      "rule @r(%x: f32[M, N, K]) where M in 1..7, N in 2..8 step 2, K in 0..5 { %y = exp %x return "
      "%y } => { %y = exp %x return %y }");
  const std::vector<Symbol> symbols = rule.symbols();
  int forms = 0, lists = 0, certificates = 0, good = 0;
  for (int i = 0; i < 600; ++i) {
    rule.guard.clear();
    for (int64_t c = rng.between(1, 3); c > 0; --c) {
      const Dim left = rng.chance(0.6) ? Dim(rng.pick(symbols)) : random_dim(symbols, rng);
      Dim right = random_dim(symbols, rng);
      const int64_t by = rng.between(2, 3);
      if (rng.chance(0.2)) right = floordiv(left, by) * by + rng.between(0, by - 1);
      rule.guard.push_back({left, static_cast<Relation>(rng.between(0, 3)), right});
    }
    const std::optional<GuardForm> form = form_of_guard(rule);
    forms += form.has_value() && !form->bindings.empty();
    for (int64_t m = 1; m <= 7; ++m)
      for (int64_t n = 2; n <= 8; n += 2)
        for (int64_t k = 0; k <= 5; ++k) {
          const Bindings sizes = {{"M", m}, {"N", n}, {"K", k}};
          if (!rule.admits(sizes)) continue;
          ++lists;
          ASSERT_TRUE(form) << guard_of(rule);
          Bindings made = sizes;
          for (const GuardForm::Made& one : form->made) {
            const Dim value = one.witness.bind(sizes);
            ASSERT_TRUE(check_binding(one.symbol, value).ok()) << guard_of(rule);
            made.emplace(one.symbol.name(), value);
          }
          for (const auto& [name, dim] : form->bindings) {
            for (Symbol s : dim.symbols())
              ASSERT_TRUE(check_binding(s, made.at(s.name())).ok()) << guard_of(rule);
            EXPECT_EQ(dim.bind(made), sizes.at(name)) << guard_of(rule) << " " << name;
          }
        }
    // The checker, too, sees what the form says.
    const Proof proof = prove(rule);
    if (!proof.proved) continue;
    ++certificates;
    const Certificate certificate = parse_certificates(proof.certificate, "c").value()[0];
    good += check_certificate(rule, certificate).ok();
  }
  EXPECT_GT(forms, 80);
  EXPECT_GT(lists, 4000);
  EXPECT_GT(certificates, 200);
  EXPECT_GE(good, certificates * 95 / 100) << good << " of " << certificates;
}

}  // namespace
}  // namespace hone::HONE_FILE
