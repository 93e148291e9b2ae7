#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone::testing {
namespace {

TEST(WindowReduce, CombinesEachWindow) {
  expect_eval("window_reduce {kind = sum, window = [2]}", {"f32[4] 1 2 3 4"}, {"f32[3] 3 5 7"});
  expect_eval("window_reduce {kind = max, window = [2], stride = [2]}", {"f32[5] 1 2 3 4 5"},
              {"f32[2] 2 4"});
  expect_eval("window_reduce {kind = min, window = [2, 2], pad_low = [1, 0]}", {"i32[2,2] 1 2 3 4"},
              {"i32[2,1] 1 1"});
}

}  // namespace
}  // namespace hone::testing
