#include "tests/hostile/hostile_testing.h"

// Operands of ranks and attributes of kinds and values that the op does not have.

namespace hone::hostile::HONE_FILE {
namespace {

// Each of r0..r5 is an f32 input of that rank, with sizes 2, 3, 4, 5, 6; i1 and i2 hold integers.
std::string inputs_text() {
  std::string text;
  std::vector<std::string> dims;
  for (int rank = 0; rank <= 5; ++rank) {
    text += input_text(fmt::format("r{}", rank), dims);
    dims.push_back(std::to_string(rank + 2));
  }
  return text + input_text("i1", {"2"}, 7) + input_text("i2", {"2", "3"}, 7) +
         input_text("image", {"1", "2", "8", "8"}) + input_text("filter", {"4", "2", "3", "3"}) +
         input_text("u8", {"2"}, 2) + input_text("flag", {}, 9) + integers_text("far", {99}) +
         integers_text("lowest", {INT64_MIN}) + integers_text("none", {}) +
         integers_text("zero", {0}) + integers_text("minus", {-1}) + integers_text("pair", {0, 0});
}

void expect_op_errors(const std::vector<OpCase>& cases) {
  static const std::string inputs = inputs_text();
  hostile::expect_op_errors(inputs, cases);
}

TEST(HostileOps, AxesOutsideOfTheRank) {
  std::vector<OpCase> cases;
  struct Row {
    std::string op, operands;
    int opset = 17;
  };
  const std::vector<Row> rows = {{"Softmax", "r2"},
                                 {"LogSoftmax", "r2"},
                                 {"Hardmax", "r2"},
                                 {"Concat", "r2 r2"},
                                 {"Gather", "r2 zero"},
                                 {"GatherElements", "r2 i2"},
                                 {"ScatterElements", "r2 i2 r2"},
                                 {"ArgMax", "r2"},
                                 {"ArgMin", "r2"},
                                 {"Split", "r2"},
                                 {"TopK", "r2 zero"},
                                 {"Flatten", "r2"},
                                 {"OneHot", "i1 zero r1"},
                                 {"Compress", "r2 b1"},
                                 {"LayerNormalization", "r2 r1"},
                                 {"Unique", "r2"},
                                 {"LpNormalization", "r2"},
                                 {"ReverseSequence", "r2 i1"}};
  for (const Row& row : rows) {
    if (row.operands.find("b1") != std::string::npos) continue;
    for (int64_t axis : {int64_t{99}, int64_t{-99}, INT64_MIN, INT64_MAX}) {
      std::string attribute = row.op == "ReverseSequence" ? "batch_axis" : "axis";
      cases.push_back({fmt::format("{}", axis), row.op, row.operands, int_text(attribute, axis),
                       kBad, "", row.opset});
    }
  }
  for (const char* op : {"ReduceSum", "Squeeze", "Unsqueeze"})
    for (const char* axes : {"far", "lowest", "pair"})
      cases.push_back({axes, op, std::string("r2 ") + axes, ""});
  for (const char* op : {"ReduceMean", "ReduceMax", "ReduceL2", "ReduceLogSumExp"})
    for (int64_t axis : {int64_t{2}, int64_t{-3}, INT64_MIN})
      cases.push_back({fmt::format("{}", axis), op, "r2", ints_text("axes", {axis})});
  cases.push_back({"far", "CumSum", "r2 far", ""});
  cases.push_back({"far", "Slice", "r2 zero zero far", ""});
  cases.push_back({"twice", "Slice", "r2 pair pair pair", ""});
  cases.push_back({"far", "MeanVarianceNormalization", "r4", ints_text("axes", {9})});
  cases.push_back({"perm", "Transpose", "r2", ints_text("perm", {0, 2})});
  cases.push_back({"perm twice", "Transpose", "r2", ints_text("perm", {0, 0})});
  cases.push_back({"perm short", "Transpose", "r2", ints_text("perm", {0})});
  cases.push_back({"perm negative", "Transpose", "r2", ints_text("perm", {INT64_MIN, 0})});
  expect_op_errors(cases);
}

TEST(HostileOps, Windows) {
  auto kernel = [](const std::vector<int64_t>& sizes) { return ints_text("kernel_shape", sizes); };
  constexpr int64_t kHuge = int64_t{1} << 62;
  expect_op_errors({
      {"ranks that differ", "Conv", "r3 filter", ""},
      {"a filter without rank", "Conv", "image r0", ""},
      {"a filter of rank 1", "Conv", "image r1", ""},
      {"an input without rank", "Conv", "r0 filter", ""},
      {"an input of rank 2", "Conv", "r2 r2", ""},
      {"both without rank", "Conv", "r0 r0", ""},
      {"no filter", "Conv", "image", ""},
      {"channels that differ", "Conv", "r4 filter", ""},
      {"group 0", "Conv", "image filter", int_text("group", 0)},
      {"group -1", "Conv", "image filter", int_text("group", -1)},
      {"group 2^62", "Conv", "image filter", int_text("group", kHuge), kLimit},
      {"group 3", "Conv", "image filter", int_text("group", 3)},
      {"stride 0", "Conv", "image filter", ints_text("strides", {0, 0})},
      {"negative strides", "Conv", "image filter", ints_text("strides", {-1, INT64_MIN})},
      {"too few strides", "Conv", "image filter", ints_text("strides", {1})},
      {"dilation 0", "Conv", "image filter", ints_text("dilations", {0, 0})},
      {"huge dilations", "Conv", "image filter", ints_text("dilations", {kHuge, kHuge})},
      {"too few pads", "Conv", "image filter", ints_text("pads", {1})},
      {"pads below all", "Conv", "image filter", ints_text("pads", {INT64_MIN, 0, INT64_MIN, 0})},
      {"a kernel that is not the filter's", "Conv", "image filter", kernel({5, 5})},
      {"an unknown padding", "Conv", "image filter",
       "attribute { name: 'auto_pad' type: STRING s: 'BOGUS' }"},
      {"a bias of another size", "Conv", "image filter r1", ""},
      {"a bias of another rank", "Conv", "image filter r2", ""},
      {"ranks that differ", "ConvTranspose", "r3 filter", ""},
      {"a filter without rank", "ConvTranspose", "image r0", ""},
      {"group 0", "ConvTranspose", "image filter", int_text("group", 0)},
      {"negative output shape", "ConvTranspose", "image filter",
       ints_text("output_shape", {-1, INT64_MIN})},
      {"output padding below 0", "ConvTranspose", "image filter",
       ints_text("output_padding", {-9, INT64_MIN})},
      {"no kernel", "MaxPool", "image", ""},
      {"an empty kernel", "MaxPool", "image", kernel({})},
      {"kernel 0", "MaxPool", "image", kernel({0, 0})},
      {"a negative kernel", "MaxPool", "image", kernel({-1, 2})},
      {"a kernel of another rank", "MaxPool", "image", kernel({2})},
      {"stride 0", "MaxPool", "image", kernel({2, 2}) + ints_text("strides", {0, 1})},
      {"no room", "MaxPool", "r2", kernel({})},
      {"kernel 2^62", "AveragePool", "image", kernel({kHuge, kHuge})},
      {"kernel 0", "AveragePool", "image", kernel({0, 0})},
      {"negative pads", "AveragePool", "image",
       kernel({2, 2}) + ints_text("pads", {-9, -9, -9, -9})},
      {"kernel 0", "LpPool", "image", kernel({0, 0})},
      {"a kernel of another rank", "LpPool", "image", kernel({1, 1, 1})},
      {"no rank", "GlobalAveragePool", "r0", ""},
      {"rank 1", "GlobalMaxPool", "r1", ""},
      {"ranks that differ", "DeformConv", "r3 filter r4", "", kBad, "", 19},
      {"ranks that differ", "ConvInteger", "r3 filter", ""},
      {"size 0", "LRN", "image", int_text("size", 0)},
      {"no size", "LRN", "image", ""},
      {"kernel 0", "Col2Im", "r3 i1 i1", "", kUnsupported, "", 18},
      {"kernel 0", "MaxUnpool", "image i2", kernel({0, 0})},
      {"size 0", "MaxRoiPool", "image r2", ints_text("pooled_shape", {0, 0})},
      {"rois of rank 1", "RoiAlign", "image r1 i1", ""},
      {"sizes below 0", "RoiAlign", "image r2 i1", int_text("output_height", -1)},
      {"rank 2", "GridSample", "r2 r2", ""},
  });
}

TEST(HostileOps, Products) {
  expect_op_errors({
      {"no rank", "MatMul", "r0 r0", ""},
      {"sizes that differ", "MatMul", "r2 r2", ""},
      {"rank 3", "Gemm", "r3 r3", ""},
      {"sizes that differ", "Gemm", "r2 r2", ""},
      {"too few operands", "Einsum", "r2",
       "attribute { name: 'equation' type: STRING s: 'ij,jk' }"},
      {"no equation", "Einsum", "r2 r2", ""},
      {"an empty equation", "Einsum", "r2 r2", "attribute { name: 'equation' type: STRING s: '' }"},
      {"nothing but arrows", "Einsum", "r2",
       "attribute { name: 'equation' type: STRING s: '->->' }"},
      {"sizes that differ", "Einsum", "r2 r2",
       "attribute { name: 'equation' type: STRING s: 'ij,jk->ik' }"},
      {"no hidden size", "LSTM", "r2 r2 r2", ""},
      {"ranks", "LSTM", "r3 r1 r3", int_text("hidden_size", 3)},
      {"hidden size 0", "GRU", "r3 r3 r3", int_text("hidden_size", 0)},
      {"hidden size below 0", "RNN", "r3 r3 r3", int_text("hidden_size", INT64_MIN)},
      {"a direction that does not exist", "RNN", "r3 r3 r3",
       "attribute { name: 'direction' type: STRING s: 'sideways' }"},
  });
}

TEST(HostileOps, Shapes) {
  expect_op_errors({
      {"block 0", "DepthToSpace", "r4", int_text("blocksize", 0)},
      {"block -1", "SpaceToDepth", "r4", int_text("blocksize", -1)},
      {"block 2^40", "DepthToSpace", "r4", int_text("blocksize", int64_t{1} << 40)},
      {"rank 2", "SpaceToDepth", "r2", int_text("blocksize", 2)},
      {"nothing", "Concat", "", int_text("axis", 0)},
      {"no axis", "Concat", "r2 r2", ""},
      {"ranks that differ", "Concat", "r2 r3", int_text("axis", 0)},
      {"sizes that differ", "Concat", "r2 r3", int_text("axis", 1)},
      {"step 0", "Slice", "r2 zero far zero zero", ""},
      {"lists of different lengths", "Slice", "r2 pair zero", ""},
      {"more than there is", "Slice", "r1 pair pair", ""},
      {"no rank", "Slice", "r0 zero zero", ""},
      {"group 0", "GroupNormalization", "image r1 r1", int_text("num_groups", 0), kBad, "", 21},
      {"group 2^62", "GroupNormalization", "image r1 r1", int_text("num_groups", int64_t{1} << 62),
       kLimit, "", 21},
      {"ranks", "BatchNormalization", "image r2 r2 r2 r2", ""},
      {"no rank", "BatchNormalization", "r0 r1 r1 r1 r1", ""},
      {"ranks", "InstanceNormalization", "image r2 r2", ""},
      {"an index list without rank", "GatherND", "r2 lowest", int_text("batch_dims", 5)},
      {"negative batch dims", "GatherND", "r2 i1", int_text("batch_dims", -1)},
      {"batch dims below all", "GatherND", "r2 i1", int_text("batch_dims", INT64_MIN)},
      {"more coordinates than dims", "GatherND", "r1 i2", ""},
      {"updates of another shape", "ScatterND", "r2 i2 r0", ""},
      {"more coordinates than dims", "ScatterND", "r1 i2 r1", ""},
      {"updates of another shape", "ScatterElements", "r2 i2 r3", ""},
      {"ranks", "GatherElements", "r3 i2", ""},
      {"an unknown reduction", "ScatterElements", "r2 i2 r2",
       "attribute { name: 'reduction' type: STRING s: 'divide' }", kBad, "", 18},
      {"no rank", "NonMaxSuppression", "r0 r0", ""},
      {"ranks", "NonMaxSuppression", "r3 r2", ""},
      {"no matrix", "Det", "r1", ""},
      {"no square", "Det", "r2", ""},
      {"no matrix", "Trilu", "r1", ""},
      {"no matrix", "EyeLike", "r3", ""},
      {"to a type that does not exist", "Cast", "r2", int_text("to", 99)},
      {"to a type below 0", "Cast", "r2", int_text("to", -1)},
      {"to a type beyond 32 bits", "Cast", "r2", int_text("to", (int64_t{1} << 32) + 1)},
      {"without a type", "Cast", "r2", ""},
      {"to strings", "Cast", "r2", int_text("to", 8), kUnsupported},
      {"split below 0", "Split", "r2 minus", ""},
      {"no parts", "Split", "r2", int_text("num_outputs", 0), kBad, "", 18},
      {"parts below 0", "Split", "r2", int_text("num_outputs", INT64_MIN), kBad, "", 18},
      {"ranks", "ReverseSequence", "r2 i2", ""},
      {"a mode that does not exist", "Pad", "r1 pair",
       "attribute { name: 'mode' type: STRING s: 'sideways' }"},
      {"elements that do not fit", "Add", "r2 r3", ""},
      {"element types that differ", "Add", "r2 i2", ""},
      {"no bool", "And", "r2 r2", ""},
      {"no condition", "Where", "r2 r2 r2", ""},
      {"floats shifted", "BitShift", "r2 r2",
       "attribute { name: 'direction' type: STRING s: 'LEFT' }"},
  });
}

TEST(HostileOps, Attributes) {
  expect_op_errors({
      {"a list for a number", "Softmax", "r2", ints_text("axis", {1}), kBad,
       "attribute 'axis' is a list of integers, must be an integer"},
      {"a string for a number", "Softmax", "r2", "attribute { name: 'axis' type: STRING s: '1' }",
       kBad, "attribute 'axis' is a string, must be an integer"},
      {"a number for a list", "Transpose", "r2", int_text("perm", 1), kBad,
       "attribute 'perm' is an integer, must be a list of integers"},
      {"a tensor for a number", "LeakyRelu", "r2",
       "attribute { name: 'alpha' type: TENSOR t { data_type: 1 float_data: 1 } }", kBad,
       "attribute 'alpha' is a tensor, must be a number"},
      {"a number for a graph", "If", "flag", int_text("then_branch", 1), kBad,
       "attribute 'then_branch' is an integer, must be a graph"},
      {"a kind that does not exist", "LeakyRelu", "r2",
       "attribute { name: 'alpha' type: TYPE_PROTO f: 1 }", kBad, "attribute 'alpha'"},
      {"one given twice", "Softmax", "r2", int_text("axis", 0) + int_text("axis", 1), kBad,
       "attribute 'axis' is given twice"},
      {"one that is not known", "Relu", "r2", int_text("backdoor", 1), kUnsupported,
       "attribute 'backdoor' is not known"},
      {"one without a name", "Relu", "r2", int_text("", 1), kUnsupported,
       "attribute '' is not known"},
      {"two values", "Constant", "", int_text("value_int", 1) + ints_text("value_ints", {1}), kBad,
       "2 ... value attributes"},
      {"no value", "Constant", "", "", kBad, "0 ... value attributes"},
      {"a tensor that lies", "Constant", "",
       "attribute { name: 'value' type: TENSOR t { data_type: 1 dims: 1000000 raw_data: 'abcd' } }",
       kBad, "raw_data holds 4 bytes"},
      {"a tensor that claims too much", "Constant", "",
       "attribute { name: 'value' type: TENSOR t { data_type: 1 dims: [1048576, 1048576] } }",
       kLimit, "limit"},
      {"an index outside of a sparse tensor", "Constant", "",
       "attribute { name: 'sparse_value' type: SPARSE_TENSOR sparse_tensor { dims: 2 values { "
       "data_type: 1 dims: 1 float_data: 1 } indices { data_type: 7 dims: 1 int64_data: 2 } } }",
       kBad, "entry 0 ... index 2 ... axis 0 ... size 2"},
      {"a string that is a list", "Constant", "",
       "attribute { name: 'value_string' type: STRINGS strings: 'a' }", kBad, "must be a string"},
  });
}

// Operands that the op does not have are not ignored.
TEST(HostileOps, SurplusOperands) {
  expect_op_errors({
      {"two", "Relu", "r2 r2", "", kUnsupported, "2 operands ... 1"},
      {"three", "Add", "r2 r2 r2", "", kUnsupported, "3 operands ... 2"},
      {"a gap", "Softmax", "r2 - - r2", "", kUnsupported, "4 operands ... 1"},
      {"a constant with an operand", "Constant", "r2", int_text("value_int", 1), kUnsupported,
       "1 operands ... 0"},
      {"axes before there were any", "ReduceMean", "r2 zero", "", kUnsupported, "at most 1"},
      {"an unknown kernel", "MaxPool", "image filter", ints_text("kernel_shape", {2, 2}),
       kUnsupported, "at most 1"},
      {"a second bias", "Conv", "image filter - r1", "", kUnsupported, "at most 3"},
      {"more states", "GRU", "r3 r3 r3 r3 r3 r3 r3", int_text("hidden_size", 3), kBad, ""},
  });
  // Empty names give nothing.
  const std::string text =
      model_text(input_text("x", {"2"}) + output_text("y") + node_text("Relu", "x - -", "y"));
  EXPECT_TRUE(import_text(text).ok());
}

TEST(HostileOps, SurplusResults) {
  for (const char* node : {"Relu", "Softmax", "Transpose"})
    expect_error(
        model_text(input_text("x", {"2"}) + output_text("z") + node_text(node, "x", "y z")),
        kUnsupported, "result 1 ('z') is not supported");
}

}  // namespace
}  // namespace hone::hostile::HONE_FILE
