#include "rules/checker/checker.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "prove/prove.h"
#include "rules/checker/whole.h"
#include "rules/statement.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using checker::Atoms;
using checker::Whole;

std::vector<std::filesystem::path> rule_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(HONE_TEST_DIR "/../rules"))
    if (file.path().extension() == ".rules") files.push_back(file.path());
  std::ranges::sort(files);
  return files;
}

std::vector<Rule> rules_of(const std::filesystem::path& file) {
  return parse_rules(read_file(file, 1 << 24).value(), {.file = file.string()}).value();
}

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

// ---- Whole numbers ------------------------------------------------------------------------------

TEST(Whole, IsReadDividedAndBounded) {
  Atoms atoms;
  ASSERT_TRUE(atoms.add_symbol("M", 1, 64, 1).ok());
  ASSERT_TRUE(atoms.add_symbol("N", 8, 64, 8).ok());
  const auto of = [&](std::string_view text) { return atoms.parse(text).value(); };
  EXPECT_EQ(of("(M + 1)*(M - 1)"), of("M*M - 1"));
  EXPECT_EQ(of("N/8*8"), of("N"));
  EXPECT_EQ(of("M*N + N").divided_by(of("M + 1")).value(), of("N"));
  EXPECT_FALSE(of("M*N + M").divided_by(of("M + 1")));
  EXPECT_TRUE(atoms.is_never_negative(of("M*N - M")));
  EXPECT_TRUE(atoms.is_never_negative(of("64 - M")));
  EXPECT_FALSE(atoms.is_never_negative(of("63 - M")));
  EXPECT_FALSE(atoms.is_never_negative(of("M - N")));
  EXPECT_TRUE(atoms.is_never_negative(of("M - (M/4)*4")));
  EXPECT_TRUE(atoms.is_never_negative(of("3 - M + (M/4)*4")));
  EXPECT_FALSE(atoms.is_never_negative(of("2 - M + (M/4)*4")));
  const uint32_t loop = atoms.add_loop(of("M"));
  EXPECT_TRUE(atoms.is_never_negative(of("M") - Whole::atom(loop) - 1));
  EXPECT_FALSE(atoms.is_never_negative(of("M") - Whole::atom(loop) - 2));
  const auto parts = atoms.divide(Whole::atom(loop) + of("3*M*N"), of("M"));
  EXPECT_EQ(parts.quotient, of("3*N"));
  EXPECT_EQ(parts.remainder, Whole::atom(loop));
}

TEST(Whole, IsBadWhenItOverflows) {
  Whole large = int64_t{1} << 40;
  large = large * large;
  EXPECT_TRUE(large.is_bad());
  EXPECT_FALSE(large == large);
  EXPECT_FALSE(Atoms().is_never_negative(large));
  EXPECT_FALSE(Atoms().parse("99999999999999999999").ok());
  EXPECT_FALSE(Atoms().parse(std::string(100000, '(')).ok());
  EXPECT_FALSE(Atoms().parse("M").ok());
}

// ---- Certificates -------------------------------------------------------------------------------

// The certificates of all committed rules that a proof was found for.
std::vector<std::pair<Rule, Certificate>> proved_rules() {
  std::vector<std::pair<Rule, Certificate>> all;
  for (const auto& file : rule_files())
    for (Rule& rule : rules_of(file)) {
      const Proof proof = prove(rule);
      if (!proof.proved) continue;
      std::vector<Certificate> read = parse_certificates(proof.certificate, "proof").value();
      EXPECT_EQ(read.size(), 1u) << rule.name;
      all.emplace_back(std::move(rule), std::move(read[0]));
    }
  return all;
}

TEST(Certificates, OfAllProofsAreGood) {
  for (const auto& [rule, certificate] : proved_rules()) {
    const Status good = check_certificate(rule, certificate);
    EXPECT_TRUE(good.ok()) << good.error().to_string() << "\n" << prove(rule).certificate;
  }
}

TEST(Certificates, OfCommittedFilesAreGood) {
  for (const auto& file : rule_files()) {
    std::filesystem::path beside = file;
    beside.replace_extension(".proofs");
    ASSERT_TRUE(std::filesystem::exists(beside)) << "'hone rules verify --proofs' makes it";
    std::map<std::string, Certificate> certificates;
    std::vector<Certificate> read =
        parse_certificates(read_file(beside, 1 << 24).value(), beside.string()).value();
    for (Certificate& one : read) certificates.emplace(one.rule, one);
    for (const Rule& rule : rules_of(file)) {
      if (rule.rung != Rung::all_sizes) continue;
      ASSERT_TRUE(certificates.contains(rule.name)) << beside << " lacks " << rule.name;
      const Status good = check_certificate(rule, certificates.at(rule.name));
      EXPECT_TRUE(good.ok()) << good.error().to_string();
    }
  }
}

