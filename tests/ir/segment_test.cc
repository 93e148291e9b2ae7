#include <gtest/gtest.h>

#include "ir/access.h"
#include "ir/functional.h"
#include "ir/op_def.h"
#include "tests/ir/op_testing.h"

// segment_reduce, gather_rows.

namespace hone::tested::HONE_FILE {
namespace {

TEST(SegmentReduceTest, CombinesTheRowsBetweenOffsets) {
  expect_eval("segment_reduce {kind = sum}", {"f32[4,2] 1 10 2 20 3 30 4 40", "i32[4] 0 2 2 4"},
              {"f32[3,2] 3 30 0 0 7 70"});
  expect_eval("segment_reduce {kind = max}", {"f32[4] 1 5 3 nan", "i64[3] 0 3 4"},
              {"f32[2] 5 nan"});
  expect_eval("segment_reduce {kind = min}", {"i8[3] 5 -7 3", "u8[3] 0 1 3"}, {"i8[2] 5 -7"});
  expect_eval("segment_reduce {kind = sum}", {"i8[2] 100 100", "i32[2] 0 2"}, {"i8[1] -56"});
}

TEST(SegmentReduceTest, GivesTheIdentityOfEmptySegments) {
  expect_eval("segment_reduce {kind = max}", {"f32[1] 1", "i32[3] 0 0 1"}, {"f32[2] -inf 1"});
  expect_eval("segment_reduce {kind = min}", {"f32[1] 1", "i32[2] 1 1"}, {"f32[1] inf"});
  expect_eval("segment_reduce {kind = max}", {"i8[0] 0", "i32[2] 0 9"}, {"i8[1] -128"});
  expect_eval("segment_reduce {kind = sum}", {"f32[2] 1 2", "i32[1] 0"}, {"f32[0] 0"});
}

TEST(SegmentReduceTest, ClampsOffsets) {
  expect_eval("segment_reduce {kind = sum}", {"f32[3] 1 2 4", "i32[3] -5 2 99"}, {"f32[2] 3 4"});
  expect_eval("segment_reduce {kind = sum}", {"f32[3] 1 2 4", "u64[2] 1 18446744073709551615"},
              {"f32[1] 6"});
  // Where they decrease, segments overlap or are empty.
  expect_eval("segment_reduce {kind = sum}", {"f32[3] 1 2 4", "i32[4] 0 2 1 3"}, {"f32[3] 3 0 6"});
}

TEST(SegmentReduceTest, ReadsNoSegments) {
  expect_eval("segment_reduce {kind = sum}", {"f32[2] 1 2", "i32[2] 0 2", "i32[2] 7 -7"},
              {"f32[1] 3"});
}

TEST(SegmentReduceTest, Inference) {
  expect_infer("segment_reduce {kind = sum}", {"f32[M, 4]", "i32[N + 1]"}, {"f32[N, 4]"});
  expect_infer("segment_reduce {kind = sum}", {"f16[M]", "i64[3]", "u8[M]"}, {"f16[2]"});
  expect_infer_error("segment_reduce {kind = sum}", {"f32[]", "i32[2]"}, "rows ... f32[]");
  expect_infer_error("segment_reduce {kind = sum}", {"f32[2]", "f32[2]"},
                     "offsets ... f32[2] ... vector of integers");
  expect_infer_error("segment_reduce {kind = sum}", {"f32[2]", "i32[0]"}, "0 offsets ... segments");
  expect_infer_error("segment_reduce {kind = sum}", {"f32[2]", "i32[2]", "i32[3]"},
                     "3 segments for 2 rows");
  expect_infer_error("segment_reduce {kind = sum}", {"f32[2]", "i32[2]", "i32[2,1]"},
                     "segments ... i32[2, 1] ... vector of integers");
}

// Data divides the rows among the segments: each is combined once, not once for each segment.
TEST(SegmentReduceTest, CountsEachRowOnce) {
  const Type operands[] = {Type::get(DType::f32, {600, 8}), Type::get(DType::i32, {101})};
  const Application sum = {Op::get(Opcode::segment_reduce, {{"kind", std::string("sum")}}),
                           operands};
  const std::vector<Type> results = infer(sum).value();
  EXPECT_EQ(flops(sum, results), 600 * 8);
  EXPECT_EQ(bytes(sum, results), 4 * (600 * 8 + 101 + 100 * 8));
  const AccessRelation relation = access_of(sum, results);
  EXPECT_EQ(mean_trips(relation.dims, 2), 6);
  const std::vector<Region> regions =
      needed_regions(relation, operands, 0, Region{{{3, 4}, {1, 2}}});
  EXPECT_EQ(regions[0], (Region{{{0, 599}, {1, 2}}}));
  EXPECT_EQ(regions[1], (Region{{{3, 5}}}));
}

TEST(GatherRowsTest, GivesZeroOutside) {
  expect_eval("gather_rows", {"f32[2,2] 1 2 3 4", "i32[4] 1 -1 0 2", "i32[3] 0 0 0"},
              {"f32[4,2] 3 4 0 0 1 2 0 0"});
  expect_eval("gather_rows", {"i8[2] 1 2", "u64[2] 18446744073709551615 1", "u8[3] 0 0 0"},
              {"i8[2] 0 2"});
}

TEST(GatherRowsTest, Inference) {
  expect_infer("gather_rows", {"f32[N, 4]", "i32[M]", "i32[N + 1]", "i64[M]"}, {"f32[M, 4]"});
  expect_infer_error("gather_rows", {"f32[2]", "i32[3]", "i32[2]"}, "offsets");
  expect_infer_error("gather_rows", {"f32[2]", "i32[3]", "i32[3]", "i32[2]"}, "order");
  expect_infer_error("gather_rows", {"f32[2]", "f32[3]", "i32[3]"}, "indices");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
