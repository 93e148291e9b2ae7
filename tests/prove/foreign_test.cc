#include "prove/foreign.h"

#include <gtest/gtest.h>

#include "prove/needed.h"
#include "prove/verify.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::vector<ForeignRule> read(std::string_view text, bool pairs = false) {
  return parse_foreign_rules(text, "file", pairs).value();
}

// The result for the rule of a line.
std::string outcome(std::string_view line) {
  const Result<std::vector<ForeignRule>> rules = parse_foreign_rules(line, "file");
  if (!rules.ok()) return rules.error().to_string();
  const Result<TypedRule> rule = typed_rule((*rules)[0]);
  if (!rule.ok()) return rule.error().what();
  const Result<RuleVerdict> verdict = verify(rule->rule, {.floats = false});
  if (!verdict.ok()) return verdict.error().what();
  if (verdict->refuted()) return "refuted";
  return fmt::format("{}{}{}", name(verdict->rung), rule->assumed.empty() ? "" : " ",
                     rule->assumed);
}

TEST(ForeignRules, GetSizesAsGeneralAsTheirOpsAllow) {
  const auto head = [](std::string_view line) {
    const std::string text = print(typed_rule(read(line)[0]).value().rule);
    return text.substr(0, text.find(" where"));
  };
  EXPECT_EQ(head("(matmul 0 ?a ?b) => (matmul 0 ?a ?b)"),
            "rule @line_1(%v_a: f32[A, B], %v_b: f32[B, C]) -> f32[A, C]");
  EXPECT_EQ(head("(ewadd (conv2d 1 1 0 0 ?x ?w) ?y) => (ewadd ?y (conv2d 1 1 0 0 ?x ?w))"),
            "rule @line_1(%v_x: f32[A, B, C, D], %v_w: f32[E, B, 3, 3], %v_y: f32[A, E, C, D]) -> "
            "f32[A, E, C, D]");
  EXPECT_EQ(head("(matmul 0 (concat 1 2 ?a ?b) ?c) => (matmul 0 (concat 1 2 ?a ?b) ?c)"),
            "rule @line_1(%v_a: f32[A, B], %v_b: f32[A, C], %v_c: f32[B + C, D]) -> f32[A, D]");
}

TEST(ForeignRules, AreProvedOrRefuted) {
  EXPECT_EQ(outcome("(matmul 0 ?a (matmul 0 ?b ?c)) => (matmul 0 (matmul 0 ?a ?b) ?c)"),
            "all_sizes");
  EXPECT_EQ(outcome("(ewadd (matmul 0 ?a ?b) (matmul 0 ?a ?c)) == (matmul 0 ?a (ewadd ?b ?c))"),
            "all_sizes");
  EXPECT_EQ(outcome("(transpose (matmul 0 ?a ?b) 1_0 0) => (matmul 0 (transpose ?b 1_0 0) "
                    "(transpose ?a 1_0 0))"),
            "all_sizes");
  EXPECT_EQ(outcome("(smul (matmul 0 ?a ?b) ?s) => (matmul 0 ?a (smul ?b ?s))"), "all_sizes");
  EXPECT_EQ(outcome("(poolmax 3 3 1 1 0 0 ?x) => (poolmax 3 3 1 1 0 0 ?x)"), "all_sizes");
  EXPECT_EQ(outcome("(conv2d 1 1 0 0 ?x ?w) => (conv2d 1 1 0 0 ?x (enlarge 3 3 ?w))"), "all_sizes");
  EXPECT_EQ(outcome("(conv2d 1 1 1 2 ?x ?w) => (relu (conv2d 1 1 1 0 ?x ?w))"), "all_sizes");
  EXPECT_EQ(outcome("(ewsub ?x ?y) => (ewsub ?y ?x)"), "refuted");
  EXPECT_EQ(outcome("(matmul 0 ?a ?b) => (matmul 0 ?b ?a)"), "refuted");
}

