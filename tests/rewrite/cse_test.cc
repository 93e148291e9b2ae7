#include <gtest/gtest.h>

#include "ir/barrier.h"
#include "ir/functional.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

TEST(MergeCommonSubexpressions, MergesChainsAndConstants) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  Value a = tanh(exp(x) + 1.0);
  Value c = tanh(exp(x) + 1.0);
  Graph g = merge_common_subexpressions(b.finish({a * c}).value()).value();
  // x, exp, 1, broadcast, add, tanh, mul
  EXPECT_EQ(g.node_count(), 7u);
  EXPECT_TRUE(verify(g).ok());
}

TEST(MergeCommonSubexpressions, KeepsWhatDiffers) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  Value y = b.parameter("y", DType::f32, {4});
  Graph g = b.finish({x - y, y - x, reduce_sum(x, {0}), reduce_max(x, {0}),
                      b.constant(Tensor::scalar(DType::f32, 1)),
                      b.constant(Tensor::scalar(DType::f32, 2)),
                      b.constant(Tensor::scalar(DType::i32, 1))})
                .value();
  EXPECT_EQ(merge_common_subexpressions(g).value().node_count(), g.node_count());
}

TEST(MergeCommonSubexpressions, DoesNotForceLazyWeights) {
  Builder b;
  auto lazy = [&](uint64_t identity) {
    return b.constant(Tensor::lazy(Type::get(DType::f32, {4}), identity,
                                   [](std::span<std::byte>) { FAIL() << "generated"; }));
  };
  Graph g = b.finish({lazy(1) + lazy(1), lazy(2) + lazy(1)}).value();
  // two weights, two sums
  EXPECT_EQ(merge_common_subexpressions(g).value().node_count(), 4u);
}

TEST(MergeCommonSubexpressions, KeepsApartWhatABarrierParts) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  Value first = exp(x);
  Value again = exp(b.ops(barrier_op(1), std::vector{x})[0]);
  Graph g = b.finish({first, again}).value();
  // x, exp, transpose, exp
  EXPECT_EQ(merge_common_subexpressions(g).value().node_count(), 4u);
}

TEST(MergeCommonSubexpressions, KeepsCollectivesApart) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  auto sum = [&] {
    return b.op(Opcode::all_reduce, {x}, {{"kind", "sum"}, {"group_size", int64_t{2}}});
  };
  Graph g = b.finish({sum(), sum()}).value();
  EXPECT_EQ(merge_common_subexpressions(g).value().node_count(), 3u);
}

}  // namespace
}  // namespace hone::HONE_FILE
