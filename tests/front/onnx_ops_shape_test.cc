#include <gmock/gmock.h>

#include <limits>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_testing.h"

// Shape, slicing and pad ops, where the standard's node tests do not go.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

Operand ints(const Ints& values) {
  return constant(integers({static_cast<int64_t>(values.size())}, values));
}
Tensor ints_input(const Ints& values) {
  return integers({static_cast<int64_t>(values.size())}, values);
}
Tensor counted(const Ints& dims) {
  Numbers values;
  for (int64_t i = 0; i < type_of(DType::f32, dims).static_elements(); ++i)
    values.push_back(static_cast<double>(i));
  return reals(dims, values);
}
Ints dims_of(const Tensor& tensor) { return tensor.type().static_dims(); }

const NodeOptions kSymbolic = {.symbolic = true};

TEST(OnnxShape, ReshapeResolvesZeroAndMinusOneWithSymbols) {
  Tensor x = counted({2, 3, 4});
  EXPECT_EQ(dims_of(run_node("Reshape", 13, {x, ints({0, -1})}, {}, kSymbolic)), Ints({2, 12}));
  EXPECT_EQ(dims_of(run_node("Reshape", 1, {x}, {{"shape", Ints{-1, 4}}})), Ints({6, 4}));
  EXPECT_EQ(dims_of(run_node("Reshape", 14, {reals({0, 3}, {}), ints({3, 0})}, {{"allowzero", 1}})),
            Ints({3, 0}));
  EXPECT_EQ(dims_of(run_node("Reshape", 13, {x, ints_input({4, 0, -1})})), Ints({4, 3, 2}));
}

TEST(OnnxShape, ReshapeNamesWhatIsWrong) {
  Tensor x = counted({2, 3});
  EXPECT_THAT(import_error("Reshape", 13, {x, ints({-1, -1})}), HasSubstr("two dims open"));
  EXPECT_THAT(import_error("Reshape", 13, {x, ints({4, -1})}), HasSubstr("6 elements"));
  EXPECT_THAT(import_error("Reshape", 13, {x, ints({2, 3, 0})}), HasSubstr("which has none"));
  EXPECT_THAT(import_error("Reshape", 13, {x, ints({-2, 3})}), HasSubstr("has the size -2"));
}

TEST(OnnxShape, ShapeTakesARange) {
  Tensor x = counted({2, 3, 4});
  EXPECT_EQ(numbers(run_node("Shape", 15, {x}, {{"start", -2}, {"end", 99}}, kSymbolic)),
            Numbers({3, 4}));
  EXPECT_EQ(numbers(run_node("Size", 21, {x}, {}, kSymbolic)), Numbers({24}));
}

TEST(OnnxShape, SqueezeAndUnsqueezeTakeAxesInEitherForm) {
  Tensor x = counted({1, 3, 1});
  EXPECT_EQ(dims_of(run_node("Squeeze", 11, {x}, {{"axes", Ints{-1}}})), Ints({1, 3}));
  EXPECT_EQ(dims_of(run_node("Squeeze", 13, {x})), Ints({3}));
  EXPECT_EQ(dims_of(run_node("Squeeze", 13, {x, ints_input({-3})})), Ints({3, 1}));
  EXPECT_EQ(dims_of(run_node("Unsqueeze", 13, {x, ints({-1, 0})})), Ints({1, 1, 3, 1, 1}));
  EXPECT_THAT(import_error("Squeeze", 13, {x, ints({1})}), HasSubstr("dim 1 of f32[1, 3, 1]"));
  EXPECT_THAT(import_error("Unsqueeze", 13, {x, ints({4, -1})}), HasSubstr("named twice"));
}

TEST(OnnxShape, RangesCountInAnyDirection) {
  auto range = [](int64_t a, int64_t b, int64_t step, bool is_known) {
    std::vector<Operand> operands;
    for (int64_t v : {a, b, step}) {
      Operand operand = integers({}, {v});
      operand.is_constant = is_known;
      operands.push_back(operand);
    }
    return numbers(run_node("Range", 11, operands));
  };
  for (bool is_known : {true, false}) {
    EXPECT_EQ(range(3, 9, 3, is_known), Numbers({3, 6}));
    EXPECT_EQ(range(10, 4, -2, is_known), Numbers({10, 8, 6}));
    EXPECT_EQ(range(0, 7, 3, is_known), Numbers({0, 3, 6}));
    EXPECT_EQ(range(5, 5, 1, is_known), Numbers({}));
    EXPECT_EQ(range(5, 9, -1, is_known), Numbers({}));
  }
  EXPECT_THAT(import_error("Range", 11,
                           {constant(integers({}, {0})), constant(integers({}, {4})),
                            constant(integers({}, {0}))}),
              HasSubstr("the step is 0"));
}