TEST(ForeignRules, OfSeveralResultsSplitWhereTheyJoined) {
  constexpr std::string_view kLines =
      "(matmul 0 ?x ?a) => (split_0 (split 1 (matmul 0 ?x (concat 1 2 ?a ?b))))\n"
      "(matmul 0 ?x ?b) => (split_1 (split 1 (matmul 0 ?x (concat 1 2 ?a ?b))))\n";
  const std::vector<ForeignRule> rules = read(kLines, true);
  ASSERT_EQ(rules.size(), 1u);
  const Rule rule = typed_rule(rules[0]).value().rule;
  EXPECT_EQ(rule.left.outputs().size(), 2u);
  EXPECT_EQ(verify(rule).value().rung, Rung::all_sizes);
  EXPECT_FALSE(parse_foreign_rules("?x => ?x\n", "file", true).ok());
}

TEST(ForeignRules, WithGroupsThatTheyDoNotNameGetEqualParts) {
  EXPECT_EQ(outcome("(concat 1 4 (conv2d 1 1 0 0 ?x ?v) (conv2d 1 1 0 0 ?y ?w)) => (conv2d 1 1 0 0 "
                    "(concat 1 4 ?x ?y) (concat 0 4 ?v ?w))"),
            "all_sizes where 2 groups have equal parts");
}

TEST(ForeignRules, OutsideOfTheOpsAreToldApart) {
  EXPECT_THAT(outcome("(merge_gconv ?x) => (merge_gconv ?x)"), says("'merge_gconv'"));
  EXPECT_THAT(outcome("(matmul 0 ?x Imatmul) => (transpose ?x 1_0 0)"), says("'Imatmul'"));
  EXPECT_NE(outcome("(conv2d 2 2 0 0 ?x ?w) => (conv2d 2 2 0 0 ?x ?w)").find("strides"),
            std::string::npos);
}

TEST(ForeignRules, ThatAreHostileAreRefused) {
  EXPECT_NE(outcome("(ewadd ?x").find("file:1:"), std::string::npos);
  EXPECT_NE(outcome("(ewadd ?x ?y) => ?x ?y").find("end of the line"), std::string::npos);
  EXPECT_NE(outcome(std::string(100000, '(')).find("expected a term"), std::string::npos);
  std::string deep = "?x";
  for (int i = 0; i < 100; ++i) deep = fmt::format("(relu {})", deep);
  EXPECT_NE(outcome(deep + " => ?x").find("deeper than 64"), std::string::npos);
  EXPECT_NE(outcome("(ewadd ?x) => ?x").find("takes 2 operands"), std::string::npos);
  EXPECT_NE(outcome("(concat 7 2 ?x ?y) => (concat 7 2 ?y ?x)").find("axis 7"), std::string::npos);
  EXPECT_NE(outcome("(concat 0 99999999999999999999 ?x ?y) => ?x").find("file:1:"),
            std::string::npos);
  EXPECT_NE(outcome("(concat 0 60 ?x ?y) => (concat 0 60 ?x ?y)").find("60 dims"),
            std::string::npos);
  EXPECT_NE(outcome("(ewadd ?x (concat 0 2 ?x ?x)) => (concat 0 2 ?x ?x)").find("no sizes fit"),
            std::string::npos);
  EXPECT_NE(outcome("(split 0 ?x) => ?x").find("split as a result"), std::string::npos);
  EXPECT_NE(outcome("(transpose ?x 5_6 0) => (transpose ?x 5_6 0)").find("axis 5"),
            std::string::npos);
  EXPECT_NE(outcome("(relu ?x) => (ewadd ?x ?y)").find("results"), std::string::npos);
  // Sizes that double with each line of a term are no sizes of anything.
  ForeignRule doubled = {.name = "doubled"};
  for (ForeignSide* side : {&doubled.left, &doubled.right}) {
    side->terms.push_back({.op = "", .name = "x"});
    for (size_t i = 0; i < 200; ++i)
      side->terms.push_back({.op = "concat", .parameters = {0, 2}, .operands = {i, i}});
    side->results = {200};
  }
  EXPECT_FALSE(typed_rule(doubled).ok());
}

