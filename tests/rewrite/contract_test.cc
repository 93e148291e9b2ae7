#include "rewrite/contract.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

Tensor random_numbers(Type type, std::mt19937& random) {
  std::vector<int64_t> numbers(static_cast<size_t>(type.static_elements()));
  for (int64_t& number : numbers) number = static_cast<int64_t>(random() % 199) - 99;
  return Tensor::from_integers(type, numbers);
}

int64_t transposes(const Graph& graph) {
  int64_t count = 0;
  for (NodeId n : graph.nodes()) count += graph.opcode(n) == Opcode::transpose ? 1 : 0;
  return count;
}

Graph with_weights(Tensor weights, bool is_read_elsewhere, int64_t rows = 4) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {rows, 8});
  const Value turned = transpose(b.constant(std::move(weights)), {1, 0});
  const Value y = matmul(x, turned);
  return b.finish(is_read_elsewhere ? std::vector{y, exp(turned)} : std::vector{y}).value();
}

TEST(ContractAsTheyLie, TiedWeightsAreReadFromWhereTheyAre) {
  std::mt19937 random(1);
  const Tensor weights = random_numbers(Type::get(DType::f32, {300, 8}), random);
  const Graph graph = fold_constants(with_weights(weights, false)).value();
  EXPECT_EQ(transposes(graph), 0);
  const NodeId dot = graph.producer(graph.outputs()[0]);
  EXPECT_EQ(graph.op(dot).ints("rhs_contract"), Ints{1});
  // The very bytes, not a copy of them.
  const Tensor& read = graph.constant(graph.producer(graph.operands(dot)[1]));
  EXPECT_EQ(read.bytes().data(), weights.bytes().data());
}

TEST(ContractAsTheyLie, WhatOthersNeedTransposedIsTransposed) {
  std::mt19937 random(2);
  const Tensor weights = random_numbers(Type::get(DType::f32, {300, 8}), random);
  EXPECT_FALSE(has_transposed_weights(with_weights(weights, true)));
  EXPECT_TRUE(has_transposed_weights(with_weights(weights, false)));
  EXPECT_FALSE(has_transposed_weights(with_weights(weights, false, 1)));
}

TEST(ContractAsTheyLie, ReshapedWeightsAreNotCopied) {
  const Tensor weights = Tensor::zeros(Type::get(DType::f32, {6, 8}));
  Builder b;
  const Value x = b.parameter("x", DType::f32, {12, 4});
  const Graph graph =
      fold_constants(b.finish({x + reshape(b.constant(weights), {12, 4})}).value()).value();
  const NodeId add = graph.producer(graph.outputs()[0]);
  const Tensor& read = graph.constant(graph.producer(graph.operands(add)[1]));
  EXPECT_EQ(read.type(), Type::get(DType::f32, {12, 4}));
  EXPECT_EQ(read.bytes().data(), weights.bytes().data());
}

// Either operand, any permutation, batch dims: integers, so that sums are exact.
TEST(ContractAsTheyLie, RandomDotsComputeTheSame) {
  std::mt19937 random(3);
  int changed = 0, kept = 0;
  for (int i = 0; i < 400; ++i) {
    const size_t rank = 2 + random() % 3;
    Ints order(rank), permutation(rank);
    std::iota(order.begin(), order.end(), 0);
    permutation = order;
    std::ranges::shuffle(order, random);
    std::ranges::shuffle(permutation, random);
    const size_t batches = random() % 2, contracted = 1 + random() % (rank - batches);
    Dims dims(rank), lying(rank);
    for (Dim& dim : dims) dim = static_cast<int64_t>(1 + random() % 4);
    for (size_t d = 0; d < rank; ++d) lying[static_cast<size_t>(permutation[d])] = dims[d];
    const Ints batch(order.begin(), order.begin() + static_cast<int64_t>(batches));
    const Ints contract(order.begin() + static_cast<int64_t>(batches),
                        order.begin() + static_cast<int64_t>(batches + contracted));
    Dims other;
    Ints other_batch, other_contract;
    for (int64_t dim : batch)
      other_batch.push_back(std::ssize(other)), other.push_back(dims[static_cast<size_t>(dim)]);
    for (int64_t dim : contract)
      other_contract.push_back(std::ssize(other)), other.push_back(dims[static_cast<size_t>(dim)]);
    other.push_back(5);
    Builder b;
    const Value x = b.parameter("x", DType::i32, other);
    const Value w =
        transpose(b.constant(random_numbers(Type::get(DType::i32, lying), random)), permutation);
    const bool is_left = random() % 2 == 0;
    const Value y = is_left ? dot_general(w, x, batch, other_batch, contract, other_contract)
                            : dot_general(x, w, other_batch, batch, other_contract, contract);
    const Graph graph = b.finish({y}).value();
    if (transposes(graph) == 0) continue;  // the order is the same
    ++(has_transposed_weights(graph) ? changed : kept);
    const Graph after = contract_weights_as_they_lie(graph).value();
    EXPECT_EQ(transposes(after), has_transposed_weights(graph) ? 0 : 1);
    const Tensor inputs[] = {random_numbers(graph.input_types()[0], random)};
    ASSERT_TRUE(evaluate(after, inputs).value()[0].same_bytes(evaluate(graph, inputs).value()[0]));
  }
  EXPECT_GT(changed, 100);
  EXPECT_GT(kept, 20);
}

}  // namespace
}  // namespace hone::HONE_FILE
