#include "base/text_table.h"

#include "base/error.h"

#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

TEST(TextTable, AlignsColumnsAndEndsLinesWithoutBlanks) {
  TextTable table("lrl", {"kernel", "time", "note"});
  table.add_row({"k0", "12.3 ms", ""});
  table.add_row({"k1", "1.2 ms", "direct"});
  table.add_rule();
  table.add_row({"all", "13.5 ms", ""});
  EXPECT_EQ(table.to_string("  "),
            "  kernel     time  note\n"
            "  k0      12.3 ms\n"
            "  k1       1.2 ms  direct\n"
            "  ------  -------  ------\n"
            "  all     13.5 ms\n");
}

TEST(TextTable, TitlesAreOptional) {
  TextTable table("rl");
  EXPECT_TRUE(table.empty());
  EXPECT_EQ(table.to_string(), "");
  table.add_row({"1", "a"});
  table.add_row({"10", "b"});
  EXPECT_EQ(table.to_string(), " 1  a\n10  b\n");
}

TEST(TextTable, WidthIsInCodePoints) {
  TextTable table("lr");
  table.add_row({"\xc2\xb5s", "1"});
  table.add_row({"ms", "2"});
  EXPECT_EQ(table.to_string(), "\xc2\xb5s  1\nms  2\n");
}

TEST(TextTable, ARowThatDoesNotFitIsABug) {
  TextTable table("ll");
  EXPECT_THROW(table.add_row({"one"}), InternalError);
  EXPECT_THROW(TextTable("lc"), InternalError);
  EXPECT_THROW(TextTable("ll", {"one"}), InternalError);
}

}  // namespace
}  // namespace hone::HONE_FILE
