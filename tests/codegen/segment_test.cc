#include <gtest/gtest.h>

#include "ir/text.h"
#include "tests/codegen/native.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/generator.h"

// Loops whose trips are data, as code.

namespace hone::HONE_FILE {
namespace {

// Messages of edges with weights, summed for each node: no offset and no source leads outside.
TEST(NativeSegments, StayInsideForAnyOffsets) {
  const KernelBody body = body_of_all(
      parse_graph("graph @m(%x: f32[5, 20], %sources: i64[8], %offsets: i64[7], %w: f32[8])"
                  " -> f32[6, 20] {\n"
                  "  %h = gather %x, %sources {offset_dims = [1], collapsed_dims = [0],"
                  " index_map = [0], index_vector_dim = 1, sizes = [1, 20]}\n"
                  "  %b = broadcast %w {dims = [8, 20], map = [0]}\n"
                  "  %m = mul %h, %b\n"
                  "  %s = segment_reduce %m, %offsets {kind = sum}\n"
                  "  %y = max %s, 0\n"
                  "  return %y\n"
                  "}\n")
          .value());
  Rng rng(1);
  const auto integers = [](const std::vector<int64_t>& numbers) {
    return Tensor::from_integers(Type::get(DType::i64, {std::ssize(numbers)}), numbers);
  };
  const Tensor x = random_tensor(Type::get(DType::f32, {5, 20}), rng);
  const Tensor w = random_tensor(Type::get(DType::f32, {8}), rng);
  const Tensor sources = integers({3, -2, 4, INT64_MAX, 99, 0, INT64_MIN, 2});
  Schedule schedule = plain_nest(2);
  schedule.threads = 1;
  schedule.lanes = {{1, 16}};
  const TileProgram program = build_kernel(body, schedule, "k").value();
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, 0, 3, 4, 4, 7, 8},
        {8, 7, 6, 5, 4, 3, 2},
        {INT64_MIN, 5, 2, INT64_MAX, 0, INT64_MAX, INT64_MIN}}) {
    const Tensor inputs[] = {x, sources, w, integers(offsets)};
    const std::vector<Tensor> expected =
        evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value();
    for (const Target& target : host_targets())
      for (int64_t parts : {1, 3}) {
        const Result<std::vector<Tensor>> actual = run_native(program, inputs, target, parts);
        ASSERT_TRUE(actual.ok()) << actual.error().to_string();
        expect_close(*actual, expected);
        EXPECT_TRUE((*actual)[0].same_bytes(run_native(program, inputs, target).value()[0]));
      }
  }
}

// Lanes that take different trips have no code.
TEST(NativeSegments, RefuseDifferentTripsSideBySide) {
  const TileProgram program = parse_tiles(
                                  "tiles @k(@o: i32[4]) -> (@y: i32[4]) {\n"
                                  "  for once in 1 {\n"
                                  "    lanes i in 4 {\n"
                                  "      %0 = load @o[i]\n"
                                  "      index s in 0..4 = %0\n"
                                  "      %1 = number 0: i32\n"
                                  "      %2 = for r in 4 from 0 to s carry (%3 = %1 by add) {\n"
                                  "        %4 = position r: i32\n"
                                  "        %5 = add %3, %4\n"
                                  "        yield %5\n"
                                  "      }\n"
                                  "      store @y[i] = %2\n"
                                  "    }\n"
                                  "  }\n"
                                  "}\n")
                                  .value();
  const Result<std::string> object = compile_tiles(program, host_targets()[0], "kernel");
  ASSERT_FALSE(object.ok());
  EXPECT_NE(object.error().to_string().find("different trips"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
