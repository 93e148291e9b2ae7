#include <gtest/gtest.h>

#include "ir/text.h"
#include "rewrite/passes.h"
#include "rewrite/prepare.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

std::string changed(std::string_view body) {
  const std::string text = fmt::format(
      "graph @g(%x: f32[9, 5], %p: i64[9, 5]) {{ %y, %q = sort %x, %p {{axis = 0}} {} }}", body);
  return print(first_of_sorts(parse_graph(text).value()).value());
}

TEST(FirstOfSorts, SortsWhatSlicesRead) {
  const std::string both = changed(
      "%a = slice %y {start = [0, 0], limit = [2, 5]} "
      "%b = slice %q {start = [0, 1], limit = [3, 4]} return %a, %b");
  EXPECT_THAT(both, says("sort ... first = 3 ... slice ... slice"));
  // A slice of all that is left is gone.
  const std::string one = changed("%a = slice %y {start = [0, 0], limit = [2, 5]} return %a");
  EXPECT_THAT(one, says("sort ... first = 2"));
  EXPECT_EQ(one.find("slice"), std::string::npos) << one;
}

TEST(FirstOfSorts, LeavesSortsWhoseOthersAreRead) {
  for (std::string_view body :
       {"%a = slice %y {start = [1, 0], limit = [2, 5]} return %a",
        "%a = slice %y {start = [0, 0], limit = [4, 5], stride = [2, 1]} return %a",
        "%a = slice %y {start = [0, 0], limit = [9, 2]} return %a",
        "%a = slice %y {start = [0, 0], limit = [2, 5]} return %a, %q",
        "%a = slice %y {start = [0, 0], limit = [2, 5]} %b = neg %y return %a, %b"})
    EXPECT_EQ(changed(body).find("first"), std::string::npos) << body;
}

TEST(FirstOfSorts, PreparesTopK) {
  const Graph graph =
      parse_graph("graph @g(%x: f32[3, 100]) { %y, %i = top_k %x {k = [7]} return %y, %i }")
          .value();
  const Graph once = prepare(graph).value();
  EXPECT_THAT(print(once), says("sort ... first = 7"));
  EXPECT_EQ(print(once).find("slice"), std::string::npos) << print(once);
  EXPECT_EQ(print(prepare(once).value()), print(once));
}

}  // namespace
}  // namespace hone::HONE_FILE
