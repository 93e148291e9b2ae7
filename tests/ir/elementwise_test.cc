#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone {
namespace {

using testing::expect_eval;
using testing::expect_infer;
using testing::expect_infer_error;

TEST(Binary, AddsReals) {
  expect_eval("add", {"f32[3] 1 2 inf", "f32[3] 4 -2 -inf"}, {"f32[3] 5 0 nan"});
}

TEST(Iota, Counts) {
  expect_eval("iota {dtype = i32, dims = [2, 3], axis = 1}", {}, {"i32[2,3] 0 1 2 0 1 2"});
}

}  // namespace
}  // namespace hone
