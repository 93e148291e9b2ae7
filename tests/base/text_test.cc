#include "base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using Views = std::vector<std::string_view>;

TEST(Text, SplitKeepsEmptyPieces) {
  EXPECT_EQ(split("a,,b", ','), (Views{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (Views{""}));
  EXPECT_EQ(split(",", ','), (Views{"", ""}));
}

TEST(Text, WordsAndLines) {
  EXPECT_EQ(split_words("  a \t b\nc "), (Views{"a", "b", "c"}));
  EXPECT_EQ(split_words(" "), Views{});
  EXPECT_EQ(split_lines("a\r\n\nb\n"), (Views{"a", "", "b"}));
  EXPECT_EQ(split_lines("a"), Views{"a"});
  EXPECT_EQ(split_lines(""), Views{});
  EXPECT_EQ(split_lines("\n"), Views{""});
}

TEST(Text, TrimJoinAndPrefix) {
  EXPECT_EQ(trim(" \ta b\r\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}, ", "), "1, 2, 3");
  std::string_view text = "--seed=4";
  EXPECT_FALSE(consume_prefix(text, "--seeds"));
  EXPECT_TRUE(consume_prefix(text, "--seed="));
  EXPECT_EQ(text, "4");
}

TEST(Text, ParseIntTakesTheWholeTextOrSaysWhy) {
  EXPECT_EQ(parse_int("-42").value(), -42);
  EXPECT_EQ(parse_int("9223372036854775807").value(), std::numeric_limits<int64_t>::max());
  EXPECT_THAT(parse_int("9223372036854775808").error().what(),
              says("'9223372036854775808' ... 64 bits"));
  for (std::string_view text : {"", " 1", "1 ", "+1", "1x", "0x10", "1.0", "-"}) {
    EXPECT_EQ(parse_int(text).error().what(), fmt::format("'{}' is not an integer", text));
  }
  EXPECT_EQ(parse_int("a\nb").error().what(), "'a\\nb' is not an integer");
  EXPECT_LT(parse_int(std::string(10000, 'z')).error().what().size(), 100u);
}

TEST(Text, ParseDoubleTakesTheWholeTextOrSaysWhy) {
  EXPECT_EQ(parse_double("1e-3").value(), 1e-3);
  EXPECT_EQ(parse_double("-inf").value(), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_double("nan").value()));
  EXPECT_THAT(parse_double("1e999").error().what(), says("'1e999' ... f64"));
  for (std::string_view text : {"", " 1", "1 ", "+1", "1x", "infinity", "INF", "nan(2)", "0x1p3"}) {
    EXPECT_EQ(parse_double(text).error().what(), fmt::format("'{}' is not a number", text));
  }
}

TEST(Text, FormattedFloatsRoundTrip) {
  EXPECT_EQ(format_double(0.1), "0.1");
  EXPECT_EQ(format_double(1), "1");
  EXPECT_EQ(format_double(-0.0), "-0");
  EXPECT_EQ(format_double(1e20), "1e+20");
  EXPECT_EQ(format_float(0.1f), "0.1");
  EXPECT_EQ(format_double(-std::nan("")), "nan");
  for (double value : {1.0 / 3, 5e-324, 1.7976931348623157e308, 123456789.125, 1e23}) {
    EXPECT_EQ(parse_double(format_double(value)).value(), value);
  }
}

TEST(Text, EscapesAreUndone) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(unescape(escape(all)).value(), all);
  EXPECT_EQ(quoted("a\"\\\n\x7f\xff"), "\"a\\\"\\\\\\n\\x7f\\xff\"");
}

TEST(Text, BrokenEscapesAreErrors) {
  EXPECT_THAT(unescape("a\\").error().what(), says("escape"));
  EXPECT_EQ(unescape("\\q").error().what(), "unknown escape '\\q'");
  EXPECT_EQ(unescape("\\x4").error().what(), "\\x needs two hexadecimal digits");
  EXPECT_EQ(unescape("\\xg0").error().what(), "\\x needs two hexadecimal digits");
}

TEST(Text, EditDistanceCountsSwapsAsOne) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("cnov", "conv"), 1);
  EXPECT_EQ(edit_distance("same", "same"), 0);
}

TEST(Text, HintsNameTheClosestCandidateOrNothing) {
  const std::vector<std::string> ops = {"add", "conv", "concat", "reshape"};
  EXPECT_EQ(did_you_mean("cnov", ops), "did you mean 'conv'?");
  EXPECT_EQ(did_you_mean("CONCAT", ops), "did you mean 'concat'?");
  EXPECT_EQ(did_you_mean("resahpe", ops), "did you mean 'reshape'?");
  EXPECT_EQ(did_you_mean("softmax", ops), "");
  EXPECT_EQ(did_you_mean("", ops), "");
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>{"y"}), "");
  EXPECT_EQ(did_you_mean(std::string(1000000, 'a'), ops), "");
}

TEST(Text, CountsForPeople) {
  EXPECT_EQ(format_count(25557032), "25.6 M");
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(12.34), "12.3");
  EXPECT_EQ(format_count(1000), "1.0 k");
  EXPECT_EQ(format_count(999960), "1.0 M");
  EXPECT_EQ(format_count(-4.1e9), "-4.1 G");
  EXPECT_EQ(format_count(std::numeric_limits<double>::infinity()), "inf");
}

TEST(Text, BytesForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes((int64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<int64_t>::max()), "8.0 EiB");
}

TEST(Text, SecondsForPeople) {
  EXPECT_EQ(format_seconds(0), "0 s");
  EXPECT_EQ(format_seconds(1.5e-9), "1.50 ns");
  EXPECT_EQ(format_seconds(42.1e-6), "42.1 us");
  EXPECT_EQ(format_seconds(0.01234), "12.3 ms");
  EXPECT_EQ(format_seconds(0.9999), "1.00 s");
  EXPECT_EQ(format_seconds(59.97), "1m00s");
  EXPECT_EQ(format_seconds(250), "4m10s");
  EXPECT_EQ(format_seconds(7500), "2h05m");
  EXPECT_EQ(format_seconds(273600), "3d04h");
  EXPECT_EQ(format_seconds(-0.5), "-500 ms");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "inf s");
}

TEST(Excerpt, IsEscapedAndShort) {
  EXPECT_EQ(excerpt("x.y"), "x.y");
  EXPECT_EQ(excerpt("a\x1b[2J\n"), "a\\x1b[2J\\n");
  EXPECT_EQ(excerpt(std::string(60, 'y')), std::string(60, 'y'));
  EXPECT_EQ(excerpt(std::string(61, 'y')), std::string(57, 'y') + "...");
  // Not cut inside of an escape.
  EXPECT_EQ(excerpt(std::string(61, '\n')).size(), 57U * 2 + 3);
}

}  // namespace
}  // namespace hone::HONE_FILE
