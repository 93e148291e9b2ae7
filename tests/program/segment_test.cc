#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/facts.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/generator.h"

// Kernels that go over segments: loops whose trips are data.

namespace hone::HONE_FILE {
namespace {

using testing::HasSubstr;

KernelBody body_of_text(std::string_view text) { return body_of_all(parse_graph(text).value()); }

struct Loops {
  std::vector<int> order;
  int threads = 0;
  std::vector<Tile> lanes = {}, unroll = {};
  int row = 0;
};
Schedule nest(const Loops& loops) {
  Schedule schedule = plain_nest(static_cast<int>(loops.order.size()));
  schedule.order = loops.order;
  schedule.threads = loops.threads;
  schedule.lanes = loops.lanes;
  schedule.unroll = loops.unroll;
  schedule.get<NestFields>().row = loops.row;
  return schedule;
}

Tensor integers(const std::vector<int64_t>& numbers) {
  return Tensor::from_integers(Type::get(DType::i32, {std::ssize(numbers)}), numbers);
}

constexpr std::string_view kMessages =
    "graph @m(%x: f32[5, 20], %sources: i32[8], %offsets: i32[7], %w: f32[8]) -> f32[6, 20] {\n"
    "  %h = gather %x, %sources {offset_dims = [1], collapsed_dims = [0], index_map = [0],\n"
    "      index_vector_dim = 1, sizes = [1, 20]}\n"
    "  %b = broadcast %w {dims = [8, 20], map = [0]}\n"
    "  %m = mul %h, %b\n"
    "  %s = segment_reduce %m, %offsets {kind = sum}\n"
    "  %y = max %s, 0\n"
    "  return %y\n"
    "}\n";

std::vector<Tensor> inputs_of(const std::vector<int64_t>& offsets) {
  Rng rng(1);
  return {random_tensor(Type::get(DType::f32, {5, 20}), rng), integers({3, -2, 4, 4, 99, 0, 1, 2}),
          random_tensor(Type::get(DType::f32, {8}), rng), integers(offsets)};
}

TEST(Segments, AreFusedWithWhatSurroundsThem) {
  const KernelBody body = body_of_text(kMessages);
  const Loops all[] = {{.order = {0, 1}},
                       {.order = {1, 0}, .threads = 2},
                       {.order = {0, 1}, .threads = 1, .lanes = {{1, 16}}},
                       {.order = {0, 1}, .threads = 1, .lanes = {{1, 4}}, .unroll = {{1, 5}}},
                       {.order = {0, 1}, .lanes = {{1, 8}}, .row = 1}};
  for (const Loops& loops : all)
    for (const std::vector<int64_t>& offsets :
         {std::vector<int64_t>{0, 0, 3, 4, 4, 7, 8}, {-9, 5, 2, 2147483647, 0, 8, -2147483648}})
      check_kernel(body, nest(loops), inputs_of(offsets));
}

// The features of edges have no memory: they are computed where they are summed.
TEST(Segments, HaveALoopOverDataAroundNoMemory) {
  const KernelBody body = body_of_text(kMessages);
  const Result<TileProgram> program =
      build_kernel(body, nest({.order = {0, 1}, .lanes = {{1, 4}}}), "k");
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->buffers.size(), 5);
  EXPECT_THAT(print(*program), HasSubstr("for r0 in 8 from s to s_2 carry"));
}

TEST(Segments, OfDifferentLengthsDoNotRunSideBySide) {
  const KernelBody body = body_of_text(kMessages);
  const KernelFacts facts(body);
  EXPECT_EQ(facts.divided, 1U);
  EXPECT_FALSE(facts.contraction.ok());
  const Loops all[] = {{.order = {0, 1}, .lanes = {{0, 2}}}, {.order = {0, 1}, .unroll = {{0, 2}}}};
  for (const Loops& loops : all) {
    const Status status = check_schedule(body, nest(loops), Target{});
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().to_string(), HasSubstr("segments of different lengths"));
  }
}

// A kernel that reduces over segments takes them one by one, too.
TEST(Segments, CanBeReducedOver) {
  const KernelBody body = body_of_text(
      "graph @m(%x: f32[9, 6], %offsets: i32[5]) -> f32[6] {\n"
      "  %s = segment_reduce %x, %offsets {kind = max}\n"
      "  %y = reduce %s {kind = sum, axes = [0]}\n"
      "  return %y\n"
      "}\n");
  Rng rng(2);
  const std::vector<Tensor> inputs = {random_tensor(Type::get(DType::f32, {9, 6}), rng),
                                      integers({0, 2, 3, 8, 9})};
  check_kernel(body, nest({.order = {0}, .lanes = {{0, 4}}}), inputs);
  const Loops all[] = {{.order = {0}, .lanes = {{1, 4}}},
                       {.order = {0}, .unroll = {{1, 2}}},
                       {.order = {0}, .lanes = {{0, 4}}, .row = 1}};
  for (const Loops& loops : all) EXPECT_FALSE(check_schedule(body, nest(loops), Target{}).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