TEST(Certificates, OfDimsOfOneAreGood) {
  const Rule rule = rule_of(
      "rule @r(%x: f32[1, N]) -> f32[N] where N in 1..64 { %y = reduce %x {kind = sum, axes = [0]} "
      "return %y } => { %y = reshape %x {dims = [N]} return %y }");
  const Proof proof = prove(rule);
  ASSERT_TRUE(proof.proved) << proof.stopped;
  EXPECT_TRUE(check_certificate(rule, parse_certificates(proof.certificate, "c").value()[0]).ok())
      << proof.certificate;
}

// One step changed.
Certificate mutant_of(const Certificate& certificate, Rng& rng) {
  Certificate mutant = certificate;
  std::vector<std::string>& steps = mutant.steps;
  std::string& step = rng.pick(steps);
  switch (rng.below(5)) {
    case 0: std::swap(step, rng.pick(steps)); break;
    case 1: steps.erase(steps.begin() + static_cast<ptrdiff_t>(rng.below(steps.size()))); break;
    case 2: steps.insert(steps.begin(), step); break;
    case 3: {
      const size_t at = rng.below(step.size());
      constexpr std::string_view kLetters = "ynos01MNAB";
      step[at] = kLetters[rng.below(kLetters.size())];
      break;
    }
    default: step = step.substr(0, rng.below(step.size())); break;
  }
  return mutant;
}

// Steps that only say less than they could are no lie.
TEST(Certificates, ThatAreChangedAreRefused) {
  Rng rng(3);
  const auto proved = proved_rules();
  int changed = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    const auto& [rule, certificate] = rng.pick(proved);
    const Certificate mutant = mutant_of(certificate, rng);
    if (mutant.steps == certificate.steps) continue;
    ++changed;
    if (check_certificate(rule, mutant).ok())
      testing::Test::RecordProperty("accepted", fmt::format("{}", fmt::join(mutant.steps, "|")));
    else
      ++refused;
  }
  EXPECT_GT(refused, changed * 95 / 100) << changed;
  for (const auto& [rule, certificate] : proved) {
    Certificate other = certificate;
    other.statement ^= 1;
    EXPECT_FALSE(check_certificate(rule, other).ok());
  }
}

void expect_refused(const Rule& rule, std::string_view steps, std::string_view why) {
  Certificate certificate = {
      .rule = rule.name, .statement = statement_hash(rule), .line = 1, .steps = {}};
  for (std::string_view line : split(steps, '\n')) certificate.steps.emplace_back(trim(line));
  const Status status = check_certificate(rule, certificate);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status, says(std::string(why)));
}

TEST(Certificates, DoNotMakeFalseRulesTrue) {
  const Rule one_row = rule_of(
      "rule @r(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 { %s = reduce %x {kind = sum, "
      "axes = [0]} return %s } => { %s = reduce %x {kind = max, axes = [0]} return %s }");
  expect_refused(one_row, "result\nbox\ns s", "the sides differ");
  expect_refused(one_row, "symbol N in 1..64 step 1 = N\nbind M = 1\nresult\nbox\ns s",
                 "guard ... M = 1");
  expect_refused(one_row, "bind M = M\nresult\nbox\ns s", "there is no symbol 'M'");
  expect_refused(one_row, "symbol M in 1..1 step 1 = M\nsymbol N in 1..64 step 1 = N\nresult\nbox",
                 "does not keep 'M' within its range");
  expect_refused(one_row, "symbol M in 1..1 step 1 = 1\nsymbol N in 1..64 step 1 = N\nresult\nbox",
                 "does not say that M = M");
  expect_refused(one_row, "result\ncut 0 N - 1 - 1\nbox", "may be negative");
  expect_refused(one_row, "result\ncut 0 N + 1\nbox", "end");
  expect_refused(one_row, "result\ndigits 0 2 by N/2\nbox", "loop");
  expect_refused(one_row, "result\ncut 1 1\nbox", "there is no loop 1");
  expect_refused(one_row, "result\nbox\ns", "steps");
  expect_refused(one_row, "", "a result has no steps");
  expect_refused(one_row, "result\nbox\ns x", "step");

  const Rule border = rule_of(
      "rule @r(%x: f32[N]) -> f32[N] where N in 4..64 { %y = window_reduce %x {kind = sum, window "
      "= [3], pad_low = [1], pad_high = [1]} return %y } => { %y = window_reduce %x {kind = sum, "
      "window = [3], pad_low = [2], pad_high = [0]} return %y }");
  expect_refused(border, "result\nbox\ns y y s y y", "not known to hold");
  expect_refused(border, "result\nbox\ns n s n", "not known to be missed");
  expect_refused(border, "result\nbox\ns o o s o o", "the sides differ");
}

