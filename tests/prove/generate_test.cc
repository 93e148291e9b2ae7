#include <gtest/gtest.h>

#include <unistd.h>

#include <map>

#include "base/file.h"
#include "prove/generate.h"
#include "rules/checker/checker.h"

namespace hone::HONE_FILE {
namespace {

Generated generated(std::string_view inputs, std::string_view ops, int max_ops, int threads = 2) {
  const Family family = {
      .name = "test", .doc = "", .max_ops = max_ops, .inputs = inputs, .ops = ops};
  return generate_rules(term_ops(family).value(),
                        {.limits = {.max_ops = max_ops}, .threads = threads, .prefix = "r"})
      .value();
}

// True if some rule is this one but for its name and what is known of it.
bool has(const Generated& found, std::string_view sides) {
  Rule wanted = std::move(parse_rules(fmt::format("rule @r{}", sides)).value()[0]);
  for (const Rule& rule : found.rules)
    if (structural_hash(rule.left) == structural_hash(wanted.left) &&
        structural_hash(rule.right) == structural_hash(wanted.right))
      return true;
  return false;
}

TEST(Generate, FindsTheLawsOfARing) {
  const Generated found =
      generated("(%x: f32[N], %y: f32[N], %z: f32[N]) where N in 1..1024", "add; mul; neg", 3);
  EXPECT_TRUE(has(found,
                  "(%x: f32[N]) where N in 1..1024 { %a = neg %x %b = neg %a return %b } => "
                  "{ return %x }"));
  EXPECT_TRUE(has(found,
                  "(%x: f32[N], %y: f32[N], %z: f32[N]) where N in 1..1024 { %a = mul %x, %y "
                  "%b = mul %x, %z %c = add %a, %b return %c } => { %a = add %y, %z "
                  "%b = mul %x, %a return %b }") ||
              has(found,
                  "(%x: f32[N], %y: f32[N], %z: f32[N]) where N in 1..1024 { %a = mul %x, %y "
                  "%b = mul %z, %y %c = add %a, %b return %c } => { %a = add %x, %z "
                  "%b = mul %a, %y return %b }"));
  EXPECT_EQ(found.counts.accepted, found.rules.size());
  EXPECT_EQ(found.counts.rejected, 0u);
  EXPECT_EQ(found.counts.proved, found.counts.accepted);
  for (const Rule& rule : found.rules) EXPECT_TRUE(check(rule).ok());
}

TEST(Generate, FindsAMergeOfProducts) {
  const Generated found = generated(
      "(%x: f32[M, K], %a: f32[K, A], %b: f32[K, B]) where M in 1..64, K in 1..64, A in 1..64, B "
      "in "
      "1..64",
      "dot {lhs_contract = [1], rhs_contract = [0]}; concat {axis = 1}; "
      "slice {start = [0, A], limit = [M, A + B]}",
      3);
  EXPECT_TRUE(has(found,
                  "(%x: f32[M, K], %a: f32[K, A], %b: f32[K, B]) where M in 1..64, K in 1..64, "
                  "A in 1..64, B in 1..64 { %c = concat %a, %b {axis = 1} "
                  "%y = dot %x, %c {lhs_contract = [1], rhs_contract = [0]} "
                  "%s = slice %y {start = [0, A], limit = [M, A + B]} return %s } => "
                  "{ %y = dot %x, %b {lhs_contract = [1], rhs_contract = [0]} return %y }"));
  EXPECT_EQ(found.counts.rejected, 0u);
}

// Terms of ops with three operands, whose terms are the last level, or parts of it.
TEST(Generate, FindsWhatIsChosen) {
  constexpr std::string_view kInputs =
      "(%x: f32[N], %y: f32[N], %p: bool[N], %q: bool[N]) where N in 1..1024";
  const Generated found = generated(kInputs, "select; compare {direction = lt}; max; not; and", 2);
  const auto has_law = [&](std::string_view inputs, std::string_view left, std::string_view right) {
    return has(found, fmt::format("({}) where N in 1..1024 {{ {} return %s }} => {{ {} }}", inputs,
                                  left, right));
  };
  EXPECT_TRUE(has_law("%x: f32[N], %y: f32[N]",
                      "%c = compare %x, %y {direction = lt} %s = select %c, %y, %x",
                      "%s = max %x, %y return %s"));
  EXPECT_TRUE(has_law("%p: bool[N], %x: f32[N], %y: f32[N]", "%n = not %p %s = select %n, %x, %y",
                      "%s = select %p, %y, %x return %s"));
  EXPECT_TRUE(has_law("%p: bool[N], %x: f32[N]", "%s = select %p, %x, %x", "return %x"));
  EXPECT_GE(10 * found.counts.proved, 9 * found.counts.accepted);
  EXPECT_EQ(found.counts.rejected, 0u);
  const Generated alone =
      generated(kInputs, "select; compare {direction = lt}; max; not; and", 2, 1);
  ASSERT_EQ(alone.rules.size(), found.rules.size());
  for (size_t i = 0; i < alone.rules.size(); ++i)
    EXPECT_EQ(print(alone.rules[i]), print(found.rules[i]));
}

TEST(Generate, IsTheSameOnOneThread) {
  const auto text = [](int threads) {
    std::string all;
    for (const Rule& rule :
         generated("(%a: f32[M, K], %b: f32[K, N]) where M in 1..64, K in 1..64, "
                   "N in 1..64",
                   "dot {lhs_contract = [1], rhs_contract = [0]}; transpose "
                   "{permutation = [1, 0]}; reduce {kind = sum, axes = [0]}",
                   3, threads)
             .rules)
      all += print(rule);
    return all;
  };
  EXPECT_EQ(text(1), text(2));
}

TEST(Generate, CountsSharedPartsOnce) {
  // (x + x) * (x + x) has two ops.
  const Generated one = generated("(%x: f32[N]) where N in 1..64", "add; mul", 2);
  const Generated two = generated("(%x: f32[N]) where N in 1..64", "add; mul", 1);
  EXPECT_EQ(two.counts.distinct, 3u);  // x, x + x, x * x
  EXPECT_GT(one.counts.distinct, 7u);
}

TEST(Generate, FindsGuards) {
  const Family family = {.name = "test",
                         .doc = "",
                         .max_ops = 2,
                         .inputs = "(%x: f32[M, N]) where M in 1..64, N in 1..64",
                         .ops =
                             "reduce {kind = sum, axes = [0]}; reduce {kind = max, axes = [0]}; "
                             "reshape {dims = [M*N]}; transpose {permutation = [1, 0]}"};
  const Generated found = generate_rules(term_ops(family).value(),
                                         {.limits = {.max_ops = 2}, .guards = true, .prefix = "r"})
                              .value();
  std::vector<std::string> guards;
  for (const Rule& rule : found.rules) {
    EXPECT_TRUE(check(rule).ok());
    for (const Condition& condition : rule.guard) guards.push_back(condition.to_string());
  }
  // The sum of one row is its maximum, and a transpose of one row or column moves nothing.
  EXPECT_NE(std::ranges::find(guards, "M = 1"), guards.end());
  EXPECT_NE(std::ranges::find(guards, "N = 1"), guards.end());
  EXPECT_GE(found.counts.guarded, 2u);
  EXPECT_LE(found.counts.guarded, found.counts.accepted);
  EXPECT_EQ(found.counts.rejected, found.rejected.size());
  // Each certificate is of the rule that it names.
  std::map<std::string, Certificate> certificates;
  std::vector<Certificate> read = parse_certificates(found.proofs, "p").value();
  for (Certificate& one : read) certificates.emplace(one.rule, one);
  EXPECT_EQ(certificates.size(), found.counts.proved);
  for (const Rule& rule : found.rules) {
    if (rule.rung != Rung::all_sizes) continue;
    ASSERT_TRUE(certificates.contains(rule.name));
    const Status good = check_certificate(rule, certificates.at(rule.name));
    EXPECT_TRUE(good.ok()) << good.error().to_string();
  }
}

std::string text_of(const Generated& found) {
  std::string text = found.proofs;
  for (const Rule& rule : found.rules) text += print(rule);
  for (const Rejected& one : found.rejected) text += one.why + print(one.rule);
  return text + fmt::format("{} {}", found.counts.accepted, found.counts.implied);
}

TEST(Generate, GoesOnFromAState) {
  const Family family = {.name = "test",
                         .doc = "",
                         .max_ops = 2,
                         .inputs = "(%x: f32[M, N], %y: f32[M, N]) where M in 1..64, N in 1..64",
                         .ops =
                             "add; mul; neg; reduce {kind = sum, axes = [0]}; transpose "
                             "{permutation = [1, 0]}"};
  const std::filesystem::path path =
      std::filesystem::path(testing::TempDir()) / fmt::format("hone_state_{}", getpid());
  const auto run = [&](GenerateState* state) {
    return generate_rules(term_ops(family).value(),
                          {.limits = {.max_ops = 2}, .guards = true, .prefix = "r", .state = state})
        .value();
  };
  const std::string wanted = text_of(run(nullptr));
  GenerateState first = GenerateState::open(path, 7).value();
  EXPECT_EQ(first.known(), 0u);
  EXPECT_EQ(text_of(run(&first)), wanted);
  const std::string all = read_file(path, 1 << 24).value();
  // Wherever it is cut off, as by a kill.
  Rng rng(4);
  for (int i = 0; i < 5; ++i) {
    const size_t head = all.find('\n') + 1;
    const std::string part = all.substr(0, head + rng.below(all.size() - head));
    ASSERT_TRUE(write_file_atomic(path, part).ok());
    GenerateState again = GenerateState::open(path, 7).value();
    EXPECT_EQ(text_of(run(&again)), wanted);
    EXPECT_EQ(read_file(path, 1 << 24).value(), all);
  }
  GenerateState whole = GenerateState::open(path, 7).value();
  EXPECT_GT(whole.known(), 2u);
  EXPECT_EQ(text_of(run(&whole)), wanted);
  // A state of another search, or not a state at all.
  EXPECT_FALSE(GenerateState::open(path, 8).ok());
  ASSERT_TRUE(
      write_file_atomic(path, all.substr(0, all.find('\n') + 1) + "block\nwhat\nend\n").ok());
  EXPECT_FALSE(GenerateState::open(path, 7).ok());
  std::filesystem::remove(path);
}

TEST(Generate, IsTheSameWhateverMemoryHolds) {
  const Family family = {.name = "test",
                         .doc = "",
                         .max_ops = 3,
                         .inputs = "(%x: f32[N], %y: f32[N]) where N in 1..64",
                         .ops = "add; mul; neg"};
  const auto run = [&](size_t memory, const std::filesystem::path& spill) {
    return generate_rules(
        term_ops(family).value(),
        {.limits = {.max_ops = 3, .memory = memory, .spill = spill}, .prefix = "r"});
  };
  const Generated all = run(1 << 30, "").value();
  EXPECT_EQ(all.counts.spilled, 0u);
  const Generated few = run(0, testing::TempDir()).value();
  EXPECT_GT(few.counts.spilled, 0u);
  EXPECT_EQ(few.counts.made, all.counts.made);
  EXPECT_EQ(few.counts.distinct, all.counts.distinct);
  EXPECT_EQ(few.counts.candidates, all.counts.candidates);
  EXPECT_EQ(text_of(few), text_of(all));
  const Result<Generated> none = run(0, "");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::limit);
}

TEST(Generate, StopsAtItsLimit) {
  const Family family = {.name = "test",
                         .doc = "",
                         .max_ops = 2,
                         .inputs = "(%x: f32[N], %y: f32[N]) where N in 1..64",
                         .ops = "add; mul"};
  const Result<Generated> found = generate_rules(
      term_ops(family).value(), {.limits = {.max_ops = 4, .max_terms = 20}, .prefix = "r"});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ErrorCode::limit);
}

TEST(Generate, StopsAtItsLimitOfCandidates) {
  const Family family = {.name = "test",
                         .doc = "",
                         .max_ops = 2,
                         .inputs = "(%x: f32[N], %y: f32[N]) where N in 1..64",
                         .ops = "add; mul"};
  const Result<Generated> found = generate_rules(
      term_ops(family).value(), {.limits = {.max_ops = 3}, .max_candidates = 2, .prefix = "r"});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code(), ErrorCode::limit);
}

TEST(Families, CanBeRead) {
  for (const Family& family : families()) {
    const Result<TermOps> ops = term_ops(family);
    ASSERT_TRUE(ops.ok()) << family.name << ops.error().to_string();
    EXPECT_TRUE(TermTable::make(*ops, 1).ok()) << family.name;
  }
  EXPECT_FALSE(family_named("dto").ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
