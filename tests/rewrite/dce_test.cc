#include <gtest/gtest.h>

#include "ir/functional.h"
#include "rewrite/passes.h"

namespace hone::HONE_FILE {
namespace {

TEST(RemoveDeadCode, KeepsParametersAndWhatOutputsNeed) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  b.parameter("unused", DType::f32, {4});
  exp(sqrt(x));
  Value y = tanh(x).named("y");
  Graph g = remove_dead_code(b.finish({y}).value()).value();
  EXPECT_EQ(g.node_count(), 3u);
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.name(g.outputs()[0]), "y");
}

TEST(RemoveDeadCode, WorksInsideRegions) {
  Builder b;
  Value p = b.parameter("p", DType::boolean, {});
  Value x = b.parameter("x", DType::f32, {4});
  Value args[] = {x};
  auto body = [](Builder&, std::span<const Value> v) {
    exp(v[0]);
    return std::vector{v[0] + v[0]};
  };
  Graph g = b.finish({if_else(p, args, body, body)[0]}).value();
  Graph clean = remove_dead_code(g).value();
  EXPECT_EQ(clean.regions(clean.producer(clean.outputs()[0]))[0]->node_count(), 2u);
}

TEST(RemoveDeadCode, KeepsCollectives) {
  Builder b;
  Value x = b.parameter("x", DType::f32, {4});
  b.op(Opcode::all_reduce, {x}, {{"kind", "sum"}, {"group_size", int64_t{2}}});
  Graph g = b.finish({x}).value();
  EXPECT_EQ(remove_dead_code(g).value().node_count(), 2u);
}

}  // namespace
}  // namespace hone::HONE_FILE
