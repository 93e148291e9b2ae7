#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/says_testing.h"
#include "tests/ir/evaluate_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

using tested::expect_infer;
using tested::expect_infer_error;
using tested::run_spmd;
using tested::Texts;
using ::testing::HasSubstr;

// One op on one operand per device.
std::string collective(std::string_view op, const Texts& inputs, const Texts& wanted) {
  std::string type = inputs[0].substr(0, inputs[0].find(']') + 1);
  std::string graph = fmt::format("graph @g(%x: {}) {{ %y = {} return %y }}", type, op);
  graph.replace(graph.find("$"), 1, "%x");
  std::vector<Texts> rows;
  std::vector<Texts> results;
  for (const std::string& text : inputs) rows.push_back({text});
  for (const std::string& text : wanted) results.push_back({text});
  return run_spmd(graph, rows, results);
}

TEST(Collective, DeviceIndex) {
  EXPECT_EQ(run_spmd("graph @g() { %d = device_index return %d }", {{}, {}, {}},
                     {{"i64[] 0"}, {"i64[] 1"}, {"i64[] 2"}}),
            "");
}

TEST(Collective, AllReduceOfTwo) {
  Texts x = {"f32[3] 1 -2 nan", "f32[3] 5 3 1"};
  auto twice = [](std::string text) { return Texts{text, text}; };
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 2}", x, twice("f32[3] 6 1 nan")),
            "");
  EXPECT_EQ(
      collective("all_reduce $ {kind = product, group_size = 2}", x, twice("f32[3] 5 -6 nan")), "");
  EXPECT_EQ(collective("all_reduce $ {kind = max, group_size = 2}", x, twice("f32[3] 5 3 nan")),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = min, group_size = 2}", x, twice("f32[3] 1 -2 nan")),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 1}", x, x), "");
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 2}", {"u8[1] 200", "u8[1] 100"},
                       twice("u8[1] 44")),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = and, group_size = 2}", {"bool[2] 1 1", "bool[2] 0 1"},
                       twice("bool[2] 0 1")),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = or, group_size = 2}", {"i8[1] 12", "i8[1] -128"},
                       twice("i8[1] -116")),
            "");
}

TEST(Collective, AllReduceOfFourInGroups) {
  Texts x = {"i32[1] 1", "i32[1] 10", "i32[1] 100", "i32[1] 1000"};
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 4}", x,
                       {"i32[1] 1111", "i32[1] 1111", "i32[1] 1111", "i32[1] 1111"}),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 2}", x,
                       {"i32[1] 11", "i32[1] 11", "i32[1] 1100", "i32[1] 1100"}),
            "");
  EXPECT_EQ(collective("all_reduce $ {kind = sum, group_size = 2, groups = [0, 2, 3, 1]}", x,
                       {"i32[1] 101", "i32[1] 1010", "i32[1] 101", "i32[1] 1010"}),
            "");
}

TEST(Collective, AllGather) {
  Texts x = {"i32[2,1] 1 2", "i32[2,1] 3 4"};
  EXPECT_EQ(collective("all_gather $ {axis = 0, group_size = 2}", x,
                       {"i32[4,1] 1 2 3 4", "i32[4,1] 1 2 3 4"}),
            "");
  EXPECT_EQ(collective("all_gather $ {axis = 1, group_size = 2}", x,
                       {"i32[2,2] 1 3 2 4", "i32[2,2] 1 3 2 4"}),
            "");
  // The order of the group decides.
  EXPECT_EQ(collective("all_gather $ {axis = 1, group_size = 2, groups = [1, 0]}", x,
                       {"i32[2,2] 3 1 4 2", "i32[2,2] 3 1 4 2"}),
            "");
  EXPECT_EQ(collective("all_gather $ {axis = 0, group_size = 2, groups = [0, 2, 1, 3]}",
                       {"u4[1] 0", "u4[1] 1", "u4[1] 2", "u4[1] 3"},
                       {"u4[2] 0 2", "u4[2] 1 3", "u4[2] 0 2", "u4[2] 1 3"}),
            "");
}

TEST(Collective, ReduceScatter) {
  Texts x = {"f32[2,2] 1 2 3 4", "f32[2,2] 10 20 30 40"};
  EXPECT_EQ(collective("reduce_scatter $ {kind = sum, axis = 0, group_size = 2}", x,
                       {"f32[1,2] 11 22", "f32[1,2] 33 44"}),
            "");
  EXPECT_EQ(collective("reduce_scatter $ {kind = sum, axis = 1, group_size = 2}", x,
                       {"f32[2,1] 11 33", "f32[2,1] 22 44"}),
            "");
  EXPECT_EQ(collective("reduce_scatter $ {kind = max, axis = 1, group_size = 2, groups = [1, 0]}",
                       x, {"f32[2,1] 20 40", "f32[2,1] 10 30"}),
            "");
}

TEST(Collective, AllToAll) {
  Texts x = {"i32[2,2] 1 2 3 4", "i32[2,2] 5 6 7 8"};
  // Device 0 gets the first rows [1 2], [5 6]; device 1 the second rows.
  EXPECT_EQ(collective("all_to_all $ {split_axis = 0, concat_axis = 0, group_size = 2}", x,
                       {"i32[2,2] 1 2 5 6", "i32[2,2] 3 4 7 8"}),
            "");
  EXPECT_EQ(collective("all_to_all $ {split_axis = 0, concat_axis = 1, group_size = 2}", x,
                       {"i32[1,4] 1 2 5 6", "i32[1,4] 3 4 7 8"}),
            "");
  // Columns [1; 3], [5; 7] stacked.
  EXPECT_EQ(collective("all_to_all $ {split_axis = 1, concat_axis = 0, group_size = 2}", x,
                       {"i32[4,1] 1 3 5 7", "i32[4,1] 2 4 6 8"}),
            "");
  EXPECT_EQ(
      collective("all_to_all $ {split_axis = 0, concat_axis = 0, group_size = 4}",
                 {"i8[4] 0 1 2 3", "i8[4] 10 11 12 13", "i8[4] 20 21 22 23", "i8[4] 30 31 32 33"},
                 {"i8[4] 0 10 20 30", "i8[4] 1 11 21 31", "i8[4] 2 12 22 32", "i8[4] 3 13 23 33"}),
      "");
}