TEST(ForeignRules, OfTasoReadWhatStandsBefore) {
  TasoRule rule;
  rule.source.push_back({.type = 16, .inputs = {{-1, 0}, {-2, 0}}, .parameters = {}});
  rule.target.push_back({.type = 16, .inputs = {{-2, 0}, {-1, 0}}, .parameters = {}});
  rule.outputs.push_back({});
  const Rule typed = typed_rule(foreign_rules(std::span(&rule, 1)).value()[0]).value().rule;
  EXPECT_EQ(verify(typed).value().rung, Rung::all_sizes);
  rule.target[0].inputs[0].op = 0;
  EXPECT_FALSE(foreign_rules(std::span(&rule, 1)).ok());
  rule.target[0].inputs[0] = {INT64_MIN, 0};
  EXPECT_FALSE(typed_rule(foreign_rules(std::span(&rule, 1)).value()[0]).ok());
  rule.target[0].type = 96;
  const std::vector<ForeignRule> unknown = foreign_rules(std::span(&rule, 1)).value();
  EXPECT_THAT(typed_rule(unknown[0]).error().what(), says("'operator 96'"));
  rule.target[0] = {.type = 12, .inputs = {{-1, 0}, {-2, 0}}, .parameters = {{11, 0}}};
  EXPECT_FALSE(foreign_rules(std::span(&rule, 1)).ok());  // a concat without its rank
}

TEST(ForeignRules, AreWrittenAndReadAgain) {
  const auto line = [](std::string_view text) {
    const Result<std::string> written = foreign_text(parse_rules(text).value()[0]);
    return written.ok() ? *written : written.error().what();
  };
  EXPECT_EQ(line("rule @r(%a: f32[M, K], %b: f32[K, P], %c: f32[K, Q]) where M in 1..64, K in "
                 "1..64, P in 1..64, Q in 1..64 { %y = dot %a, %b {lhs_contract = [1], "
                 "rhs_contract = [0]} %z = dot %a, %c {lhs_contract = [1], rhs_contract = [0]} "
                 "return %y, %z } => { %bc = concat %b, %c {axis = 1} %yz = dot %a, %bc "
                 "{lhs_contract = [1], rhs_contract = [0]} %y = slice %yz {start = [0, 0], limit = "
                 "[M, P]} %z = slice %yz {start = [0, P], limit = [M, P + Q]} return %y, %z }"),
            "(matmul 0 ?x0 ?x1), (matmul 0 ?x0 ?x2) => (split_0 (split 1 (matmul 0 ?x0 (concat 1 2 "
            "?x1 ?x2)))), (split_1 (split 1 (matmul 0 ?x0 (concat 1 2 ?x1 ?x2))))");
  EXPECT_EQ(line("rule @r(%x: f32[M, N]) where M in 1..64, N in 1..64 { %t = transpose %x "
                 "{permutation = [1, 0]} %y = relu %t return %y } => { %r = relu %x %y = transpose "
                 "%r {permutation = [1, 0]} return %y }"),
            "(relu (transpose ?x0 1_0 0)) => (transpose (relu ?x0) 1_0 0)");
  EXPECT_EQ(line("rule @r(%x: f32[N]) where N in 1..64 { %y = exp %x return %y } => { %y = exp %x "
                 "return %y } when N < 5"),
            "it has a guard");
  EXPECT_THAT(line("rule @r(%x: f32[1, N]) where N in 1..64 { %y = reduce %x {kind = sum, axes = "
                   "[0]} return %y } => { %y = reshape %x {dims = [N]} return %y }"),
              says("node '%y' (reduce) ... word"));
  // True of one row alone, which the line cannot say.
  EXPECT_THAT(line("rule @r(%x: f32[1, 1]) { %t = transpose %x {permutation = [1, 0]} %y = relu %t "
                   "return %y } => { %y = relu %x return %y }"),
              says("sizes ... true"));
}

TEST(NeededRules, AreThoseThatDoNotFollow) {
  const std::vector<Rule> rules =
      parse_rules(
          "rule @twice(%x: f32[N]) where N in 1..64 { %a = neg %x %y = neg %a return %y } => { "
          "return %x }\n"
          "rule @four(%x: f32[N]) where N in 1..64 { %a = neg %x %b = neg %a %c = neg %b %y = neg "
          "%c return %y } => { return %x }\n"
          "rule @turned(%x: f32[N], %y: f32[N]) where N in 1..64 { %z = add %x, %y return %z } => "
          "{ %z = add %y, %x return %z }\n")
          .value();
  const NeededRules found = needed_rules(rules, 500, no_progress()).value();
  EXPECT_EQ(found.needed, (std::vector<size_t>{0, 2}));
  EXPECT_EQ(found.derived, (std::vector<size_t>{1}));
}

}  // namespace
}  // namespace hone::HONE_FILE