TEST(OnnxShape, ExpandStretchesEitherSide) {
  EXPECT_EQ(dims_of(run_node("Expand", 13, {counted({3, 1}), ints({2, 1, 4})})), Ints({2, 3, 4}));
  EXPECT_EQ(numbers(run_node("Expand", 13, {reals({2, 1}, {5, 6}), ints({1, 2})}, {}, kSymbolic)),
            Numbers({5, 5, 6, 6}));
  EXPECT_THAT(import_error("Expand", 13, {counted({3}), ints({2})}), HasSubstr("does not expand"));
}

TEST(OnnxShape, TileRepeats) {
  Tensor x = reals({2, 1}, {1, 2});
  EXPECT_EQ(numbers(run_node("Tile", 13, {x, ints({2, 2})}, {}, kSymbolic)),
            Numbers({1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(numbers(run_node("Tile", 1, {x, constant(reals({1}, {3})), constant(reals({1}, {1}))})),
            Numbers({1, 1, 1, 2, 2, 2}));
  EXPECT_THAT(import_error("Tile", 13, {x, ints({2, -1})}), HasSubstr("negative"));
}

TEST(OnnxShape, TriluAndEyeLikeTakeAnyOffset) {
  Tensor x = reals({2, 2}, {1, 2, 3, 4});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(numbers(run_node("Trilu", 14, {x}, {}, kSymbolic)), Numbers({1, 2, 0, 4}));
  EXPECT_EQ(numbers(run_node("Trilu", 14, {x, integers({}, {-1})}, {{"upper", 0}})),
            Numbers({0, 0, 3, 0}));
  EXPECT_EQ(numbers(run_node("EyeLike", 9, {x}, {{"k", kMost}})), Numbers({0, 0, 0, 0}));
  EXPECT_EQ(numbers(run_node("EyeLike", 22, {x}, {{"k", 1}, {"dtype", 6}})), Numbers({0, 1, 0, 0}));
}

TEST(OnnxShape, ConstantsComeInEveryForm) {
  EXPECT_EQ(numbers(run_node("Constant", 12, {}, {{"value_ints", Ints{4, -5}}})), Numbers({4, -5}));
  EXPECT_EQ(run_node("Constant", 12, {}, {{"value_float", 0.5}}).type(), type_of(DType::f32, {}));
  EXPECT_EQ(numbers(run_node("Constant", 9, {}, {{"value", integers({1}, {7})}})), Numbers({7}));
  // A string is its place in the table of the file's strings.
  EXPECT_EQ(run_node("Constant", 12, {}, {{"value_string", "a"}}).type(), type_of(DType::i64, {}));
  EXPECT_THAT(import_error("Constant", 12, {}), says("0 ... value attributes"));
}

// ---- Slice --------------------------------------------------------------------------------------

TEST(OnnxSlice, ClampsHugeLimits) {
  Tensor x = reals({5}, {0, 1, 2, 3, 4});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  auto slice = [&](int64_t start, int64_t end, int64_t step, NodeOptions options) {
    return numbers(run_node("Slice", 13, {x, ints({start}), ints({end}), ints({0}), ints({step})},
                            {}, options));
  };
  for (NodeOptions options : {NodeOptions(), kSymbolic}) {
    EXPECT_EQ(slice(0, kMost, 1, options), numbers(x));
    EXPECT_EQ(slice(kMost, kLeast, -1, options), Numbers({4, 3, 2, 1, 0}));
    EXPECT_EQ(slice(-2, kMost, 1, options), Numbers({3, 4}));
    EXPECT_EQ(slice(4, 0, -2, options), Numbers({4, 2}));
    EXPECT_EQ(slice(1, -1, 2, options), Numbers({1, 3}));
    EXPECT_EQ(slice(3, 1, 1, options), Numbers({}));
    EXPECT_EQ(slice(1, 4, kMost, options), Numbers({1}));
    EXPECT_EQ(slice(3, 0, kLeast, options), Numbers({3}));
    EXPECT_EQ(slice(2, 100, 1, options), Numbers({2, 3, 4}));
  }
}

TEST(OnnxSlice, StartsMayDependOnData) {
  Tensor x = reals({5}, {0, 1, 2, 3, 4});
  EXPECT_EQ(numbers(run_node("Slice", 13, {x, ints_input({-3}), ints({4})})), Numbers({2, 3}));
  EXPECT_EQ(numbers(run_node("Slice", 13, {x, ints_input({9}), ints({99})})), Numbers({}));
  std::vector<Operand> all = {x, ints_input({-2}), ints_input({-99}), ints_input({-1}),
                              ints_input({-3})};
  EXPECT_EQ(numbers(run_node("Slice", 13, all)), Numbers({3, 0}));
}

TEST(OnnxSlice, HasAttributesBeforeVersion10) {
  Attributes attributes = {{"starts", Ints{1, 0}}, {"ends", Ints{2, -1}}};
  EXPECT_EQ(numbers(run_node("Slice", 1, {counted({2, 4})}, attributes)), Numbers({4, 5, 6}));
  EXPECT_THAT(import_error("Slice", 13, {counted({2}), ints({0}), ints({1, 2})}),
              HasSubstr("1 starts, 2 ends"));
  EXPECT_THAT(import_error("Slice", 13, {counted({2}), ints({0}), ints({1}), ints({0}), ints({0})}),
              HasSubstr("step of axis 0 is 0"));
}

// ---- Split --------------------------------------------------------------------------------------

TEST(OnnxSplit, PartsByAttributeOperandOrCount) {
  Tensor x = reals({5}, {0, 1, 2, 3, 4});
  auto second = [&](int version, std::vector<Operand> operands, Attributes attributes,
                    NodeOptions options = {}) {
    options.outputs = 2;
    return numbers(run_outputs("Split", version, operands, attributes, options)[1]);
  };
  EXPECT_EQ(second(2, {x}, {{"split", Ints{2, 3}}}), Numbers({2, 3, 4}));
  EXPECT_EQ(second(13, {x, ints({4, 1})}, {}), Numbers({4}));
  EXPECT_EQ(second(13, {x, ints_input({1, 4})}, {}), Numbers({1, 2, 3, 4}));
  EXPECT_EQ(second(18, {x}, {{"num_outputs", 2}}), Numbers({3, 4}));
  EXPECT_EQ(second(13, {counted({4})}, {}, kSymbolic), Numbers({2, 3}));
  NodeOptions two = {.outputs = 2};
  EXPECT_THAT(import_error("Split", 13, {x}, {}, two), HasSubstr("2 equal parts"));
  EXPECT_THAT(import_error("Split", 13, {x, ints({1, 2})}, {}, two), says("3 ... size ... 5"));
}

// ---- Pad ----------------------------------------------------------------------------------------

TEST(OnnxPad, ContinuesInEveryMode) {
  Tensor x = reals({3}, {1, 2, 3});
  for (NodeOptions options : {NodeOptions(), kSymbolic}) {
    auto pad = [&](const char* mode) {
      return numbers(run_node("Pad", 19, {x, ints({2, 4})}, {{"mode", mode}}, options));
    };
    EXPECT_EQ(pad("constant"), Numbers({0, 0, 1, 2, 3, 0, 0, 0, 0}));
    EXPECT_EQ(pad("edge"), Numbers({1, 1, 1, 2, 3, 3, 3, 3, 3}));
    EXPECT_EQ(pad("reflect"), Numbers({3, 2, 1, 2, 3, 2, 1, 2, 3}));
    EXPECT_EQ(pad("wrap"), Numbers({2, 3, 1, 2, 3, 1, 2, 3, 1}));
  }
}

TEST(OnnxPad, TakesNegativeMeasuredAndOldPads) {
  Tensor x = reals({3}, {1, 2, 3});
  Operand nine = constant(reals({}, {9}));
  EXPECT_EQ(numbers(run_node("Pad", 13, {x, ints({-1, 2}), nine})), Numbers({2, 3, 9, 9}));
  EXPECT_EQ(numbers(run_node("Pad", 13, {x, ints({-1, 1})}, {{"mode", "edge"}})),
            Numbers({2, 3, 3}));
  EXPECT_EQ(numbers(run_node("Pad", 13, {x, ints_input({1, -2}), nine})), Numbers({9, 1}));
  EXPECT_EQ(numbers(run_node("Pad", 2, {x}, {{"pads", Ints{1, 0}}, {"value", 5.0}})),
            Numbers({5, 1, 2, 3}));
  EXPECT_EQ(numbers(run_node("Pad", 18, {counted({2, 2}), ints({0, 1}), none(), ints({-1})})),
            Numbers({0, 1, 0, 2, 3, 0}));
  EXPECT_THAT(import_error("Pad", 13, {x, ints({-2, -2})}), HasSubstr("leave the size -1"));
  EXPECT_THAT(import_error("Pad", 18, {x, ints({1, 1})}, {{"mode", "wrap"}}), HasSubstr("'wrap'"));
}

TEST(OnnxPad, CenterCropPadHasTheOddElementAtTheEnd) {
  Tensor x = reals({4}, {1, 2, 3, 4});
  EXPECT_EQ(numbers(run_node("CenterCropPad", 18, {x, ints({3})})), Numbers({1, 2, 3}));
  EXPECT_EQ(numbers(run_node("CenterCropPad", 18, {x, ints({7})})), Numbers({0, 1, 2, 3, 4, 0, 0}));
  EXPECT_EQ(numbers(run_node("CenterCropPad", 18, {x, ints({1})}, {}, kSymbolic)), Numbers({2}));
}

TEST(OnnxPad, ReverseSequenceOnEitherAxis) {
  Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(numbers(run_node("ReverseSequence", 10, {x, ints_input({2, 3})},
                             {{"batch_axis", 0}, {"time_axis", 1}}, kSymbolic)),
            Numbers({2, 1, 3, 6, 5, 4}));
  EXPECT_EQ(numbers(run_node("ReverseSequence", 10, {x, ints_input({1, 2, 2})})),
            Numbers({1, 5, 6, 4, 2, 3}));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
