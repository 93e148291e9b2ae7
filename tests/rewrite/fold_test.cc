#include <gtest/gtest.h>

#include "ir/functional.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

TEST(FoldConstants, EvaluatesWhatDependsOnConstantsAlone) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {3});
  Value c = b.scalar(DType::f32, 2) * 3.0 + 1.0;
  Graph g = fold_constants(b.finish({x * c}).value()).value();
  // x, the folded and broadcast 7, mul
  ASSERT_EQ(g.node_count(), 3u);
  NodeId mul = g.producer(g.outputs()[0]);
  const Tensor& seven = g.constant(g.producer(g.operands(mul)[1]));
  EXPECT_EQ(seven.type(), Type::get(DType::f32, {3}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(seven.real_at(i), 7);
}

TEST(FoldConstants, FoldsEveryResultAndComposites) {
  Builder b;
  const float data[] = {3, 1, 2};
  Value c = b.constant(Tensor::of<float>(Type::get(DType::f32, {3}), data));
  Value keys[] = {c};
  Value sorted = sort(keys, 0, false)[0];
  Graph g = fold_constants(b.finish({sorted, relu(-c)}).value()).value();
  ASSERT_EQ(g.node_count(), 2u);
  const Tensor& result = g.constant(g.producer(g.outputs()[0]));
  EXPECT_EQ(result.real_at(0), 1);
  EXPECT_EQ(result.real_at(2), 3);
}

TEST(FoldConstants, LeavesLargeExpansionsOfSmallConstants) {
  Builder b;
  Graph g = b.finish({b.full(DType::f32, {1024, 1024}, 1)}).value();
  EXPECT_EQ(fold_constants(g).value().node_count(), 2u);
}

TEST(FoldConstants, LeavesLongComputationsToTheProgram) {
  Builder b;
  Value w = b.constant(Tensor::zeros(Type::get(DType::f32, {1024, 1024})));
  Value ones = b.constant(Tensor::zeros(Type::get(DType::f32, {100})));
  Value start[] = {b.scalar(DType::f32, 0)}, scanned[] = {ones};
  auto nested = [&](Builder&, std::span<const Value> outer) {
    Value state[] = {outer[0]}, inner_scanned[] = {broadcast_to(outer[1], {100})};
    auto add = [](Builder&, std::span<const Value> v) { return std::vector{v[0] + v[1]}; };
    return std::vector{scan(state, inner_scanned, add)[0]};
  };
  Graph g = b.finish({matmul(w, w), scan(start, scanned, nested)[0]}).value();
  EXPECT_EQ(fold_constants(g).value().node_count(), g.node_count());
}

TEST(FoldConstants, LeavesFieldsOfBlocksWhereTheyLie) {
  const auto slices_left = [](DType dtype, Dims dims) {
    Builder b;
    const Value blocks = b.constant(Tensor::zeros(Type::get(dtype, dims)));
    const Graph graph =
        b.finish({b.parameter("x", DType::f32, {}) + 1.0, slice(blocks, -1, 2, 18)}).value();
    int slices = 0;
    const Graph folded = fold_constants(graph).value();
    for (NodeId n : folded.nodes()) slices += folded.opcode(n) == Opcode::slice ? 1 : 0;
    return slices;
  };
  EXPECT_EQ(slices_left(DType::u8, {512, 16, 18}), 1);
  EXPECT_EQ(slices_left(DType::u8, {8, 16, 18}), 0) << "small ones";
  EXPECT_EQ(slices_left(DType::i8, {512, 16, 18}), 0) << "other numbers";
  EXPECT_EQ(slices_left(DType::u8, {512 * 16, 18}), 0) << "rows that are no blocks";
}

TEST(UnshareSources, GivesEachReaderItsSmallTable) {
  const auto tables_with = [](int64_t size) {
    Builder b;
    const Value x = b.parameter("x", DType::u8, {4, size});
    const Value table = iota(b, DType::u8, {size}, 0) * 2;
    const Graph graph = b.finish({x + table, binary(Opcode::xor_, x, table)}).value();
    const Graph apart = unshare_sources(graph).value();
    int tables = 0;
    for (NodeId n : apart.nodes()) tables += apart.opcode(n) == Opcode::mul ? 1 : 0;
    return tables;
  };
  EXPECT_EQ(tables_with(8), 2);
  EXPECT_EQ(tables_with(128), 1) << "large ones are computed once";
}

TEST(RunPasses, ReportsEveryPassInOrder) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {3});
  exp(x);
  Graph g = b.finish({x + (b.scalar(DType::f32, 1) + 1.0)}).value();
  std::vector<std::string> seen;
  PassOptions options;
  options.observer = [&](const PassReport& report, const Graph&) {
    seen.push_back(fmt::format("{}:{}", report.name, report.changed));
  };
  ASSERT_TRUE(run_passes(g, parse_passes("dce, fold,cse").value(), options).ok());
  EXPECT_EQ(seen, (std::vector<std::string>{"dce:true", "fold:true", "cse:false"}));

  Result<std::vector<Pass>> unknown = parse_passes("dce,flod");
  EXPECT_EQ(unknown.error().what(), "there is no pass 'flod'");
  EXPECT_EQ(unknown.error().code(), ErrorCode::usage);
}

}  // namespace
}  // namespace hone::HONE_FILE
