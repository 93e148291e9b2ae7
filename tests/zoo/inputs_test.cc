#include "zoo/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ir/functional.h"

namespace hone::HONE_FILE {
namespace {

int64_t largest(const Tensor& tensor) {
  int64_t result = tensor.integer_at(0);
  for (int64_t i = 1; i < tensor.elements(); ++i) result = std::max(result, tensor.integer_at(i));
  return result;
}
int64_t smallest(const Tensor& tensor) {
  int64_t result = tensor.integer_at(0);
  for (int64_t i = 1; i < tensor.elements(); ++i) result = std::min(result, tensor.integer_at(i));
  return result;
}

TEST(RandomInputs, StayWithinWhatTheyIndex) {
  Builder b;
  Value table = b.parameter("table", DType::f32, {50, 4});
  Value small_table = b.parameter("small_table", DType::f32, {7, 4});
  Value ids = b.parameter("ids", DType::i32, {1000});
  Value shared = b.parameter("shared", DType::i64, {1000});
  Value flags = b.parameter("flags", DType::i64, {1000});
  Value seen_through = cast(reshape(ids, {10, 100}), DType::i64);
  Graph graph = *b.finish(
      {take(table, seen_through), take(table, shared), take(small_table, shared), flags + 1});
  std::vector<Tensor> inputs = *random_inputs(graph, 1);
  EXPECT_EQ(largest(inputs[2]), 49);  // a thousand draws of 50 miss one with probability 1e-7
  EXPECT_EQ(smallest(inputs[2]), 0);
  EXPECT_EQ(largest(inputs[3]), 6);
  EXPECT_EQ(largest(inputs[4]), 1);
}

TEST(RandomInputs, LeaveRoomForTheWindowThatTheyPlace) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {10, 6});
  Value rows = b.parameter("rows", DType::f32, {7, 6});
  Value at = b.parameter("at", DType::i64, {});
  Value zero = b.scalar(DType::i64, 0);
  Graph graph = *b.finish({b.op(Opcode::dynamic_update, {x, rows, at, zero})});
  std::vector<bool> seen(10);
  for (uint64_t seed = 0; seed < 100; ++seed)
    seen[static_cast<size_t>(random_inputs(graph, seed)->at(2).integer_at(0))] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 4);  // 0, 1, 2, 3
  EXPECT_TRUE(seen[3]);
}

TEST(RandomInputs, RealsAreNormal) {
  Builder b;
  Value x = b.parameter("x", DType::f64, {10000});
  Tensor input = random_inputs(*b.finish({x + 1}), 1)->at(0);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < input.elements(); ++i) {
    sum += input.real_at(i);
    squares += input.real_at(i) * input.real_at(i);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.1);
}

TEST(RandomInputs, DependOnTheSeed) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {100});
  Value y = b.parameter("y", DType::f32, {100});
  Graph graph = *b.finish({x + y});
  std::vector<Tensor> first = *random_inputs(graph, 1);
  EXPECT_TRUE(first[0].same_bytes(random_inputs(graph, 1)->at(0)));
  EXPECT_FALSE(first[0].same_bytes(random_inputs(graph, 2)->at(0)));
  EXPECT_FALSE(first[0].same_bytes(first[1]));
}

TEST(RandomInputs, SymbolsAreBoundAsAskedOrSmall) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {Symbol::get("N", 0, 64, 4), Symbol::get("M", 3, 9)});
  Graph graph = *b.finish({x + 1});
  EXPECT_EQ(random_inputs(graph, 1)->at(0).type(), Type::get(DType::f32, {4, 3}));
  EXPECT_EQ(random_inputs(graph, 1, {{"N", 8}})->at(0).type(), Type::get(DType::f32, {8, 3}));
  EXPECT_FALSE(random_inputs(graph, 1, {{"N", 6}}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
