#include "shard/index_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/text.h"
#include "ir/text.h"
#include "shard/partition.h"
#include "tests/shard/mesh_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::judge_mesh;
using tested::parsed;
using tested::partitioned;

int64_t received(const Partition& made) {
  int64_t bytes = 0;
  for (const ShardMessage& one : made.messages) bytes += one.bytes;
  return bytes;
}

Tensor reals(DType dtype, Dims dims, std::vector<double> some) {
  const Type type = Type::make(dtype, dims).value();
  std::vector<double> all;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    all.push_back(some[static_cast<size_t>(i) % some.size()]);
  return Tensor::from_reals(type, all);
}

// A table of which each device has rows: only rows that are asked for move, and no others.
TEST(IndexRange, GathersFromTheRowsOfDevices) {
  const Graph graph = parsed(
      "graph @g(%t: f32[10, 4] on @m [x, -], %i: i32[3, 1]) -> f32[3, 4] mesh @m = [x = 4] {\n"
      "  %y = gather %t, %i {offset_dims = [1], collapsed_dims = [0], index_map = [0], "
      "index_vector_dim = 1, sizes = [1, 4]} : f32[3, 4]\n"
      "  %z = div 1, %y\n"
      "  return %z\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_TRUE(made.whole.empty());
  EXPECT_EQ(made.graph.input_types()[0].to_string(), "f32[3, 4]");
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  EXPECT_EQ(received(made), 2 * (3 * 4 * 4 / 4 * 3));
  // Indices out of range, and numbers that a sum could spoil: 1 / -0 is -inf.
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  const Tensor table = reals(DType::f32, {10, 4}, {-0.0, 0.0, nan, inf, -inf, 1, 2, 3, 4, 5, 6});
  for (const std::vector<int64_t>& at :
       {std::vector<int64_t>{0, 4, 8}, {-5, 3, 100}, {2, 2, INT32_MIN}, {INT32_MAX, 7, 5}}) {
    const Tensor inputs[] = {table,
                             Tensor::from_integers(Type::make(DType::i32, Dims{3, 1}).value(), at)};
    EXPECT_EQ(judge_mesh(graph, made, inputs), "");
  }
}

TEST(IndexRange, WritesToTheRowsOfDevices) {
  for (const std::string_view combine : {"replace", "add", "min"}) {
    const Graph graph = parsed(fmt::format(
        "graph @g(%t: f32[10, 4] on @m [x, -], %i: i32[3, 1], %u: f32[3, 2, 4]) -> f32[10, 4] "
        "mesh @m = [x = 4] {{\n"
        "  %y = scatter %t, %i, %u {{window_dims = [1, 2], inserted_dims = [], index_map = [0], "
        "index_vector_dim = 1, combine = {}}} : f32[10, 4] on @m [x, -]\n"
        "  return %y\n"
        "}}\n",
        combine));
    const Partition made = partitioned(graph);
    EXPECT_TRUE(made.whole.empty());
    EXPECT_TRUE(made.messages.empty());
    const Tensor table = reals(DType::f32, {10, 4}, {-0.0, 1, 2, 3, 4, 5, 6});
    const Tensor updates = reals(DType::f32, {3, 2, 4}, {7, 8, -9, 10, 11});
    // Windows of two rows over the borders of devices and of the table, and out of reach.
    for (const std::vector<int64_t>& at :
         {std::vector<int64_t>{2, 5, 8}, {-1, 2, 2}, {-2, 9, INT32_MIN}, {INT32_MAX, 7, 5}}) {
      const Tensor inputs[] = {
          table, Tensor::from_integers(Type::make(DType::i32, Dims{3, 1}).value(), at), updates};
      EXPECT_EQ(judge_mesh(graph, made, inputs), "") << combine;
    }
  }
}

// A window that fills its dim may still begin elsewhere: the rest of it is dropped.
TEST(IndexRange, ScattersFullWindowsThatAreMoved) {
  const Graph graph = parsed(
      "graph @g(%t: f32[8, 2] on @m [x, -], %i: i32[1], %u: f32[8, 2]) -> f32[8, 2] "
      "mesh @m = [x = 2] {\n"
      "  %y = scatter %t, %i, %u {window_dims = [0, 1], inserted_dims = [], index_map = [0], "
      "index_vector_dim = 0, combine = add} : f32[8, 2] on @m [x, -]\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  for (const int64_t at : {0, 3, -3, 9}) {
    const Tensor inputs[] = {reals(DType::f32, {8, 2}, {1, 2, 3}),
                             Tensor::from_integers(Type::make(DType::i32, Dims{1}).value(), {{at}}),
                             reals(DType::f32, {8, 2}, {5, 7, 11, 13})};
    EXPECT_EQ(judge_mesh(graph, made, inputs), "") << at;
  }
}

// Each device adds up its own lookups; what they are added to counts once.
TEST(IndexRange, AddsUpLookupsOfDevices) {
  const Graph graph = parsed(
      "graph @g(%t: f32[4, 2], %i: i32[7] on @m [x], %u: f32[7, 2] on @m [x, -]) -> f32[4, 2] "
      "mesh @m = [x = 2] {\n"
      "  %y = scatter %t, %i, %u {window_dims = [1], inserted_dims = [0], index_map = [0], "
      "index_vector_dim = 1, combine = add}\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_TRUE(made.whole.empty());
  ASSERT_EQ(made.messages.size(), 1u);
  EXPECT_EQ(made.messages[0].kind, ReshardKind::all_reduce);
  EXPECT_EQ(judge_mesh(graph, made, 1), "");
}

// Windows within a part, over a border, and longer than a part.
TEST(IndexRange, SlicesAndUpdatesAtPlacesThatAreComputed) {
  for (const int64_t window : {1, 2, 3, 5, 8}) {
    const Graph graph = parsed(fmt::format(
        "graph @g(%x: f32[10, 3] on @m [x y, -], %u: f32[{0}, 2], %a: i32[], %b: u8[]) -> "
        "(f32[{0}, 2], f32[10, 3]) mesh @m = [x = 2, y = 2] {{\n"
        "  %s = dynamic_slice %x, %a, %b {{sizes = [{0}, 2]}} : f32[{0}, 2]\n"
        "  %t = div 1, %s\n"
        "  %v = dynamic_update %x, %u, %a, %b : f32[10, 3] on @m [x y, -]\n"
        "  return %t, %v\n"
        "}}\n",
        window));
    const Partition made = partitioned(graph);
    EXPECT_TRUE(made.whole.empty());
    for (int64_t at = -2; at < 12; ++at) {
      const Tensor inputs[] = {
          reals(DType::f32, {10, 3}, {-0.0, 1, 2, 3, 0.0}),
          reals(DType::f32, {window, 2}, {5, 7, 11, 13}),
          Tensor::from_integers(Type::scalar(DType::i32), {{at}}),
          Tensor::from_integers(Type::scalar(DType::u8), {{at < 0 ? 200 : at}})};
      EXPECT_EQ(judge_mesh(graph, made, inputs), "") << window << " at " << at;
    }
  }
}

// Windows of several rows lie on one device, on two, or on more, and one window may be on top of
// another.
TEST(IndexRange, GathersAndScattersWindowsOfSeveralRows) {
  Rng rng(7);
  for (const int64_t rows : {2, 3, 4, 7, 9}) {
    const Graph graph = parsed(fmt::format(
        "graph @g(%t: f32[10, 3] on @m [x, -], %i: i32[4, 2], %u: f32[4, {0}, 2]) -> "
        "(f32[4, {0}, 2], f32[10, 3], f32[10, 3]) mesh @m = [x = 4] {{\n"
        "  %g = gather %t, %i {{offset_dims = [1, 2], collapsed_dims = [], index_map = [0, 1], "
        "index_vector_dim = 1, sizes = [{0}, 2]}} : f32[4, {0}, 2]\n"
        "  %h = div 1, %g\n"
        "  %a = scatter %t, %i, %u {{window_dims = [1, 2], inserted_dims = [], index_map = [0, 1], "
        "index_vector_dim = 1, combine = add}} : f32[10, 3] on @m [x, -]\n"
        "  %r = scatter %t, %i, %u {{window_dims = [1, 2], inserted_dims = [], index_map = [0, 1], "
        "index_vector_dim = 1}} : f32[10, 3] on @m [x, -]\n"
        "  return %h, %a, %r\n"
        "}}\n",
        rows));
    const Partition made = partitioned(graph);
    EXPECT_TRUE(made.whole.empty()) << made.whole[0].node << made.whole[0].reason;
    for (const ShardMessage& one : made.messages) EXPECT_EQ(one.kind, ReshardKind::all_reduce);
    for (int trial = 0; trial < 8; ++trial) {
      std::vector<int64_t> at;
      for (int k = 0; k < 8; ++k) at.push_back(rng.between(-3, 12));
      const Tensor inputs[] = {
          reals(DType::f32, {10, 3}, {-0.0, 1, 2, 3, 0.0, 5, 6}),
          Tensor::from_integers(Type::make(DType::i32, Dims{4, 2}).value(), at),
          reals(DType::f32, {4, rows, 2}, {5, 7, 11, 13, 17, 19})};
      EXPECT_EQ(judge_mesh(graph, made, inputs), "") << rows << print(made.graph);
    }
  }
}

// All dims of an index are divided at once, and counted in 64 bits without a sign.
TEST(IndexRange, DividesSeveralDimsOfAnIndex) {
  const Graph graph = parsed(
      "graph @g(%t: i8[5, 4, 2] on @m [x, y, -], %i: u64[2, 6]) -> i8[2, 6]\n"
      "    mesh @m = [x = 2, y = 2] {\n"
      "  %p = slice %i {start = [0, 0], limit = [2, 6]}\n"
      "  %y = gather %t, %p {offset_dims = [0], collapsed_dims = [0, 1], index_map = [1, 0], "
      "index_vector_dim = 0, sizes = [1, 1, 2]}\n"
      "  return %y\n"
      "}\n");
  const Partition made = partitioned(graph);
  EXPECT_TRUE(made.whole.empty());
  const std::vector<int64_t> at = {0, 1, 2, 3, -1, 7, 4, 3, 2, -1, 0, 9};
  const Tensor inputs[] = {Tensor::from_integers(Type::make(DType::i8, Dims{5, 4, 2}).value(),
                                                 std::vector<int64_t>(40, 3)),
                           Tensor::from_integers(Type::make(DType::u64, Dims{2, 6}).value(), at)};
  EXPECT_EQ(judge_mesh(graph, made, inputs), "");
  EXPECT_EQ(judge_mesh(graph, made, 3), "");
}

}  // namespace
}  // namespace hone::HONE_FILE
