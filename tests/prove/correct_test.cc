#include "prove/correct.h"

#include <gtest/gtest.h>

#include "rules/checker/checker.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

Rule rule_of(std::string_view text) { return std::move(parse_rules(text).value()[0]); }

// The boxes that were corrected, once the corrected rule is proved and its certificate checked.
std::string corrected(std::string_view text) {
  const Rule rule = rule_of(text);
  const Result<Correction> found = infer_correction(rule, {.floats = false});
  if (!found.ok()) return found.error().to_string();
  if (!found->rule) return found->counterexample ? "none: " + found->why : "true";
  EXPECT_EQ(found->verdict.rung, Rung::all_sizes);
  const auto proof = parse_certificates(found->verdict.certificate, "proof");
  EXPECT_TRUE(proof.ok());
  EXPECT_TRUE(check_certificate(*found->rule, proof.value()[0]).ok());
  // The text holds the rule.
  EXPECT_EQ(parse_rules(print(*found->rule)).value().size(), 1u);
  return fmt::format("{}", fmt::join(found->boxes, " "));
}

constexpr std::string_view kConv =
    "rule @r(%x: f32[B, C, H, W], %w: f32[F, C, 3, 3]) -> f32[B, F, H, W] where B in 2..64, C in "
    "1..64, H in 4..64, W in 4..64, F in 1..64 { %y = conv %x, %w {pad_low = [1, 1], pad_high = "
    "[1, 1]} return %y } => ";

std::string with_conv(std::string_view right) { return std::string(kConv) + std::string(right); }

TEST(Correction, OfImagesInARowIsOfTheirFirstAndLastRows) {
  EXPECT_EQ(
      corrected(with_conv(
          "{ %t = transpose %x {permutation = [1, 0, 2, 3]} %s = reshape %t {dims = [1, C, "
          "B*H, W]} %c = conv %s, %w {pad_low = [1, 1], pad_high = [1, 1]} %u = reshape %c "
          "{dims = [F, B, H, W]} %y = transpose %u {permutation = [1, 0, 2, 3]} return %y }")),
      "[0:B, 0:F, 0:1, 0:W] [0:B, 0:F, H - 1:H, 0:W]");
}

TEST(Correction, OfOtherPaddingIsOfTheRowsThatItReaches) {
  EXPECT_EQ(corrected(with_conv("{ %0 = constant 0 : f32[] %c = conv %x, %w {pad_low = [0, 1], "
                                "pad_high = [0, 1]} %y = pad %c, %0 {low = [0, 0, 1, 0], high = "
                                "[0, 0, 1, 0]} return %y }")),
            "[0:B, 0:F, 0:1, 0:W] [0:B, 0:F, H - 1:H, 0:W]");
}

TEST(Correction, OfAFrameHasABoxForEachSide) {
  EXPECT_EQ(
      corrected(with_conv("{ %0 = constant 0 : f32[] %c = conv %x, %w %y = pad %c, %0 {low = [0, "
                          "0, 1, 1], high = [0, 0, 1, 1]} return %y }")),
      "[0:B, 0:F, 0:1, 0:W] [0:B, 0:F, 1:H - 1, 0:1] [0:B, 0:F, 1:H - 1, W - 1:W] "
      "[0:B, 0:F, H - 1:H, 0:W]");
}

TEST(Correction, GoesThroughElementwiseOpsAndBroadcasts) {
  EXPECT_EQ(
      corrected("rule @r(%x: f32[B, C, H], %w: f32[F, C, 3], %b: f32[F]) -> f32[B, F, H] where B "
                "in 1..64, C in 1..64, H in 4..64, F in 1..64 { %c = conv %x, %w {pad_low = [1], "
                "pad_high = [1]} %e = broadcast %b {dims = [B, F, H], map = [1]} %y = add %c, %e "
                "return %y } => { %0 = constant 0 : f32[] %c = conv %x, %w {pad_high = [1]} %p = "
                "pad %c, %0 {low = [0, 0, 1], high = [0, 0, 0]} %e = broadcast %b {dims = [B, F, "
                "H], map = [1]} %y = add %p, %e return %y }"),
      "[0:B, 0:F, 0:1]");
}

TEST(Correction, OfPoolsReadsNoMoreThanTheirWindows) {
  const std::string text =
      "rule @r(%x: f32[B, H]) -> f32[B, H] where B in 1..64, H in 6..64 { %y = window_reduce %x "
      "{kind = sum, window = [1, 3], pad_low = [0, 1], pad_high = [0, 1]} return %y } => { %0 = "
      "constant 0 : f32[] %p = window_reduce %x {kind = sum, window = [1, 3]} %y = pad %p, %0 {low "
      "= [0, 1], high = [0, 1]} return %y }";
  EXPECT_EQ(corrected(text), "[0:B, 0:1] [0:B, H - 1:H]");
  const std::string right = print(infer_correction(rule_of(text)).value().rule->right);
  EXPECT_NE(right.find("slice %x {start = [0, 0], limit = [B, 2]}"), std::string::npos) << right;
}

TEST(Correction, LeavesWhatIsTrueAsItIs) {
  EXPECT_EQ(corrected("rule @r(%x: f32[N]) where N in 1..64 { %y = neg %x return %y } => { %0 = "
                      "constant 0 : f32[] %b = broadcast %0 {dims = [N], map = []} %y = sub %b, %x "
                      "return %y }"),
            "true");
}

TEST(Correction, OfWhatIsWrongAllOverIsRefused) {
  EXPECT_EQ(corrected("rule @r(%x: f32[N]) where N in 1..64 { %y = neg %x return %y } => { %y = "
                      "exp %x return %y }"),
            "none: all of result 0 is wrong");
  EXPECT_THAT(
      corrected("rule @r(%x: f32[A], %y: f32[B]) -> f32[A + B] where A in 1..64, B in 1..64 "
                "{ %z = concat %x, %y {axis = 0} return %z } => { %n = neg %y %z = concat "
                "%x, %n {axis = 0} return %z }"),
      says("none ... boxes"));
}

}  // namespace
}  // namespace hone::HONE_FILE
