#include "session/echo.h"

#include <gtest/gtest.h>

namespace hone::HONE_FILE {
namespace {

TEST(NameList, NamesFive) {
  std::vector<std::string> names = {"a", "b", "c", "d", "e"};
  EXPECT_EQ(name_list(names), "a, b, c, d, e");
  names.insert(names.end(), {"f", "g"});
  EXPECT_EQ(name_list(names), "a, b, c, d, e and 2 more");
}

TEST(FileStems, ArePlainAndDifferent) {
  const std::vector<std::string> names = {"a/b", "a b", "a_b",    "A_B",  "..",
                                          "",    "-x",  "x\x1by", "a_b_1"};
  EXPECT_EQ(file_stems(names), (std::vector<std::string>{"a.b", "a_b", "a_b_1", "A_B_2", "_..", "_",
                                                         "_-x", "x_y", "a_b_1_1"}));
  EXPECT_EQ(file_stems(std::vector{std::string(5000, 'n')})[0].size(), 200U);
}

}  // namespace
}  // namespace hone::HONE_FILE
