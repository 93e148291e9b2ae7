#include <gtest/gtest.h>

#include "ir/reference/evaluate.h"
#include "prove/prove.h"
#include "prove/verify.h"
#include "rules/match.h"
#include "zoo/inputs.h"

// Rules that try to be believed without being true, and rules that try to take all time and memory.

namespace hone::HONE_FILE {
namespace {

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

void expect_refuted(const Rule& rule) {
  const Result<RuleVerdict> verdict = verify(rule, {.floats = false});
  ASSERT_TRUE(verdict.ok()) << verdict.error().to_string();
  EXPECT_TRUE(verdict->refuted()) << print(rule);
  EXPECT_FALSE(prove(rule).proved);
}

// `count` nodes, each %v<i> = text with # and #' for the numbers i and i - 1.
std::string chain(int count, std::string_view text) {
  std::string all;
  for (int i = 1; i <= count; ++i) {
    all += fmt::format("%v{} = ", i);
    for (size_t at = 0; at < text.size(); ++at) {
      const bool is_last = text.substr(at, 2) == "#'";
      all += text[at] != '#' ? std::string(1, text[at]) : fmt::format("{}", i - is_last);
      at += is_last;
    }
    all += "\n";
  }
  return all;
}

// ---- Numbers ------------------------------------------------------------------------------------

TEST(HostileNumbers, DoNotWrapAroundAPrime) {
  // 2^61 is 1 modulo 2^61 - 1.
  expect_refuted(rule_of(
      fmt::format("rule @r(%v0: f32[N]) where N in 1..64 {{ {} return %v61 }} => {{ return %v0 }}",
                  chain(61, "add %v#', %v#'"))));
  expect_refuted(rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = mul %x, 2305843009213693952 return %y } => "
      "{ return %x }"));
  expect_refuted(
      rule_of("rule @r(%x: f32[N]) where N in 1..64 { %a = exp %x %y = mul %a, 1073741824 "
              "%z = mul %y, 2147483648 return %z } => { %y = exp %x return %y }"));
}

TEST(HostileNumbers, DoNotSaturate) {
  // Numbers of 2^62 and more would be one number to dims.
  const std::string large = "%a = mul %x, 9007199254740992 %b = mul %a, 256 ";
  EXPECT_FALSE(prove(rule_of("rule @r(%x: f32[N]) where N in 1..64 { " + large +
                             "%y = add %b, %b return %y } => { " + large +
                             "%c = add %b, %b %y = add %b, %c return %y }"))
                   .proved);
  const auto side = [&](int factor) {
    return fmt::format(
        "{{ {}%w = broadcast %b {{dims = [M, N], map = [1]}} %s = reduce %w {{kind = sum, axes = "
        "[0]}} %y = mul %s, {} return %y }}",
        large, factor);
  };
  EXPECT_FALSE(prove(rule_of("rule @r(%x: f32[N]) where M in 1..64, N in 1..64 " + side(4) +
                             " => " + side(8)))
                   .proved);
}

TEST(HostileNumbers, AreNoNumbersOfAField) {
  expect_refuted(rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = mul %x, inf return %y } => { %y = mul %x, -inf "
      "return %y }"));
  expect_refuted(rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = add %x, nan return %y } => { %y = add %x, inf "
      "return %y }"));
}

TEST(HostileNumbers, AreTestedAboutConstants) {
  expect_refuted(rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = min %x, 5000 return %y } => { return %x }"));
  expect_refuted(rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = max %x, -900000000 %z = mul %y, 2 return %z } "
      "=> { %z = mul %x, 2 return %z }"));
}

TEST(HostileNumbers, DifferAtFewOrders) {
  // Where 0 < y < x < z, which is one of 48 orders with signs.
  const Rule rule = rule_of(
      "rule @r(%x: f32[N], %y: f32[N], %z: f32[N]) where N in 1..64 { %m = max %x, %y %a = add %y, "
      "%y %b = min %z, %a %r = max %m, %b return %r } => { %m = max %x, %y %a = add %y, %m %b = "
      "min "
      "%z, %a %r = max %m, %b return %r }");
  for (uint64_t seed = 0; seed < 60; ++seed)
    EXPECT_TRUE(test_identity(rule, {.seed = seed}).value().counterexample) << seed;
}

