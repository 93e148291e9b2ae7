#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

// The sizes that the user gives to the inputs of a file before it is read.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::AllOf;
using testing::HasSubstr;

// y0 = x0 + x1 with x0: f32[s2, s3] and x1: f32[s3], or with numbers in their place.
Result<Model> sum(bool symbolic, const ImportOptions& import) {
  const std::string bytes = node_model(
      "Add", 14, {reals({2, 3}, Numbers(6, 1)), reals({3}, {1, 2, 3})}, {}, {.symbolic = symbolic});
  return parse_onnx(std::as_bytes(std::span(bytes)), "sum.onnx", ".", import);
}

std::string types(const Result<Model>& model) {
  if (!model.ok()) return model.error().what();
  std::string text;
  for (const ModelValue& input : model->inputs)
    text += fmt::format("{}: {}, ", input.name, input.type.to_string());
  return text + model->outputs[0].type.to_string();
}

TEST(OnnxSizes, AreSymbolsUntilTheyAreSaid) {
  EXPECT_EQ(types(sum(true, {})), "x0: f32[s2, s3], x1: f32[s3], f32[s2, s3]");
  EXPECT_EQ(types(sum(true, {.dims = {{"s3", 7}}})), "x0: f32[s2, 7], x1: f32[7], f32[s2, 7]");
  EXPECT_EQ(types(sum(true, {.shapes = {{"x0", {4, 5}}}})), "x0: f32[4, 5], x1: f32[5], f32[4, 5]");
  EXPECT_EQ(types(sum(true, {.shapes = {{"x1", {5}}}})), "x0: f32[s2, 5], x1: f32[5], f32[s2, 5]");
}

TEST(OnnxSizes, MustFitTheFile) {
  EXPECT_THAT(types(sum(true, {.dims = {{"s4", 1}}})), HasSubstr("no dim 's4'"));
  EXPECT_THAT(types(sum(true, {.shapes = {{"x2", {1}}}})), HasSubstr("no input 'x2'"));
  EXPECT_THAT(types(sum(true, {.shapes = {{"x1", {1, 3}}}})), HasSubstr("has 2 dims, the file 1"));
  EXPECT_THAT(types(sum(false, {.shapes = {{"x1", {4}}}})), says("4 ... axis 0 ... 3"));
  EXPECT_EQ(types(sum(false, {.shapes = {{"x0", {5, 3}}}, .override_shapes = true})),
            "x0: f32[5, 3], x1: f32[3], f32[5, 3]");
}

TEST(OnnxSizes, MayBeSaidByNameAndByShapeIfBothAgree) {
  const std::map<std::string, Ints, std::less<>> shapes = {{"x0", {4, 5}}};
  EXPECT_EQ(types(sum(true, {.dims = {{"s2", 4}, {"s3", 5}}, .shapes = shapes})),
            "x0: f32[4, 5], x1: f32[5], f32[4, 5]");
  EXPECT_THAT(types(sum(true, {.dims = {{"s3", 6}}, .shapes = shapes})),
              AllOf(HasSubstr("5 along axis 1"), HasSubstr("'s3' is given as 6")));
  // A dim without a name goes by that of its symbol.
  File file;
  file.graph.input("x", DType::f32, {"", "a.b"});
  file.graph.node("Neg", {"x"}, {"y"});
  file.graph.outputs({"y"});
  const ImportOptions agreed = {.dims = {{"x_0", 2}, {"a_b", 3}}, .shapes = {{"x", {2, 3}}}};
  EXPECT_EQ(types(file.load(agreed)), "x: f32[2, 3], f32[2, 3]");
  EXPECT_THAT(file.error({.dims = {{"x_0", 4}}, .shapes = {{"x", {2, 3}}}}),
              AllOf(HasSubstr("2 along axis 0"), HasSubstr("'x_0' is given as 4")));
}

TEST(OnnxSizes, MayBeSumsOfOthersByTheirNames) {
  File file;
  file.graph.input("mask", DType::f32, {"past + new"});
  file.graph.input("past", DType::f32, {"past", "2"});
  file.graph.input("q", DType::f32, {"new", "2"});
  file.graph.node("Neg", {"mask"}, {"y"});
  file.graph.outputs({"y"});
  EXPECT_THAT(types(file.load()), HasSubstr("mask: f32[new + past]"));
  EXPECT_THAT(types(file.load({.dims = {{"new", 1}}})), HasSubstr("mask: f32[past + 1]"));
  EXPECT_THAT(types(file.load({.dims = {{"past + new", 3}}})), HasSubstr("mask: f32[3]"));
  EXPECT_THAT(types(file.load({.shapes = {{"mask", {3}}}})), HasSubstr("mask: f32[3]"));
}

TEST(OnnxSizes, NumbersBecomeSymbols) {
  EXPECT_EQ(types(sum(false, {.symbols = {{"x0", {"", "n"}}, {"x1", {"n"}}}})),
            "x0: f32[2, n], x1: f32[n], f32[2, n]");
  EXPECT_THAT(types(sum(false, {.symbols = {{"x0", {"n"}}}})),
              says("input 'x0' ... 2 dims ... 1 names"));
}

TEST(OnnxConstants, TakeThePlaceOfInputs) {
  const Result<Model> model = sum(true, {.constants = {{"x1", reals({3}, {10, 20, 30})}}});
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  EXPECT_EQ(types(model), "x0: f32[s2, 3], f32[s2, 3]");
  const std::vector<Tensor> inputs = {reals({1, 3}, {1, 2, 3})};
  const Result<std::vector<Tensor>> outputs = evaluate_model(*model, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  EXPECT_EQ(numbers((*outputs)[0]), Numbers({11, 22, 33}));
}

TEST(OnnxConstants, MustFitTheFile) {
  EXPECT_THAT(types(sum(true, {.constants = {{"x1", integers({3}, {1, 2, 3})}}})),
              says("constant ... i64 ... f32"));
  EXPECT_THAT(types(sum(false, {.constants = {{"x1", reals({2}, {1, 2})}}})),
              says("2 ... axis 0 ... 3"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
