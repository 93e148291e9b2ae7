#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone::testing {
namespace {

TEST(Conv, SlidesTheKernelOverTheInput) {
  expect_eval("conv", {"f32[1,1,4] 1 2 3 4", "f32[1,1,2] 10 1"}, {"f32[1,1,3] 12 23 34"});
  expect_eval("conv {pad_low = [1], pad_high = [2]}", {"f32[1,1,3] 1 2 3", "f32[1,1,2] 10 1"},
              {"f32[1,1,5] 1 12 23 30 0"});
  expect_eval("conv {stride = [2], kernel_dilation = [2]}",
              {"f32[1,1,6] 1 2 3 4 5 6", "f32[1,1,2] 10 1"}, {"f32[1,1,2] 13 35"});
  expect_eval("conv {input_dilation = [2]}", {"f32[1,1,3] 1 2 3", "f32[1,1,2] 10 1"},
              {"f32[1,1,4] 10 2 20 3"});
  expect_eval("conv {order = \"b0f_0io->b0f\", pad_low = [-1]}",
              {"f32[1,3,1] 1 2 3", "f32[2,1,1] 10 1"}, {"f32[1,1,1] 23"});
  expect_eval("conv {groups = 2}", {"f32[1,2,2] 1 2 3 4", "f32[2,1,1] 10 100"},
              {"f32[1,2,2] 10 20 300 400"});
  expect_eval("conv", {"f32[2,2] 1 2 3 4", "f32[3,2] 1 0 0 1 1 1"}, {"f32[2,3] 1 2 3 3 4 7"});
}

}  // namespace
}  // namespace hone::testing