// ---- Sizes --------------------------------------------------------------------------------------

TEST(HostileSizes, ThatNothingAdmitsAreNotTested) {
  const Rule never = rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %y = exp %x return %y } => { %y = neg %x return %y } "
      "when N < 3, 5 < N");
  EXPECT_FALSE(verify(never).ok());
  const Rule unbound = rule_of(
      "rule @r(%x: f32[3]) { %y = exp %x return %y } => { %y = exp %x return %y } when 3 < 2");
  EXPECT_FALSE(verify(unbound).ok());
}

TEST(HostileSizes, ThatAreHugeAreNotTested) {
  EXPECT_FALSE(verify(rule_of("rule @r(%x: f32[1000000, 1000000]) { %y = neg %x return %y } => "
                              "{ %y = exp %x return %y }"))
                   .ok());
  EXPECT_FALSE(
      verify(rule_of("rule @r(%x: f32[N]) where N in 1000000000..1000000000000 { %y = neg %x "
                     "return %y } => { %y = exp %x return %y }"))
          .ok());
}

TEST(HostileSizes, OfZeroAndOneAreTested) {
  // The mean of nothing; and what is true of one row alone.
  expect_refuted(rule_of(
      "rule @r(%x: f32[M, N]) where M in 0..64, N in 1..64 { %y = reduce %x {kind = sum, axes = "
      "[0]} return %y } => { %s = slice %x {start = [0, 0], limit = [M, N]} %y = reduce %s {kind = "
      "max, axes = [0]} return %y }"));
  const Rule empty = rule_of(
      "rule @r(%x: f32[M, N], %u: f32[N]) where M in 0..64, N in 1..64 { %w = broadcast %u {dims = "
      "[M, N], map = [1]} %a = add %x, %w %y = reduce %a {kind = max, axes = [0]} return %y } => "
      "{ %m = reduce %x {kind = max, axes = [0]} %y = max %m, %m return %y }");
  expect_refuted(empty);
  // The maximum of 0 equal elements does not exist.
  EXPECT_FALSE(prove(rule_of("rule @r(%u: f32[N]) where M in 0..64, N in 1..64 { %w = broadcast %u "
                             "{dims = [M, N], map = [1]} %y = reduce %w {kind = max, axes = [0]} "
                             "return %y } => { return %u }"))
                   .proved);
}

TEST(HostileSizes, MayNotCoincide) {
  // True of squares alone, of one group alone, and of a stride of one alone.
  expect_refuted(rule_of(
      "rule @r(%x: f32[M, N]) -> f32[M*N] where M in 1..64, N in 1..64 { %y = reshape %x {dims = "
      "[M*N]} return %y } => { %t = transpose %x {permutation = [1, 0]} %y = reshape %t {dims = "
      "[M*N]} return %y }"));
  expect_refuted(rule_of(
      "rule @r(%x: f32[B, 4, H], %v: f32[6, 2, 3], %w: f32[4, 2, 3]) where B in 1..64, H in "
      "3..64 { %y = conv %x, %v {groups = 2} %z = conv %x, %w {groups = 2} %c = concat %y, %z "
      "{axis = 1} return %c } => { %u = concat %v, %w {axis = 0} %c = conv %x, %u {groups = 2} "
      "return %c }"));
  expect_refuted(rule_of(
      "rule @r(%x: f32[B, H]) where B in 1..64, H in 5..64 { %a = window_reduce %x {kind = sum, "
      "window = [1, 3], stride = [1, 2], pad_low = [0, 1], pad_high = [0, 1]} return %a } => "
      "{ %p = window_reduce %x {kind = sum, window = [1, 3], stride = [1, 2], pad_low = [0, 0], "
      "pad_high = [0, 2]} return %p }"));
}

