#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/ir/dense_testing.h"
#include "tests/ir/op_testing.h"

namespace hone::tested::HONE_FILE {
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

TEST(Sort, GivesTheFirstElementsAlone) {
  expect_eval("sort {axis = 0, first = 2}", {"f32[4] 3 1 2 0", "i8[4] 0 1 2 3"},
              {"f32[2] 0 1", "i8[2] 3 1"});
  expect_eval("sort {axis = 1, first = 1, descending = true}", {"i32[2,3] 3 1 2 6 5 4"},
              {"i32[2,1] 3 6"});
  expect_eval("sort {axis = 0, first = 1}", {"f32[2,3] 3 1 6 2 5 4"}, {"f32[1,3] 2 1 4"});
  expect_eval("sort {axis = 0, first = 3}", {"f32[3] 3 1 2"}, {"f32[3] 1 2 3"});
  expect_infer_error("sort {axis = 0, first = 4}", {"f32[3]"}, "first is 4 ... 3 ... axis 0");
  expect_infer_error("sort {axis = 0, first = -1}", {"f32[3]"}, "first is -1");
  expect_infer_error("sort {axis = 0, first = 2}", {"f32[N]"}, "first is 2 ... N");
}

TEST(Sort, TakesAnOperandAtLeast) {
  expect_infer_error("sort {axis = 0}", {}, "at least one operand");
  expect_infer_error("sort {axis = 0, keys = 2}", {"f32[3]"}, "keys is 2 ... [1, 1]");
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

TEST(Sort, EqualsInsertion) {
  Rng rng(1);
  for (int trial = 0; trial < 100; ++trial) {
    const Ints dims = {rng.between(1, 3), rng.between(1, 6), rng.between(1, 3)};
    const int64_t axis = rng.between(0, 2);
    const bool descending = rng.chance(0.5);
    Type type = type_with(DType::f32, dims);
    std::vector<Tensor> operands = {small_integers(type, rng), small_integers(type, rng),
                                    uniform_reals(type, rng)};
    Op op = Op::get(Opcode::sort, {{"axis", axis}, {"descending", descending}, {"keys", 2}});
    std::vector<std::vector<double>> lists;
    for (const Tensor& t : operands) lists.push_back(numbers_of<double>(t));
    for_each_index(dims, [&](Ints index) {
      if (index[at(axis)] != 0) return;
      auto place = [&](int64_t i) {
        index[at(axis)] = i;
        return offset_of(index, dims);
      };
      auto comes_before = [&](size_t a, size_t b) {
        for (size_t k = 0; k < 2; ++k) {
          if (lists[k][a] != lists[k][b]) return (lists[k][a] < lists[k][b]) != descending;
        }
        return false;
      };
      for (int64_t end = 1; end < dims[at(axis)]; ++end) {
        for (int64_t i = end; i > 0 && comes_before(place(i), place(i - 1)); --i) {
          for (std::vector<double>& list : lists) std::swap(list[place(i)], list[place(i - 1)]);
        }
      }
    });
    std::vector<Tensor> results = *evaluate_op(op, operands);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(numbers_of<double>(results[i]), lists[i]);
  }
}

TEST(Sort, DependsOnAllKeysOfItsLine) {
  std::vector<Tensor> operands = {tensor_of("i32[2,2] 2 1 3 4"), tensor_of("f32[2,2] 5 6 7 8")};
  Graph graph = *graph_of(op_of("sort {axis = 1}"), {type_of("i32[2,2]"), type_of("f32[2,2]")});
  std::vector<ElementDependencies> traced = *trace_dependencies(graph, operands);
  EXPECT_EQ(traced[0][0], (std::vector<InputElement>{{0, 0}, {0, 1}}));
  EXPECT_EQ(traced[1][0], (std::vector<InputElement>{{0, 0}, {0, 1}, {1, 1}}));
  EXPECT_EQ(traced[1][3], (std::vector<InputElement>{{0, 2}, {0, 3}, {1, 3}}));
}

TEST(Sort, OfFieldElementsNeedsIntegerKeys) {
  Graph by_reals = *graph_of(op_of("sort {axis = 0}"), {type_of("f32[2]")});
  std::vector<FieldInput> reals = {{{1, 2}, {}}};
  EXPECT_EQ(evaluate_in_field(by_reals, reals).error().code(), ErrorCode::unsupported);
  Graph by_integers = *graph_of(op_of("sort {axis = 0}"), {type_of("i8[2]"), type_of("f32[2]")});
  std::vector<FieldInput> both = {{{}, tensor_of("i8[2] 1 0")}, {{10, 20}, {}}};
  EXPECT_EQ((*evaluate_in_field(by_integers, both))[1], (std::vector<uint64_t>{20, 10}));
}

TEST(Sort, RejectsIllTypedApplications) {
  expect_infer_error("sort {axis = 1}", {"f32[2]"}, "axis 1 is outside rank 1");
  expect_infer_error("sort {axis = -1}", {"f32[2]"}, "axis -1 is outside rank 1");
  expect_infer_error("sort {axis = 0}", {"f32[]"}, "axis 0 is outside rank 0");
  expect_infer_error("sort {axis = 0, keys = 0}", {"f32[2]"}, "keys ... 0 ... operands");
  expect_infer_error("sort {axis = 0, keys = 3}", {"f32[2]", "f32[2]"}, "keys ... 3 ... operands");
  expect_infer_error("sort {axis = 0}", {"f32[2]", "f32[3]"},
                     "operands 0 and 1 ... f32[2] ... f32[3]");
  expect_infer_error("sort {axis = 0}", {"f32[N]", "f32[M]"}, "which are not equal");
  expect_infer_error("sort {axis = 0, keys = 2}", {"f32[2]", "i4[2]"}, "key 1 ... i4 ... order");
  expect_infer_error("sort {axis = 0}", {"u4[2]"}, "element type u4");
  expect_infer("sort {axis = 0}", {"f32[N, 3]", "i4[N, 3]"}, {"f32[N, 3]", "i4[N, 3]"});
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
