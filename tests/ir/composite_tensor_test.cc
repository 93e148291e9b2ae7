#include <gtest/gtest.h>

#include <cmath>

#include "ir/functional.h"
#include "tests/ir/composite_testing.h"

namespace hone::tested::HONE_FILE {
namespace {

// ---- Pools, sums, indices -----------------------------------------------------------------------

TEST(GlobalPool, TakesAllSpatialDims) {
  expect_eval("global_pool", {"f32[1,2,2,2] 1 2 3 4 5 6 7 8"}, {"f32[1,2,1,1] 2.5 6.5"});
  expect_eval("global_pool {kind = max}", {"f32[1,2,3] 1 nan 3 -4 -5 -6"}, {"f32[1,2,1] nan -4"});
  expect_eval("global_pool", {"f32[1,1,0]"}, {"f32[1,1,1] nan"});
  expect_eval("global_pool {kind = max}", {"f32[1,1,0]"}, {"f32[1,1,1] -inf"});
  expect_symbolic("global_pool", {"f32[N, 3, M, 4]"});
  expect_infer_error("global_pool", {"f32[2, 3]"}, "x ... f32[2, 3] ... rank 2 ... rank 3");
}

TEST(Cumsum, RunsAlongItsAxis) {
  expect_eval("cumsum {axis = 1}", {"i32[2,3] 1 2 3 4 5 6"}, {"i32[2,3] 1 3 6 4 9 15"});
  expect_eval("cumsum {axis = -2, reverse = true}", {"f32[2,2] 1 2 3 4"}, {"f32[2,2] 4 6 3 4"});
  expect_eval("cumsum {axis = 0, exclusive = true}", {"f32[3] 1 2 3"}, {"f32[3] 0 1 3"});
  expect_symbolic("cumsum {axis = 1}", {"f32[N, M]"});
  expect_infer_error("cumsum {axis = 2}", {"f32[2,3]"}, "axis 2 is outside rank 2");
}

TEST(OneHot, MarksTheIndex) {
  expect_eval("one_hot {depth = [3]}", {"i64[4] 0 2 -1 3"},
              {"f32[4,3] 1 0 0  0 0 1  0 0 1  0 0 0"});
  expect_eval("one_hot {depth = [3], axis = 0, dtype = i8}", {"i32[2] -3 -4"},
              {"i8[3,2] 1 0 0 0 0 0"});
  expect_eval("one_hot {depth = [2], axis = -2}", {"u8[1,2] 1 255", "f64[2] 5 7"},
              {"f64[1,2,2] 5 5 7 5"});
  // As i64 this index would be -1.
  expect_eval("one_hot {depth = [2], dtype = bool}", {"u64[2] 18446744073709551615 1"},
              {"bool[2,2] false false false true"});
  EXPECT_EQ(run_op("one_hot {depth = [0]}", {tensor_of("i64[2] 0 1")})[0].type(),
            type_of("f32[2, 0]"));
  expect_symbolic("one_hot {depth = [M]}", {"i64[N, 3]"});
  expect_infer_error("one_hot {depth = [2, 3]}", {"i64[2]"}, "depth has 2 entries, want 1");
  expect_infer_error("one_hot {depth = [-1]}", {"i64[2]"}, "depth ... -1 ... 0 or more");
  expect_infer_error("one_hot {depth = [3], axis = 2}", {"i64[2]"}, "axis 2 is outside rank 2");
  expect_infer_error("one_hot {depth = [3]}", {"i64[2]", "f32[3]"},
                     "values is f32[3], want f32[2]");
}

TEST(TopK, SortsAndCuts) {
  auto expect = [](std::string_view op, std::string_view x, std::string_view values,
                   std::string_view indices) {
    const std::vector<Tensor> results = run_op(op, {tensor_of(x)});
    EXPECT_EQ(difference(results[0], tensor_of(values)), "");
    EXPECT_EQ(difference(results[1], tensor_of(indices)), "");
  };
  expect("top_k {k = [2]}", "f32[2,3] 1 3 2 5 5 4", "f32[2,2] 3 2 5 5", "i64[2,2] 1 2 0 1");
  expect("top_k {k = [2], largest = false}", "i32[4] 3 1 2 1", "i32[2] 1 1", "i64[2] 1 3");
  expect("top_k {k = [1], axis = 0}", "f32[2,2] 1 nan inf 2", "f32[1,2] inf nan", "i64[1,2] 1 0");
  expect("top_k {k = [0]}", "f32[2] 1 2", "f32[0]", "i64[0]");
  expect_symbolic("top_k {k = [1]}", {"f32[N, M]"});
  expect_symbolic("top_k {k = [M], axis = 0}", {"f32[M + 3, N]"});
  expect_infer_error("top_k {k = [4]}", {"f32[2,3]"}, "k is 4 ... 0 to 3 ... axis 1");
  expect_infer_error("top_k {k = [2]}", {"f32[M]"}, "k is 2, want 0 to M");
  expect_infer_error("top_k {k = []}", {"f32[3]"}, "k has 0 entries, want 1");
}

// ---- Blocks -------------------------------------------------------------------------------------

Array shuffled(const Array& x, int64_t block, bool crd) {
  const int64_t c = x.dim(1) / (block * block);
  Array y({x.dim(0), c, x.dim(2) * block, x.dim(3) * block});
  for (int64_t n = 0; n < x.dim(0); ++n)
    for (int64_t k = 0; k < c; ++k)
      for (int64_t i = 0; i < y.dim(2); ++i)
        for (int64_t j = 0; j < y.dim(3); ++j) {
          const int64_t at = i % block * block + j % block;
          y(n, k, i, j) = x(n, crd ? k * block * block + at : at * c + k, i / block, j / block);
        }
  return y;
}

TEST(Blocks, DepthToSpaceAndBack) {
  const Array x = Array::random({2, 12, 3, 4}, 1);
  expect_near(run_op("depth_to_space {block = 2}", {x.tensor()})[0], shuffled(x, 2, false));
  expect_near(run_op("depth_to_space {block = 2, mode = crd}", {x.tensor()})[0],
              shuffled(x, 2, true));
  expect_near(run_op("depth_to_space {block = 1}", {x.tensor()})[0], x);
  expect_near(run_op("space_to_depth {block = 2}", {shuffled(x, 2, false).tensor()})[0], x);
  expect_symbolic("depth_to_space {block = 2}", {"f32[N, 8, M, 3]"});
  expect_symbolic("space_to_depth {block = 4}", {"f32[N, M, K, 8]"});
  expect_infer_error("depth_to_space {block = 2}", {"f32[1,6,2,2]"}, "6 channels ... block 2");
  expect_infer_error("depth_to_space {block = 0}", {"f32[1,6,2,2]"}, "block is 0, want 1 or more");
  expect_infer_error("space_to_depth {block = 2}", {"f32[1,6,3,2]"},
                     "height 3 ... width 2 ... block 2");
  expect_infer_error("space_to_depth {block = 2}", {"f32[6,3,2]"}, "of rank 3, want rank 4");
}

// ---- Quantization -------------------------------------------------------------------------------

TEST(Quantize, RoundsHalvesToEvenAndSaturates) {
  expect_eval("quantize", {"f32[6] 1 3 5 -7 1000 nan", "f32[] 2"}, {"u8[6] 0 2 2 0 255 0"});
  expect_eval("quantize {dtype = i8}", {"f32[4] 1 3 -1000 1000", "f32[] 2", "i8[] 10"},
              {"i8[4] 10 12 -128 127"});
  expect_eval("quantize {dtype = i4}", {"f32[3] 1 -9 9", "f32[] 1"}, {"i4[3] 1 -8 7"});
  expect_eval("quantize {axis = 0, dtype = i16}", {"f32[2,2] 1 2 3 4", "f32[2] 1 2", "i16[2] 0 5"},
              {"i16[2,2] 1 2 7 7"});
  expect_eval("quantize {axis = 1, block = 2, dtype = i8}",
              {"f32[1,3] 2 4 6", "f32[1,2] 2 3", "i8[1,2] 0 1"}, {"i8[1,3] 1 2 3"});
  expect_eval("quantize {dtype = f8e4m3fn}", {"f32[3] 1 1000 -1000", "f32[] 2"},
              {"f8e4m3fn[3] 0.5 448 -448"});
  expect_symbolic("quantize", {"f32[N, 3, M]", "f32[3]", "u8[3]"});
  expect_infer_error("quantize", {"f32[2,3]", "f32[2]"}, "scale is f32[2], want f32[3]");
  expect_infer_error("quantize", {"f32[2,3]", "f64[]"}, "scale is f64[], want f32[]");
  expect_infer_error("quantize", {"f32[2,3]", "f32[]", "i8[]"}, "zero_point is i8[], want u8[]");
  expect_infer_error("quantize {dtype = f32}", {"f32[2,3]", "f32[]"}, "cannot quantize to f32");
  expect_infer_error("quantize {block = 2}", {"f32[2,3]", "f32[2,3]"},
                     "scale is f32[2, 3], want f32[2, 2]");
  expect_infer_error("quantize {axis = 2}", {"f32[2,3]", "f32[3]"}, "axis 2 is outside rank 2");
}

TEST(Dequantize, IsExactInsideTheDifference) {
  expect_eval("dequantize", {"u8[3] 0 128 255", "f32[] 0.5", "u8[] 128"}, {"f32[3] -64 0 63.5"});
  expect_eval("dequantize", {"i32[2] 2147483647 -2147483648", "f64[] 1", "i32[] -1"},
              {"f64[2] 2147483648 -2147483647"});
  expect_eval("dequantize {axis = 0}", {"i8[2,2] 1 2 3 4", "f16[2] 1 2"}, {"f16[2,2] 1 2 6 8"});
  expect_eval("dequantize {axis = 0, block = 2}", {"i4[3] 1 2 3", "f32[2] 10 100"},
              {"f32[3] 10 20 300"});
  expect_eval("dequantize", {"f8e5m2[2] 1.5 -inf", "f32[] 2"}, {"f32[2] 3 -inf"});
  expect_symbolic("dequantize", {"u8[N, 3, M]", "f32[3]", "u8[3]"});
  expect_infer_error("dequantize", {"i64[2]", "f32[]"}, "element type i64");
  expect_infer_error("dequantize", {"u8[2]", "i32[]"}, "scale ... i32[] ... real");
  expect_infer_error("dequantize", {"u8[2]", "f32[]", "i8[]"}, "zero_point is i8[], want u8[]");
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