// ---- Matching -----------------------------------------------------------------------------------

size_t matches(const Rule& rule, std::string_view graph) {
  return RuleMatcher(rule).all(parse_graph(graph).value()).size();
}

TEST(HostileGraphs, HaveNoSizesBeyondThoseOfARule) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[N]) where N in 1..4 { %y = exp %x return %y } => { %y = exp %x return %y }");
  EXPECT_EQ(matches(rule, "graph @g(%x: f32[B]) where B in 1..4 { %y = exp %x return %y }"), 1u);
  EXPECT_EQ(matches(rule, "graph @g(%x: f32[B]) where B in 1..5 { %y = exp %x return %y }"), 0u);
  EXPECT_EQ(matches(rule, "graph @g(%x: f32[5]) { %y = exp %x return %y }"), 0u);
}

TEST(HostileGraphs, HaveSymbolsOfTheirOwn) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[N], %y: f32[N], %z: f32[B]) where N in 1..64, B in 1..4 { %a = add %x, %y "
      "%b = exp %z return %a, %b } => { %a = add %y, %x %b = exp %z return %a, %b }");
  // The graph's B is the rule's N.
  EXPECT_EQ(matches(rule,
                    "graph @g(%x: f32[B], %y: f32[B], %z: f32[3]) where B in 1..60 { %a = add %x, "
                    "%y %b = exp %z return %a, %b }"),
            2u);
  const Rule two = rule_of(
      "rule @r(%x: f32[N], %y: f32[N], %z: f32[B]) where N in 1..64, B in 1..4 { %a = exp %x "
      "%b = neg %y %c = neg %z return %a, %b, %c } => { %a = exp %x %b = neg %y %c = neg %z return "
      "%a, %b, %c }");
  EXPECT_EQ(matches(two,
                    "graph @g(%x: f32[B], %y: f32[8], %z: f32[3]) where B in 1..60 { %a = exp %x "
                    "%b = neg %y %c = neg %z return %a, %b, %c }"),
            0u);
  // M and N change places.
  const Rule swapped = rule_of(
      "rule @r(%x: f32[M, N]) where M in 1..64, N in 1..64 { %y = transpose %x {permutation = [1, "
      "0]} %z = exp %y return %z } => { %e = exp %x %z = transpose %e {permutation = [1, 0]} "
      "return %z }");
  const Graph graph = parse_graph(
                          "graph @g(%x: f32[N, M]) where M in 1..8, N in 1..4 { %y = transpose %x "
                          "{permutation = [1, 0]} %z = exp %y return %z }")
                          .value();
  const std::vector<RuleMatch> found = RuleMatcher(swapped).all(graph);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(apply(swapped, graph, found[0]).value().output_types(), graph.output_types());
}

TEST(HostileGraphs, MayUseAnInputAsAResult) {
  // The rule's result is its input; the graph returns both, twice.
  const Rule rule = rule_of(
      "rule @r(%x: f32[N]) where N in 1..64 { %a = neg %x %b = neg %a return %b, %a } => { %a = "
      "neg %x return %x, %a }");
  const Graph graph =
      parse_graph(
          "graph @g(%x: f32[3]) { %a = neg %x %b = neg %a %c = neg %b return %b, %x, %a, "
          "%c, %b }")
          .value();
  for (const RuleMatch& match : RuleMatcher(rule).all(graph)) {
    const Graph changed = apply(rule, graph, match).value();
    ASSERT_TRUE(verify(changed).ok());
    const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
    const std::vector<Tensor> was = evaluate(graph, inputs).value();
    const std::vector<Tensor> is = evaluate(changed, inputs).value();
    for (size_t o = 0; o < was.size(); ++o) EXPECT_TRUE(was[o].same_bytes(is[o])) << print(changed);
  }
}

// ---- Time and memory ----------------------------------------------------------------------------