// The steps of a true rule do not prove a false one, whatever is changed in them.
TEST(Certificates, OfOtherRulesProveNothing) {
  const auto proved = proved_rules();
  for (const auto& [rule, certificate] : proved)
    for (const auto& [other, steps] : proved) {
      if (statement_hash(rule) == statement_hash(other)) continue;
      Rule mixed = rule;
      mixed.right = other.right;
      if (!check(mixed).ok()) continue;
      Certificate lie = certificate;
      lie.statement = statement_hash(mixed);
      EXPECT_FALSE(check_certificate(mixed, lie).ok() && !prove(mixed).proved) << print(mixed);
    }
}

TEST(Certificates, AreReadWithPlaces) {
  const auto error = [](std::string_view text) {
    const auto read = parse_certificates(text, "f");
    return read.ok() ? "" : read.error().to_string();
  };
  EXPECT_NE(error("box").find("f:1"), std::string::npos);
  EXPECT_NE(error("\ncertificate @r 12").find("f:2"), std::string::npos);
  EXPECT_NE(error("certificate @r 12345678901234xy").find("hex"), std::string::npos);
  const std::string text = "# all\ncertificate @a b 00000000000000ff\n  result\n  box\n";
  const std::vector<Certificate> read = parse_certificates(text, "f").value();
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].rule, "a b");
  EXPECT_EQ(read[0].statement, 255u);
  EXPECT_EQ(read[0].steps, (std::vector<std::string>{"result", "box"}));
}

// Whatever stands in a file is refused, not believed and no crash.
TEST(Certificates, OfRandomTextAreRefused) {
  Rng rng(9);
  constexpr std::string_view kPieces[] = {"certificate @r ",
                                          "0123456789abcdef",
                                          "\n",
                                          "result",
                                          "box",
                                          "cut ",
                                          "digits ",
                                          " by ",
                                          "s",
                                          "y",
                                          "n",
                                          "o",
                                          "unrolled",
                                          "symbol ",
                                          "bind ",
                                          " = ",
                                          " in ",
                                          "..",
                                          " step ",
                                          "M",
                                          "N",
                                          "1",
                                          "0",
                                          "-1",
                                          "9999999999999999999",
                                          "/",
                                          "*",
                                          "(",
                                          ")",
                                          "%",
                                          "\"",
                                          "\xff",
                                          " "};
  const Rule rule = rule_of(
      "rule @r(%x: f32[M, N]) -> f32[N] where M in 1..64, N in 1..64 { %s = reduce %x {kind = sum, "
      "axes = [0]} return %s } => { %s = reduce %x {kind = max, axes = [0]} return %s } when M < "
      "N");
  for (int i = 0; i < 3000; ++i) {
    std::string text =
        rng.chance(0.9) ? fmt::format("certificate @r {:016x}\n", statement_hash(rule)) : "";
    if (rng.chance(0.5)) text += "symbol M in 1..1 step 1 = M\nbind N = M\nresult\n";
    for (int64_t n = rng.between(0, 30); n > 0; --n) text += rng.pick(kPieces);
    const Result<std::vector<Certificate>> read = parse_certificates(text, "f");
    if (!read.ok()) continue;
    for (const Certificate& one : *read) EXPECT_FALSE(check_certificate(rule, one).ok()) << text;
  }
}

// The checker is of use only while it shares nothing with the prover.
TEST(Checker, IncludesNothingOfTheProver) {
  const std::filesystem::path folder = HONE_TEST_DIR "/../src/rules/checker";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string text = read_file(file.path(), 1 << 20).value();
    for (std::string_view line : split_lines(text)) {
      if (!line.starts_with("#include \"rules/")) continue;
      const bool is_allowed = line.find("rules/checker/") != line.npos ||
                              line.find("rules/rule.h") != line.npos ||
                              line.find("rules/statement.h") != line.npos;
      EXPECT_TRUE(is_allowed) << file.path() << ": " << line;
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
