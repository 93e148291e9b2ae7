#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

namespace hone::testing {
namespace {

TEST(Sort, OrdersLinesAlongTheAxis) {
  expect_eval("sort {axis = 0}", {"f32[4] 3 1 2 0"}, {"f32[4] 0 1 2 3"});
  expect_eval("sort {axis = 0, descending = true}", {"i32[4] 3 -1 2 0"}, {"i32[4] 3 2 0 -1"});
  expect_eval("sort {axis = 1}", {"f32[2,3] 3 1 2 6 5 4"}, {"f32[2,3] 1 2 3 4 5 6"});
  expect_eval("sort {axis = 0}", {"f32[2,3] 3 1 6 2 5 4"}, {"f32[2,3] 2 1 4 3 5 6"});
  expect_eval("sort {axis = 1}", {"u8[2,2,2] 7 8 5 6 1 2 3 4"}, {"u8[2,2,2] 5 6 7 8 1 2 3 4"});
  expect_eval("sort {axis = 0}", {"bool[3] true false true"}, {"bool[3] false true true"});
  expect_eval("sort {axis = 0}", {"f32[0]"}, {"f32[0]"});
  expect_eval("sort {axis = 1}", {"f32[0,3]"}, {"f32[0,3]"});
  expect_eval("sort {axis = 0}", {"f32[1] 5"}, {"f32[1] 5"});
}

TEST(Sort, PutsNaNLastOrFirst) {
  expect_eval("sort {axis = 0}", {"f32[5] nan 1 inf -inf 0"}, {"f32[5] -inf 0 1 inf nan"});
  expect_eval("sort {axis = 0, descending = true}", {"f32[5] 1 nan inf -inf 0"},
              {"f32[5] nan inf 1 0 -inf"});
}

TEST(Sort, IsStable) {
  expect_eval("sort {axis = 0}", {"f32[5] 1 0 1 0 1", "i64[5] 0 1 2 3 4"},
              {"f32[5] 0 0 1 1 1", "i64[5] 1 3 0 2 4"});
  expect_eval("sort {axis = 0, descending = true}", {"f32[5] 1 0 1 0 1", "i64[5] 0 1 2 3 4"},
              {"f32[5] 1 1 1 0 0", "i64[5] 0 2 4 1 3"});
  expect_eval("sort {axis = 0}", {"f32[4] nan nan -1 nan", "i64[4] 0 1 2 3"},
              {"f32[4] -1 nan nan nan", "i64[4] 2 0 1 3"});
  // The two zeros are equal, so they stay as they are.
  expect_eval("sort {axis = 0}", {"f32[4] +0 -0 +0 -0"}, {"f32[4] +0 -0 +0 -0"});
}

TEST(Sort, ComparesSeveralKeysInTurn) {
  expect_eval("sort {axis = 0, keys = 2}",
              {"i32[4] 1 0 1 0", "f32[4] 2 nan 1 3", "bool[4] true false false true"},
              {"i32[4] 0 0 1 1", "f32[4] 3 nan 1 2", "bool[4] true false false true"});
  expect_eval("sort {axis = 0, keys = 2, descending = true}", {"i32[4] 1 0 1 0", "f32[4] 2 4 1 3"},
              {"i32[4] 1 1 0 0", "f32[4] 2 1 4 3"});
}

TEST(Sort, ComparesUnsignedIntegersAboveTheSignedRange) {
  expect_eval("sort {axis = 0}", {"u64[3] 18446744073709551615 1 9223372036854775808"},
              {"u64[3] 1 9223372036854775808 18446744073709551615"});
  expect_eval("sort {axis = 0}", {"i64[3] 9223372036854775807 -9223372036854775808 0"},
              {"i64[3] -9223372036854775808 0 9223372036854775807"});
}

TEST(Sort, CarriesStorageOnlyValues) {
  expect_eval("sort {axis = 0}", {"i32[3] 3 1 2", "i4[3] -8 7 0"},
              {"i32[3] 1 2 3", "i4[3] 7 0 -8"});
}

TEST(Sort, RejectsIllTypedApplications) {
  expect_infer_error("sort {axis = 1}", {"f32[2]"}, "axis 1 is outside rank 1");
  expect_infer_error("sort {axis = -1}", {"f32[2]"}, "axis -1 is outside rank 1");
  expect_infer_error("sort {axis = 0}", {"f32[]"}, "axis 0 is outside rank 0");
  expect_infer_error("sort {axis = 0, keys = 0}", {"f32[2]"},
                     "keys is 0, outside [1, 1], the number of operands");
  expect_infer_error("sort {axis = 0, keys = 3}", {"f32[2]", "f32[2]"},
                     "keys is 3, outside [1, 2], the number of operands");
  expect_infer_error("sort {axis = 0}", {"f32[2]", "f32[3]"},
                     "operands 0 and 1 have dims of f32[2] and f32[3], which are not equal");
  expect_infer_error("sort {axis = 0}", {"f32[N]", "f32[M]"}, "which are not equal");
  expect_infer_error("sort {axis = 0, keys = 2}", {"f32[2]", "i4[2]"},
                     "key 1 has element type i4, which has no order");
  expect_infer_error("sort {axis = 0}", {"u4[2]"}, "element type u4");
  expect_infer("sort {axis = 0}", {"f32[N, 3]", "i4[N, 3]"}, {"f32[N, 3]", "i4[N, 3]"});
}

}  // namespace
}  // namespace hone::testing