// Whatever becomes of them, it takes a moment.
void expect_quick(std::string_view text) {
  const Result<std::vector<Rule>> rules = parse_rules(text);
  if (!rules.ok()) return;
  for (const Rule& rule : *rules) {
    prove(rule);
    (void)verify(rule, {.floats = false});
  }
}

TEST(HostileText, OfManyReshapesStops) {
  std::string body;
  for (int i = 1; i <= 60; ++i)
    body += fmt::format("%v{} = reshape %v{} {{dims = [{}]}}\n", i, i - 1,
                        i % 2 != 0 ? "10, 21*N" : "6*N, 35");
  expect_quick(fmt::format(
      "rule @r(%v0: f32[6*N, 35]) where N in 1..64 {{ {} return %v60 }} => {{ return %v0 }}",
      body));
}

TEST(HostileText, OfManyNestedSumsStops) {
  std::string body = "%s0 = reduce %x {kind = sum, axes = [0, 1, 2, 3, 4]}\n";
  for (int i = 1; i <= 12; ++i)
    body += fmt::format(
        "%e{0} = exp %s{1}\n%b{0} = broadcast %e{0} {{dims = [N, N, N, N, N], map = []}}\n"
        "%m{0} = mul %b{0}, %x\n%s{0} = reduce %m{0} {{kind = sum, axes = [0, 1, 2, 3, 4]}}\n",
        i, i - 1);
  const std::string text = fmt::format(
      "rule @r(%x: f32[N, N, N, N, N]) where N in 1..4 {{ {0} return %s12 }} => {{ {0} return "
      "%s12 }}",
      body);
  expect_quick(text);
}

TEST(HostileText, OfLargePolynomialsStops) {
  expect_quick(fmt::format("rule @r(%v0: f32[64, 64]) {{ {} return %v40 }} => {{ return %v0 }}",
                           chain(40, "dot %v#', %v0 {lhs_contract = [1], rhs_contract = [0]}")));
  expect_quick(
      fmt::format("rule @r(%v0: f32[N]) where N in 1..64 {{ {} return %v200 }} => {{ return %v0 }}",
                  chain(200, "mul %v#', %v#'")));
}

TEST(HostileText, OfDeepDimsAndLongListsIsRefused) {
  const std::string deep(100000, '(');
  EXPECT_FALSE(parse_rules("rule @r(%x: f32[N]) where N in 1..4 { %y = exp %x return %y } => { "
                           "return %x } when " +
                           deep + "N < 3")
                   .ok());
  EXPECT_FALSE(parse_rules("rule @r(%x: f32[" + deep +
                           "N]) where N in 1..4 { %y = exp %x return "
                           "%y } => { return %x }")
                   .ok());
  EXPECT_FALSE(parse_rules("rule @r(%x: f32[N]) where N in 1..4 { %y = exp %x return %y } => { "
                           "return %x } when N < 99999999999999999999999999")
                   .ok());
  std::string sum = "N";
  for (int i = 0; i < 30; ++i) sum = fmt::format("({0} + M)*({0} + 1)", sum).substr(0, 4000);
  EXPECT_FALSE(parse_rules("rule @r(%x: f32[N, M]) where N in 1..4, M in 1..4 { %y = exp %x return "
                           "%y } => { return %x } when N < " +
                           sum)
                   .ok());
  std::string many = "rule @r(%v0: f32[N]) where N in 1..4 { " + chain(5000, "exp %v#'") +
                     "return %v5000 } => { return %v0 }";
  EXPECT_FALSE(parse_rules(many).ok());
}

TEST(HostileText, OfMegabytesIsReadInAMoment) {
  std::string text;
  for (int i = 0; text.size() < (1 << 19); ++i)
    text += fmt::format(
        "rule @r{}(%x: f32[N]) where N in 1..{} {{ %y = exp %x return %y }} => {{ return %x }} "
        "when N < {} by sampled\n",
        i, i + 1, i + 2);
  EXPECT_GT(parse_rules(text).value().size(), 3000u);
}

}  // namespace
}  // namespace hone::HONE_FILE
