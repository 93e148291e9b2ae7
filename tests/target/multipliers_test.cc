#include "target/multipliers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

std::string with_line(std::string_view line) {
  std::string text(kSampleTarget);
  return text.insert(text.rfind('}'), fmt::format("  {}\n", line));
}

TEST(Multipliers, StandInTheTextOfATarget) {
  const std::string text = with_line(
      "multiplier = \"a\", signed, 0.425 mW, 729.8 um2, \"a.npy\"\n"
      "  multiplier = \"b c\", unsigned, 120 uW, 0 um2, \"tables/b.npy\"  # small");
  const std::vector<MultiplierLine> found = parse_multipliers(text, "t").value();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "a");
  EXPECT_TRUE(found[0].is_signed);
  EXPECT_DOUBLE_EQ(found[0].power, 0.425e-3);
  EXPECT_DOUBLE_EQ(found[0].area, 729.8);
  EXPECT_EQ(found[1].products, "tables/b.npy");
  EXPECT_FALSE(found[1].is_signed);
  EXPECT_DOUBLE_EQ(found[1].power, 120e-6);
  // The machine itself is the same.
  EXPECT_EQ(parse_target(text, "t").value(), parse_target(kSampleTarget, "t").value());
  EXPECT_TRUE(parse_multipliers(kSampleTarget, "t").value().empty());
}

TEST(Multipliers, AreRefusedAtTheirPlace) {
  const auto refused = [](std::string_view line, std::string_view words) {
    EXPECT_THAT(parse_multipliers(with_line(line), "t"),
                refuses(ErrorCode::bad_input, std::string("t:...") + std::string(words)))
        << line;
  };
  refused("multiplier = a, signed, 1 mW, 1 um2, \"a.npy\"", "name in quotes");
  refused("multiplier = \"a\", both, 1 mW, 1 um2, \"a.npy\"", "'signed' or 'unsigned'");
  refused("multiplier = \"a\", signed, 1 mJ, 1 um2, \"a.npy\"", "mW");
  refused("multiplier = \"a\", signed, -1 mW, 1 um2, \"a.npy\"", "");
  refused("multiplier = \"a\", signed, 1 mW, 1 um2", "','");
  refused(
      "multiplier = \"a\", signed, 1 mW, 1 um2, \"a\"\n multiplier = \"a\", signed, 1 mW, 1 um2, "
      "\"b\"",
      "given twice");
  std::string many;
  for (size_t i = 0; i <= kMaxMultipliers; ++i)
    many += fmt::format("multiplier = \"m{}\", signed, 1 mW, 1 um2, \"a\"\n", i);
  EXPECT_THAT(parse_multipliers(with_line(many), "t"),
              refuses(ErrorCode::limit, "t:... multipliers"));
}

}  // namespace
}  // namespace hone::HONE_FILE
