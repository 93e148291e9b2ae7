#include "tests/base/says_testing.h"

#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

using tested::has_parts;
using tested::refuses;
using tested::says;
using testing::Not;

TEST(Says, PartsFollowEachOther) {
  EXPECT_TRUE(has_parts("2:7: there is no op 'foo'", "2:7: ... op 'foo'"));
  EXPECT_TRUE(has_parts("axis 4 is outside rank 3", "axis 4 ... rank 3"));
  EXPECT_FALSE(has_parts("axis 4 is outside rank 3", "rank 3 ... axis 4"));
  EXPECT_FALSE(has_parts("3 devices", "3 devices ... 3"));
}

TEST(Says, PartsAreWholeWords) {
  EXPECT_FALSE(has_parts("axis 14 is outside rank 3", "axis 4"));
  EXPECT_FALSE(has_parts("12:7: no", "2:7:"));
  EXPECT_FALSE(has_parts("operand_1", "operand"));
  EXPECT_TRUE(has_parts("112:7 and 2:7: no", "2:7:"));
  EXPECT_TRUE(has_parts("f32[2, 3]", "f32[2, 3]"));
}

TEST(Says, APatternWithoutPartsIsInNoText) {
  for (std::string_view pattern : {"", "...", " ...  ... "})
    EXPECT_FALSE(has_parts("anything", pattern)) << pattern;
}

TEST(Says, ReadsThePlaceOfAnErrorBeforeItsMessage) {
  const Error error =
      bad_input("there is no op '{}'", "foo").at("g.hone:2:7").with_hint("did you mean 'for'?");
  EXPECT_THAT(error, says("g.hone:2:7 ... 'foo' ... 'for'"));
  EXPECT_THAT(error, refuses(ErrorCode::bad_input, "op 'foo'"));
  EXPECT_THAT(error, Not(refuses(ErrorCode::limit, "op 'foo'")));
}

TEST(Says, ASuccessSaysNothing) {
  EXPECT_THAT(Status(), Not(says("a")));
  EXPECT_THAT(Result<int>(1), Not(says("1")));
  EXPECT_THAT(Result<int>(over_limit("1 is too many")), refuses(ErrorCode::limit, "1"));
}

}  // namespace
}  // namespace hone::HONE_FILE
