#include <gtest/gtest.h>

#include "ir/reference/domain.h"
#include "tests/ir/op_testing.h"

// dynamic_slice, dynamic_update, gather, scatter.

namespace hone::tested::HONE_FILE {
namespace {

TEST(DynamicSliceTest, TakesAWindow) {
  expect_eval("dynamic_slice {sizes = [2]}", {"f32[4] 0 1 2 3", "i32[] 1"}, {"f32[2] 1 2"});
  expect_eval("dynamic_slice {sizes = [1, 2]}", {"i32[2,3] 0 1 2 10 11 12", "i64[] 1", "u8[] 1"},
              {"i32[1,2] 11 12"});
  expect_eval("dynamic_slice {sizes = []}", {"f32[] 5"}, {"f32[] 5"});
  expect_eval("dynamic_slice {sizes = [0]}", {"f32[4] 0 1 2 3", "i32[] 9"}, {"f32[0] 0"});
}

TEST(DynamicSliceTest, ClampsStarts) {
  expect_eval("dynamic_slice {sizes = [2]}", {"f32[4] 0 1 2 3", "i32[] 3"}, {"f32[2] 2 3"});
  expect_eval("dynamic_slice {sizes = [2]}", {"f32[4] 0 1 2 3", "i32[] -5"}, {"f32[2] 0 1"});
  expect_eval("dynamic_slice {sizes = [2]}", {"f32[4] 0 1 2 3", "u64[] 18446744073709551615"},
              {"f32[2] 2 3"});
}

TEST(DynamicSliceTest, Inference) {
  expect_infer("dynamic_slice {sizes = [M]}", {"f32[N + M]", "i32[]"}, {"f32[M]"});
  expect_infer_error("dynamic_slice {sizes = [M]}", {"f32[N]", "i32[]"},
                     "window M ... provably ... size N ... axis 0");
  expect_infer_error("dynamic_slice {sizes = [5]}", {"f32[4]", "i32[]"},
                     "window 5 exceeds size 4 on axis 0");
  expect_infer_error("dynamic_slice {sizes = [-1]}", {"f32[4]", "i32[]"},
                     "size -1 is negative on axis 0");
  expect_infer_error("dynamic_slice {sizes = [1, 1]}", {"f32[4]", "i32[]"},
                     "sizes has 2 entries for rank 1");
  expect_infer_error("dynamic_slice {sizes = [1]}", {"f32[4]"}, "0 start indices for rank 1");
  expect_infer_error("dynamic_slice {sizes = [1]}", {"f32[4]", "f32[]"},
                     "start 0 ... f32[] ... integer");
  expect_infer_error("dynamic_slice {sizes = [1]}", {"f32[4]", "i32[1]"},
                     "start 0 ... i32[1] ... scalar");
}

TEST(DynamicUpdateTest, ReplacesAWindow) {
  expect_eval("dynamic_update", {"f32[4] 0 1 2 3", "f32[2] 8 9", "i32[] 1"}, {"f32[4] 0 8 9 3"});
  expect_eval("dynamic_update", {"f32[4] 0 1 2 3", "f32[2] 8 9", "i32[] 7"}, {"f32[4] 0 1 8 9"});
  expect_eval("dynamic_update", {"f32[4] 0 1 2 3", "f32[0] 0", "i32[] 0"}, {"f32[4] 0 1 2 3"});
  expect_eval("dynamic_update", {"bool[2,2] false", "bool[1,1] true", "i8[] 1", "i8[] -1"},
              {"bool[2,2] false false true false"});
  expect_eval("dynamic_update", {"f32[] 1", "f32[] 2"}, {"f32[] 2"});
}

TEST(DynamicUpdateTest, Inference) {
  expect_infer("dynamic_update", {"f32[N + 1]", "f32[1]", "i32[]"}, {"f32[N + 1]"});
  expect_infer_error("dynamic_update", {"f32[4]", "i32[1]", "i32[]"},
                     "update of f32[4] ... i32[1]");
  expect_infer_error("dynamic_update", {"f32[4]", "f32[1,1]", "i32[]"},
                     "update of f32[4] ... f32[1, 1]");
  expect_infer_error("dynamic_update", {"f32[4]", "f32[5]", "i32[]"},
                     "window 5 exceeds size 4 on axis 0");
  expect_infer_error("dynamic_update", {"f32[4]", "f32[1]"}, "0 start indices for rank 1");
}

// numpy.take(x, indices, axis = 0)
constexpr std::string_view kTakeRows =
    "gather {offset_dims = [1], collapsed_dims = [0], index_map = [0], index_vector_dim = 1, "
    "sizes = [1, 2]}";

TEST(GatherTest, TakesRows) {
  expect_eval(kTakeRows, {"f32[3,2] 0 1 10 11 20 21", "i32[4] 2 0 0 1"},
              {"f32[4,2] 20 21 0 1 0 1 10 11"});
  // Out of range clamps.
  expect_eval(kTakeRows, {"f32[3,2] 0 1 10 11 20 21", "i64[2] -3 7"}, {"f32[2,2] 0 1 20 21"});
  expect_eval(kTakeRows, {"f32[3,2] 0 1 10 11 20 21", "u64[1] 18446744073709551615"},
              {"f32[1,2] 20 21"});
  expect_eval(kTakeRows, {"f32[3,2] 0 1 10 11 20 21", "i32[0] 0"}, {"f32[0,2] 0"});
}

TEST(GatherTest, WindowsAtPoints) {
  // Windows of 1 x 2 whose start is (row, column), the vector in dim 0 of the indices.
  expect_eval(
      "gather {offset_dims = [0, 1], collapsed_dims = [], index_map = [0, 1], "
      "index_vector_dim = 0, sizes = [1, 2]}",
      {"i32[2,3] 0 1 2 10 11 12", "i32[2,3] 0 1 1 0 1 5"}, {"i32[1,2,3] 0 11 11 1 12 12"});
  // The components in the other order, both dims collapsed.
  expect_eval(
      "gather {offset_dims = [], collapsed_dims = [0, 1], index_map = [1, 0], "
      "index_vector_dim = 1, sizes = [1, 1]}",
      {"i32[2,3] 0 1 2 10 11 12", "i32[2,2] 2 0 1 1"}, {"i32[2] 2 11"});
}

TEST(GatherTest, BatchDims) {
  // result[b, i] = x[b, indices[b, i]]
  expect_eval(
      "gather {offset_dims = [], collapsed_dims = [1], operand_batch_dims = [0], "
      "index_batch_dims = [0], index_map = [1], index_vector_dim = 2, sizes = [1, 1]}",
      {"f32[2,3] 0 1 2 10 11 12", "i32[2,2] 2 0 1 1"}, {"f32[2,2] 2 0 11 11"});
}

TEST(GatherTest, SymbolicDims) {
  expect_infer(
      "gather {offset_dims = [1], collapsed_dims = [0], index_map = [0], "
      "index_vector_dim = 1, sizes = [1, M]}",
      {"f32[50, M]", "i32[N]"}, {"f32[N, M]"});
  expect_infer_error(
      "gather {offset_dims = [1], collapsed_dims = [0], index_map = [0], "
      "index_vector_dim = 1, sizes = [1, M]}",
      {"f32[N, M]", "i32[4]"}, "window 1 ... provably ... size N ... axis 0");
}

// The attributes of a correct gather of f32[4,5,6] by i32[4,7,1], one of them replaced.
void expect_gather_error(std::string_view attr, std::string_view value, std::string_view text,
                         std::string_view indices = "i32[4,7,1]") {
  std::vector<std::pair<std::string_view, std::string_view>> attrs = {
      {"offset_dims", "[2]"},      {"collapsed_dims", "[1]"}, {"operand_batch_dims", "[0]"},
      {"index_batch_dims", "[0]"}, {"index_map", "[1]"},      {"index_vector_dim", "2"},
      {"sizes", "[1, 1, 6]"}};
  std::string op;
  for (auto [name, usual] : attrs) {
    op += fmt::format("{}{} = {}", op.empty() ? "gather {" : ", ", name,
                      name == attr ? value : usual);
  }
  op += "}";
  if (text.empty()) {
    expect_infer(op, {"f32[4,5,6]", indices}, {"f32[4,7,6]"});
  } else {
    expect_infer_error(op, {"f32[4,5,6]", indices}, text);
  }
}

TEST(GatherTest, Errors) {
  expect_gather_error("", "", "");
  expect_gather_error("", "", "indices ... f32 ... integer", "f32[4,7,1]");
  expect_gather_error("", "", "index_map ... 1 entries ... 2", "i32[4,7,2]");
  expect_gather_error("", "", "batch dim 0 ... operand ... 4 ... dim 0 ... indices ... 3",
                      "i32[3,7,1]");
  expect_gather_error("", "", "index_vector_dim 2 ... 0 ... 1", "i32[4]");
  expect_gather_error("index_vector_dim", "-1", "index_vector_dim -1 ... 0 ... 3");
  expect_gather_error("index_vector_dim", "4", "index_vector_dim 4 ... 0 ... 3");
  expect_gather_error("index_map", "[3]", "index_map 3 is outside rank 3");
  expect_gather_error("index_map", "[0]", "axis 0 ... operand_batch_dims ... index_map");
  expect_gather_error("index_map", "[1, 1]", "index_map names axis 1 twice", "i32[4,7,2]");
  expect_gather_error("collapsed_dims", "[0]", "axis 0 ... operand_batch_dims ... collapsed_dims");
  expect_gather_error("collapsed_dims", "[2, 1]", "collapsed_dims ... order");
  expect_gather_error("collapsed_dims", "[1, 2]",
                      "offset_dims ... 1 ... 0 operand dims ... collapsed_dims");
  expect_gather_error("index_batch_dims", "[2]", "index_vector_dim 2 ... index_batch_dims");
  expect_gather_error("index_batch_dims", "[]", "1 operand_batch_dims ... 0 index_batch_dims");
  expect_gather_error("offset_dims", "[3]", "offset_dims 3 is outside rank 3");
  expect_gather_error("sizes", "[1, 1]", "sizes has 2 entries for rank 3");
  expect_gather_error("sizes", "[1, 1, 7]", "window 7 exceeds size 6 on axis 2");
  expect_gather_error("sizes", "[1, 1, -1]", "size -1 is negative on axis 2");
  expect_gather_error("sizes", "[1, 2, 6]", "sizes[1] ... 2 ... 1");
  expect_gather_error("sizes", "[0, 1, 6]", "sizes[0] ... 0 ... 1");
}

std::string scatter_rows(std::string_view combine) {
  return fmt::format(
      "scatter {{window_dims = [1], inserted_dims = [0], index_map = [0], "
      "index_vector_dim = 1, combine = {}}}",
      combine);
}

TEST(ScatterTest, CombinesRows) {
  constexpr std::string_view kX = "f32[3,2] 1 2 3 4 5 6";
  constexpr std::string_view kRows = "f32[3,2] 10 20 30 40 -50 60";
  // Rows 2, 0, 2: the last one that comes to row 2 stays.
  expect_eval(scatter_rows("replace"), {kX, "i32[3] 2 0 2", kRows}, {"f32[3,2] 30 40 3 4 -50 60"});
  expect_eval(scatter_rows("add"), {kX, "i32[3] 2 0 2", kRows}, {"f32[3,2] 31 42 3 4 -35 86"});
  expect_eval(scatter_rows("mul"), {kX, "i32[3] 2 0 2", kRows}, {"f32[3,2] 30 80 3 4 -2500 7200"});
  expect_eval(scatter_rows("min"), {kX, "i32[3] 2 0 2", kRows}, {"f32[3,2] 1 2 3 4 -50 6"});
  expect_eval(scatter_rows("max"), {kX, "i32[3] 2 0 2", kRows}, {"f32[3,2] 30 40 3 4 10 60"});
}

TEST(ScatterTest, DropsWhatIsOutOfRange) {
  expect_eval(scatter_rows("add"), {"f32[2,1] 1 2", "i32[4] -1 2 1 -9", "f32[4,1] 10 20 30 40"},
              {"f32[2,1] 1 32"});
  // Windows of two: the part that is inside counts.
  constexpr std::string_view kWindows =
      "scatter {window_dims = [1], inserted_dims = [], index_map = [0], index_vector_dim = 1, "
      "combine = add}";
  expect_eval(kWindows, {"f32[3] 0 0 0", "i32[3] -1 1 2", "f32[3,2] 1 2 10 20 100 200"},
              {"f32[3] 2 10 120"});
  expect_eval(kWindows, {"f32[3] 0", "i64[1] 9223372036854775807", "f32[1,2] 1 2"}, {"f32[3] 0"});
  expect_eval(kWindows, {"f32[3] 0", "i64[1] -9223372036854775808", "f32[1,2] 1 2"}, {"f32[3] 0"});
}

TEST(ScatterTest, IntegersWrapAndNanWins) {
  constexpr std::string_view kPoints =
      "scatter {{window_dims = [], inserted_dims = [0], index_map = [0], index_vector_dim = 1, "
      "combine = {}}}";
  auto points = [&](std::string_view combine) {
    return fmt::format(fmt::runtime(kPoints), combine);
  };
  expect_eval(points("add"), {"i8[2] 127 0", "i32[2] 0 0", "i8[2] 1 1"}, {"i8[2] -127 0"});
  expect_eval(points("mul"), {"u8[1] 16", "i32[1] 0", "u8[1] 17"}, {"u8[1] 16"});
  expect_eval(points("max"), {"u64[1] 1", "i32[1] 0", "u64[1] 18446744073709551615"},
              {"u64[1] 18446744073709551615"});
  expect_eval(points("max"), {"f32[2] 1 nan", "i32[2] 0 1", "f32[2] nan 5"}, {"f32[2] nan nan"});
  expect_eval(points("replace"), {"bool[2] false", "i32[1] 1", "bool[1] true"},
              {"bool[2] false true"});
  expect_eval(points("replace"), {"i4[2] 0", "i32[1] 1", "i4[1] -8"}, {"i4[2] 0 -8"});
}

TEST(ScatterTest, UpdatesApplyInRowMajorOrder) {
  // The window dim comes first: element (0, lookup 1) precedes (1, lookup 0). The lookups start at
  // different places so that they meet at element 1. Lookup 0 brings it window element 1, and
  // lookup 1 window element 0. The former comes later in row-major order.
  expect_eval(
      "scatter {window_dims = [0], inserted_dims = [], index_map = [0], "
      "index_vector_dim = 1}",
      {"f32[3] 0 0 0", "i32[2] 0 1", "f32[2,2] 1 2 3 4"}, {"f32[3] 1 3 4"});
}

TEST(ScatterTest, BatchDimsAndUnindexedDims) {
  // x[b, indices[b]] += updates[b]
  expect_eval(
      "scatter {window_dims = [], inserted_dims = [1], operand_batch_dims = [0], "
      "index_batch_dims = [0], index_map = [1], index_vector_dim = 1, combine = add}",
      {"f32[2,3] 0", "i32[2] 2 0", "f32[2] 5 7"}, {"f32[2,3] 0 0 5 7 0 0"});
  // Dim 0 is inserted and no index moves it: row 0.
  expect_eval(
      "scatter {window_dims = [], inserted_dims = [0, 1], index_map = [1], "
      "index_vector_dim = 1, combine = add}",
      {"f32[2,2] 0", "i32[2] 1 1", "f32[2] 5 7"}, {"f32[2,2] 0 12 0 0"});
}

TEST(ScatterTest, InThePrimeField) {
  auto run = [](std::string_view combine) {
    Result<Graph> graph = graph_of(op_of(scatter_rows(combine)),
                                   {type_of("f32[2,1]"), type_of("i32[3]"), type_of("f32[3,1]")});
    EXPECT_TRUE(graph.ok());
    std::vector<FieldInput> inputs(3);
    inputs[0].residues = {5, 6};
    inputs[1].integers = tensor_of("i32[3] 1 1 7");
    inputs[2].residues = {FieldElement::kPrime - 1, 3, 4};  // -1, 3, 4
    return evaluate_in_field(*graph, inputs);
  };
  EXPECT_EQ((*run("add"))[0], (std::vector<uint64_t>{5, 8}));
  EXPECT_EQ((*run("mul"))[0], (std::vector<uint64_t>{5, FieldElement::kPrime - 18}));
  EXPECT_EQ((*run("replace"))[0], (std::vector<uint64_t>{5, 3}));
  Result<std::vector<std::vector<uint64_t>>> max = run("max");
  ASSERT_FALSE(max.ok());
  EXPECT_EQ(max.error().code(), ErrorCode::unsupported);
}

TEST(ScatterTest, Errors) {
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "i32[4]", "i32[4,2]"},
                     "updates ... i32 ... operand ... f32");
  expect_infer_error(scatter_rows("add"), {"bool[3,2]", "i32[4]", "bool[4,2]"},
                     "combine = add is not defined for bool");
  expect_infer_error(scatter_rows("max"), {"i4[3,2]", "i32[4]", "i4[4,2]"},
                     "combine = max is not defined for i4");
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "f32[4]", "f32[4,2]"},
                     "indices ... f32 ... integer");
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "i32[4]", "f32[4]"},
                     "updates ... rank 1 ... 1 window dims ... 1 index dims");
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "i32[4]", "f32[4,3]"},
                     "window 3 exceeds size 2 on axis 1");
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "i32[4]", "f32[5,2]"},
                     "updates dim 0 ... 5 ... indices dim 0 ... 4");
  expect_infer_error(scatter_rows("add"), {"f32[3,2]", "i32[N]", "f32[M,2]"},
                     "updates dim 0 ... M ... indices dim 0 ... N");
  expect_infer(scatter_rows("add"), {"f32[3,M]", "i32[N]", "f32[N,M]"}, {"f32[3,M]"});
}

}  // namespace
}  // namespace hone::tested::HONE_FILE
