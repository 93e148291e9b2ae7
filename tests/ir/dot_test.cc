#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone::testing {
namespace {

TEST(Dot, MultipliesMatrices) {
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}",
              {"f32[2,3] 1 2 3 4 5 6", "f32[3,2] 1 2 3 4 5 6"}, {"f32[2,2] 22 28 49 64"});
  expect_eval("dot {lhs_contract = [0], rhs_contract = [1]}",
              {"f32[2,3] 1 2 3 4 5 6", "f32[1,2] 10 1"}, {"f32[3,1] 14 25 36"});
  expect_eval("dot {lhs_contract = [0], rhs_contract = [0]}", {"f32[3] 1 2 3", "f32[3] 4 5 6"},
              {"f32[] 32"});
  expect_eval("dot {lhs_contract = [], rhs_contract = []}", {"f32[2] 1 2", "f32[3] 4 5 6"},
              {"f32[2,3] 4 5 6 8 10 12"});
  expect_eval("dot {lhs_batch = [1], rhs_batch = [0], lhs_contract = [0], rhs_contract = [1]}",
              {"i32[2,3] 1 2 3 4 5 6", "i32[3,2] 1 10 2 20 3 30"}, {"i32[3] 41 104 189"});
  expect_eval("dot {lhs_contract = [0, 1], rhs_contract = [1, 0]}",
              {"f32[2,2] 1 2 3 4", "f32[2,2] 1 10 100 1000"}, {"f32[] 4231"});
  expect_eval("dot {lhs_contract = [], rhs_contract = []}", {"f32[] 3", "f32[] 4"}, {"f32[] 12"});
}

TEST(Dot, OfNothingIsZero) {
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[2,0]", "f32[0,2]"},
              {"f32[2,2] 0"});
  expect_eval("dot {lhs_contract = [1], rhs_contract = [0]}", {"f32[0,2]", "f32[2,3] 1"},
              {"f32[0,3]"});
}

}  // namespace
}  // namespace hone::testing
