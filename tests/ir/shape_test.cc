#include <gtest/gtest.h>

#include "tests/ir/op_testing.h"

// broadcast, reshape, transpose, slice, pad, concat, reverse.

namespace hone::tested::HONE_FILE {
namespace {

TEST(BroadcastTest, RepeatsNewDimsAndDimsOfSizeOne) {
  expect_eval("broadcast {dims = [2, 3], map = [1]}", {"f32[3] 1 2 3"}, {"f32[2,3] 1 2 3 1 2 3"});
  expect_eval("broadcast {dims = [2, 3], map = [0]}", {"i8[2] 1 -2"}, {"i8[2,3] 1 1 1 -2 -2 -2"});
  expect_eval("broadcast {dims = [2, 3], map = [0, 1]}", {"f32[2,1] 5 7"},
              {"f32[2,3] 5 5 5 7 7 7"});
  expect_eval("broadcast {dims = [2, 2], map = []}", {"bool[] true"}, {"bool[2,2] true"});
  expect_eval("broadcast {dims = [2, 1, 2], map = [0, 2]}", {"u4[1,2] 3 15"},
              {"u4[2,1,2] 3 15 3 15"});
  expect_eval("broadcast {dims = [], map = []}", {"f16[] 2.5"}, {"f16[] 2.5"});
}

TEST(BroadcastTest, NothingAndToNothing) {
  expect_infer("broadcast {dims = [0, 3], map = [1]}", {"f32[3]"}, {"f32[0,3]"});
  expect_eval("broadcast {dims = [0, 2], map = [0, 1]}", {"f32[1,2] 1 2"}, {"f32[0,2] 0"});
}

TEST(BroadcastTest, SymbolicDims) {
  expect_infer("broadcast {dims = [N, M], map = [1]}", {"f32[M]"}, {"f32[N,M]"});
  expect_infer("broadcast {dims = [2*N, 4], map = [0, 1]}", {"f32[N + N, 1]"}, {"f32[2*N,4]"});
  expect_infer_error("broadcast {dims = [N], map = [0]}", {"f32[M]"},
                     "operand dim 0 ... M ... result dim 0 ... N or 1");
}

TEST(BroadcastTest, Errors) {
  expect_infer_error("broadcast {dims = [2, 3], map = [1]}", {"f32[2]"},
                     "broadcast ... operand dim 0 ... 2 ... result dim 1 ... 3 or 1");
  expect_infer_error("broadcast {dims = [2, 3], map = []}", {"f32[2]"},
                     "map has 0 entries for rank 1");
  expect_infer_error("broadcast {dims = [2, 3], map = [2]}", {"f32[2]"}, "map 2 is outside rank 2");
  expect_infer_error("broadcast {dims = [3, 3], map = [1, 0]}", {"f32[3,3]"}, "map ... order");
  expect_infer_error("broadcast {dims = [3, 3], map = [1, 1]}", {"f32[3,3]"},
                     "map names axis 1 twice");
}

TEST(ReshapeTest, KeepsRowMajorOrder) {
  expect_eval("reshape {dims = [3, 2]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[3,2] 1 2 3 4 5 6"});
  expect_eval("reshape {dims = []}", {"i64[1,1] 7"}, {"i64[] 7"});
  expect_eval("reshape {dims = [1, 2, 1]}", {"i4[2] -8 7"}, {"i4[1,2,1] -8 7"});
  expect_eval("reshape {dims = [3, 0]}", {"f32[0,2] 0"}, {"f32[3,0] 0"});
}

TEST(ReshapeTest, SymbolicDims) {
  expect_infer("reshape {dims = [2*N, 3]}", {"f32[N, 6]"}, {"f32[2*N,3]"});
  expect_infer("reshape {dims = [N*M]}", {"f32[M, N]"}, {"f32[N*M]"});
  expect_infer("reshape {dims = [K/4, 4]}", {"f32[K]"}, {"f32[K/4,4]"});
  expect_infer_error("reshape {dims = [N/4, 4]}", {"f32[N]"}, "f32[N] has N elements");
}

TEST(ReshapeTest, Errors) {
  expect_infer_error("reshape {dims = [4]}", {"f32[2,3]"},
                     "reshape: f32[2, 3] has 6 elements, f32[4] has 4");
  expect_infer_error("reshape {dims = [-2, -3]}", {"f32[2,3]"}, "-2");
}

TEST(TransposeTest, Permutes) {
  expect_eval("transpose {permutation = [1, 0]}", {"f32[2,3] 1 2 3 4 5 6"},
              {"f32[3,2] 1 4 2 5 3 6"});
  // result[i, j, k] = x[k, i, j]
  expect_eval("transpose {permutation = [1, 2, 0]}", {"i32[2,1,3] 1 2 3 4 5 6"},
              {"i32[1,3,2] 1 4 2 5 3 6"});
  expect_eval("transpose {permutation = []}", {"bool[] true"}, {"bool[] true"});
  expect_eval("transpose {permutation = [1, 0]}", {"f32[0,3] 0"}, {"f32[3,0] 0"});
  expect_infer("transpose {permutation = [1, 0]}", {"bf16[N, M]"}, {"bf16[M,N]"});
}

TEST(TransposeTest, Errors) {
  expect_infer_error("transpose {permutation = [0]}", {"f32[2,3]"},
                     "permutation has 1 entries for rank 2");
  expect_infer_error("transpose {permutation = [0, 0]}", {"f32[2,3]"},
                     "permutation names axis 0 twice");
  expect_infer_error("transpose {permutation = [0, 2]}", {"f32[2,3]"},
                     "permutation 2 is outside rank 2");
  expect_infer_error("transpose {permutation = [0, -1]}", {"f32[2,3]"},
                     "permutation -1 is outside rank 2");
}

TEST(SliceTest, TakesEveryStridethElement) {
  expect_eval("slice {start = [1], limit = [4]}", {"f32[5] 0 1 2 3 4"}, {"f32[3] 1 2 3"});
  expect_eval("slice {start = [1], limit = [4], stride = [2]}", {"f32[5] 0 1 2 3 4"},
              {"f32[2] 1 3"});
  expect_eval("slice {start = [0, 1], limit = [3, 4], stride = [2, 3]}",
              {"i32[3,4] 0 1 2 3 10 11 12 13 20 21 22 23"}, {"i32[2,1] 1 21"});
  expect_eval("slice {start = [2], limit = [2]}", {"f32[2] 1 2"}, {"f32[0] 0"});
  expect_eval("slice {start = [0], limit = [0]}", {"f32[0] 0"}, {"f32[0] 0"});
  expect_eval("slice {start = [], limit = []}", {"f32[] 3"}, {"f32[] 3"});
}

TEST(SliceTest, SymbolicDims) {
  expect_infer("slice {start = [1], limit = [M]}", {"f32[M]"}, {"f32[M - 1]"});
  expect_infer("slice {start = [N], limit = [2*N]}", {"f32[3*N]"}, {"f32[N]"});
  expect_infer("slice {start = [0], limit = [K], stride = [4]}", {"f32[K]"}, {"f32[K/4]"});
  expect_infer_error("slice {start = [1], limit = [N]}", {"f32[N]"},
                     "start 1 ... provably ... limit N ... axis 0");
  expect_infer_error("slice {start = [0], limit = [M]}", {"f32[N]"},
                     "limit M ... provably ... size N ... axis 0");
  expect_infer_error("slice {start = [N - M], limit = [N]}", {"f32[N]"},
                     "may be negative on axis 0");
}

TEST(SliceTest, Errors) {
  expect_infer_error("slice {start = [0, 3], limit = [1, 2]}", {"f32[4,4]"},
                     "start 3 exceeds limit 2 on axis 1");
  expect_infer_error("slice {start = [0, 0], limit = [1, 5]}", {"f32[4,4]"},
                     "limit 5 exceeds size 4 on axis 1");
  expect_infer_error("slice {start = [-1], limit = [1]}", {"f32[4]"},
                     "start -1 is negative on axis 0");
  expect_infer_error("slice {start = [0], limit = [1], stride = [0]}", {"f32[4]"},
                     "stride 0 ... axis 0");
  expect_infer_error("slice {start = [0, 0], limit = [1]}", {"f32[4]"},
                     "start has 2 entries for rank 1");
  expect_infer_error("slice {start = [0], limit = []}", {"f32[4]"},
                     "limit has 0 entries for rank 1");
  expect_infer_error("slice {start = [0], limit = [1], stride = [1, 1]}", {"f32[4]"},
                     "stride has 2 entries for rank 1");
}

TEST(PadTest, AddsAndRemoves) {
  expect_eval("pad {low = [1], high = [2]}", {"f32[2] 1 2", "f32[] 9"}, {"f32[5] 9 1 2 9 9"});
  expect_eval("pad {low = [-1], high = [1]}", {"f32[3] 1 2 3", "f32[] 9"}, {"f32[3] 2 3 9"});
  expect_eval("pad {low = [-1], high = [-1]}", {"f32[3] 1 2 3", "f32[] 9"}, {"f32[1] 2"});
  expect_eval("pad {low = [-2], high = [-1]}", {"f32[3] 1 2 3", "f32[] 9"}, {"f32[0] 0"});
  // All elements are removed, yet padding is left.
  expect_eval("pad {low = [-4], high = [5]}", {"f32[3] 1 2 3", "f32[] 9"}, {"f32[4] 9"});
  expect_eval("pad {low = [5], high = [-6]}", {"f32[3] 1 2 3", "f32[] 9"}, {"f32[2] 9"});
}

TEST(PadTest, Interior) {
  expect_eval("pad {low = [0], high = [0], interior = [2]}", {"f32[3] 1 2 3", "f32[] 0"},
              {"f32[7] 1 0 0 2 0 0 3"});
  // 1 0 0 2 0 0 3 without its first element and its last two, then nothing at the end.
  expect_eval("pad {low = [-1], high = [-2], interior = [2]}", {"f32[3] 1 2 3", "f32[] 0"},
              {"f32[4] 0 0 2 0"});
  expect_eval("pad {low = [1, 0], high = [0, 1], interior = [0, 1]}", {"i32[1,2] 1 2", "i32[] 7"},
              {"i32[2,4] 7 7 7 7 1 7 2 7"});
  expect_eval("pad {low = [1], high = [1], interior = [3]}", {"f32[0] 0", "f32[] 4"},
              {"f32[2] 4 4"});
  expect_eval("pad {low = [], high = []}", {"f32[] 1", "f32[] 2"}, {"f32[] 1"});
}

TEST(PadTest, SymbolicDims) {
  expect_infer("pad {low = [1], high = [M]}", {"f32[N]", "f32[]"}, {"f32[N + M + 1]"});
  expect_infer("pad {low = [0], high = [0], interior = [1]}", {"f32[M]", "f32[]"},
               {"f32[2*M - 1]"});
  expect_infer("pad {low = [-1], high = [0]}", {"f32[M]", "f32[]"}, {"f32[M - 1]"});
  expect_infer_error("pad {low = [0], high = [0], interior = [1]}", {"f32[N]", "f32[]"},
                     "interior ... N ... 0 ... axis 0");
  expect_infer_error("pad {low = [-1], high = [0]}", {"f32[N]", "f32[]"},
                     "size N with padding -1 and 0 may be negative on axis 0");
}

TEST(PadTest, Errors) {
  expect_infer_error("pad {low = [-2], high = [-2]}", {"f32[3]", "f32[]"},
                     "size 3 with padding -2 and -2 is negative on axis 0");
  expect_infer_error("pad {low = [0], high = [0], interior = [-1]}", {"f32[3]", "f32[]"},
                     "interior -1 ... axis 0");
  expect_infer_error("pad {low = [0], high = [0]}", {"f32[3]", "f32[1]"},
                     "padding value ... f32[1] ... f32[]");
  expect_infer_error("pad {low = [0], high = [0]}", {"f32[3]", "i32[]"},
                     "padding value ... i32[] ... f32[]");
  expect_infer_error("pad {low = [], high = [0]}", {"f32[3]", "f32[]"},
                     "low has 0 entries for rank 1");
  expect_infer_error("pad {low = [0], high = [0, 0]}", {"f32[3]", "f32[]"},
                     "high has 2 entries for rank 1");
  expect_infer_error("pad {low = [0], high = [0], interior = [0, 0]}", {"f32[3]", "f32[]"},
                     "interior has 2 entries for rank 1");
  expect_infer_error("pad {low = [1099511627776], high = [0]}", {"f32[1]", "f32[]"},
                     "1099511627777", ErrorCode::limit);
}

TEST(ConcatTest, JoinsAlongTheAxis) {
  expect_eval("concat {axis = 0}", {"f32[2] 1 2", "f32[0] 0", "f32[1] 3"}, {"f32[3] 1 2 3"});
  expect_eval("concat {axis = 1}", {"i8[2,1] 1 2", "i8[2,2] 3 4 5 6"}, {"i8[2,3] 1 3 4 2 5 6"});
  expect_eval("concat {axis = 0}", {"bool[1,0] 0", "bool[2,0] 0"}, {"bool[3,0] 0"});
  expect_eval("concat {axis = 0}", {"f32[2] 1 2"}, {"f32[2] 1 2"});
  expect_infer("concat {axis = 0}", {"f32[N, 2]", "f32[M, 2]", "f32[N, 2]"}, {"f32[2*N + M, 2]"});
}

TEST(ConcatTest, Errors) {
  expect_infer_error("concat {axis = 1}", {"f32[2]"}, "axis 1 is outside rank 1");
  expect_infer_error("concat {axis = -1}", {"f32[2]"}, "axis -1 is outside rank 1");
  expect_infer_error("concat {axis = 0}", {"f32[]"}, "axis 0 is outside rank 0");
  expect_infer_error("concat {axis = 0}", {"f32[2]", "i32[2]"},
                     "part 1 ... i32[2] ... f32[2] ... axis 0");
  expect_infer_error("concat {axis = 0}", {"f32[2,2]", "f32[2,3]"},
                     "part 1 ... f32[2, 3] ... f32[2, 2] ... axis 0");
  expect_infer_error("concat {axis = 0}", {"f32[2,2]", "f32[2]"},
                     "part 1 ... f32[2] ... f32[2, 2] ... axis 0");
  expect_infer_error("concat {axis = 0}", {"f32[1,N]", "f32[1,M]"},
                     "part 1 ... f32[1, M] ... f32[1, N] ... axis 0");
  expect_infer_error("concat {axis = 0}", {}, "at least one");
}

TEST(ReverseTest, ReversesTheAxes) {
  expect_eval("reverse {axes = [1]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2,3] 3 2 1 6 5 4"});
  expect_eval("reverse {axes = [1, 0]}", {"f32[2,3] 1 2 3 4 5 6"}, {"f32[2,3] 6 5 4 3 2 1"});
  expect_eval("reverse {axes = []}", {"f32[2] 1 2"}, {"f32[2] 1 2"});
  expect_eval("reverse {axes = [0]}", {"f32[0,2] 0"}, {"f32[0,2] 0"});
  expect_infer("reverse {axes = [0]}", {"f8e5m2[N]"}, {"f8e5m2[N]"});
  expect_infer_error("reverse {axes = [1]}", {"f32[2]"}, "axes 1 is outside rank 1");
  expect_infer_error("reverse {axes = [0, 0]}", {"f32[2]"}, "axes names axis 0 twice");
}

// Large enough that the copies are split among threads.
TEST(ShapeTest, LargeTransposeAndReverse) {
  constexpr int64_t kRows = 700;
  constexpr int64_t kColumns = 301;
  std::vector<int64_t> numbers(kRows * kColumns);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  Type type = Type::get(DType::i64, {kRows, kColumns});
  Tensor x = Tensor::from_integers(type, numbers);
  auto run = [&](std::string_view op) {
    Result<Graph> graph = graph_of(op_of(op), {type});
    EXPECT_TRUE(graph.ok());
    Result<std::vector<Tensor>> results = evaluate(*graph, std::span<const Tensor>(&x, 1));
    EXPECT_TRUE(results.ok());
    return results->at(0);
  };
  Tensor transposed = run("transpose {permutation = [1, 0]}");
  Tensor reversed = run("reverse {axes = [0]}");
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kColumns; ++j) {
      ASSERT_EQ(transposed.integer_at(j * kRows + i), i * kColumns + j);
      ASSERT_EQ(reversed.integer_at(i * kColumns + j), (kRows - 1 - i) * kColumns + j);
    }
  }
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