TEST(Collective, Permute) {
  Texts x = {"f32[2] 1 2", "f32[2] 3 4", "f32[2] 5 6", "f32[2] 7 8"};
  EXPECT_EQ(collective("permute $ {pairs = [0, 1, 1, 2, 2, 3, 3, 0]}", x,
                       {"f32[2] 7 8", "f32[2] 1 2", "f32[2] 3 4", "f32[2] 5 6"}),
            "");
  EXPECT_EQ(collective("permute $ {pairs = [0, 3, 1, 1]}", x,
                       {"f32[2] 0 0", "f32[2] 3 4", "f32[2] 0 0", "f32[2] 1 2"}),
            "");
  EXPECT_EQ(collective("permute $ {pairs = [0, 1], group_size = 2}", x,
                       {"f32[2] 0 0", "f32[2] 1 2", "f32[2] 0 0", "f32[2] 5 6"}),
            "");
  EXPECT_EQ(collective("permute $ {pairs = [0, 1, 1, 0], group_size = 2, groups = [0, 2, 1, 3]}", x,
                       {"f32[2] 5 6", "f32[2] 7 8", "f32[2] 1 2", "f32[2] 3 4"}),
            "");
}

TEST(Collective, DevicesMustFitTheGroups) {
  Texts x = {"f32[] 1", "f32[] 2", "f32[] 3"};
  EXPECT_THAT(collective("all_reduce $ {kind = sum, group_size = 2}", x, {}),
              says("3 devices ... groups of 2"));
  EXPECT_THAT(collective("all_reduce $ {kind = sum, group_size = 2, groups = [0, 1]}", x, {}),
              says("device 2 ... group"));
  EXPECT_THAT(collective("all_reduce $ {kind = sum, group_size = 2, groups = [0, 1, 2, 3]}", x, {}),
              says("device 3 ... 3"));
  EXPECT_THAT(collective("permute $ {pairs = [0, 7]}", x, {}),
              HasSubstr("device 7 does not exist"));
}

TEST(Collective, Inference) {
  expect_infer("all_gather {axis = 0, group_size = 4}", {"f32[N, 3]"}, {"f32[4*N, 3]"});
  expect_infer("reduce_scatter {kind = sum, axis = 0, group_size = 4}", {"f32[K, 3]"},
               {"f32[K/4, 3]"});
  expect_infer("all_to_all {split_axis = 0, concat_axis = 1, group_size = 2}", {"f32[K, M]"},
               {"f32[K/2, 2*M]"});
  expect_infer("all_to_all {split_axis = 0, concat_axis = 0, group_size = 4}", {"f32[K]"},
               {"f32[K]"});
  expect_infer("permute {pairs = []}", {"f8e5m2[N]"}, {"f8e5m2[N]"});

  expect_infer_error("all_reduce {kind = sum, group_size = 0}", {"f32[]"}, "group_size is 0");
  expect_infer_error("all_reduce {kind = sum, group_size = 2, groups = [0, 1, 2]}", {"f32[]"},
                     "3 devices ... groups of 2");
  expect_infer_error("all_reduce {kind = sum, group_size = 2, groups = [0, 0]}", {"f32[]"},
                     "groups ... device 0 ... twice");
  expect_infer_error("all_reduce {kind = sum, group_size = 2, groups = [0, -1]}", {"f32[]"},
                     "the device -1");
  expect_infer_error("all_reduce {kind = and, group_size = 2}", {"f32[]"},
                     "cannot combine f32 by and");
  expect_infer_error("all_reduce {kind = sum, group_size = 2}", {"bool[]"},
                     "cannot combine bool by sum");
  expect_infer_error("all_gather {axis = 1, group_size = 2}", {"f32[3]"},
                     "axis 1 is outside rank 1");
  expect_infer_error("reduce_scatter {kind = sum, axis = 0, group_size = 2}", {"f32[3]"},
                     "dim 0 ... f32[3] ... 2 ... parts");
  expect_infer_error("reduce_scatter {kind = sum, axis = 0, group_size = 2}", {"f32[N]"},
                     "does not divide");
  expect_infer_error("all_to_all {split_axis = 2, concat_axis = 0, group_size = 2}", {"f32[2,2]"},
                     "split_axis 2 is outside rank 2");
  expect_infer_error("permute {pairs = [0, 1, 2]}", {"f32[]"}, "3 entries, an odd number");
  expect_infer_error("permute {pairs = [0, 1, 0, 2]}", {"f32[]"}, "sources ... device 0 ... twice");
  expect_infer_error("permute {pairs = [0, 1, 2, 1]}", {"f32[]"}, "targets ... device 1 ... twice");
  expect_infer_error("permute {pairs = [0, 2], group_size = 2}", {"f32[]"}, "member 2 ... of 2");
  expect_infer_error("permute {pairs = [0, 1], group_size = 1}", {"f32[]"}, "groups of 1");
  expect_infer_error("permute {pairs = [0, 1], groups = [0, 1]}", {"f32[]"}, "groups of 0");
}

}  // namespace
}  // namespace hone::HONE_FILE
