#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "front/hlo/hlo.h"
#include "ir/reference/evaluate.h"
#include "tests/base/says_testing.h"

// Programs of StableHLO whose sizes are open: '?'.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Result<Model> read(std::string_view parameters, std::string_view body, std::string_view type) {
  return parse_hlo(fmt::format("func.func @main({}) -> {} {{\n{}\n  return %r : {}\n}}\n",
                               parameters, type, body, type),
                   "p");
}

std::string signature_of(const Result<Model>& model) {
  if (!model.ok()) return model.error().to_string();
  std::string text;
  for (const ModelValue& input : model->inputs) text += input.type.to_string() + " ";
  for (const ModelValue& output : model->outputs) text += "-> " + output.type.to_string();
  return text;
}

// The result for inputs of ones of these types.
std::string result_of(const Result<Model>& model, std::span<const Type> types) {
  if (!model.ok()) return model.error().to_string();
  std::vector<Tensor> inputs;
  for (const Type type : types)
    inputs.push_back(Tensor::from_reals(
        type, std::vector<double>(static_cast<size_t>(type.static_elements()), 1)));
  const Result<std::vector<Tensor>> results = evaluate(*single_graph(*model), inputs);
  if (!results.ok()) return results.error().to_string();
  std::vector<std::string> numbers;
  for (int64_t i = 0; i < results->front().elements(); ++i)
    numbers.push_back(fmt::format("{}", results->front().real_at(i)));
  return fmt::format("{} {}", results->front().type().to_string(), join(numbers, " "));
}

TEST(StablehloSizes, OpenOnesAreSymbolsThatOpsMakeEqual) {
  const Result<Model> model =
      read("%x: tensor<?x3xf32>, %y: tensor<?x?xf32>",
           "  %r = stablehlo.add %x, %y : (tensor<?x3xf32>, tensor<?x?xf32>) -> tensor<?x3xf32>",
           "tensor<?x3xf32>");
  EXPECT_EQ(signature_of(model), "f32[x_0, 3] f32[x_0, 3] -> f32[x_0, 3]");
}

TEST(StablehloSizes, OfResultsFollowFromSizesOfInputs) {
  const Result<Model> model =
      read("%x: tensor<?x4xf32>",
           "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>\n"
           "  %two = stablehlo.constant dense<2> : tensor<i32>\n"
           "  %m = stablehlo.multiply %n, %two : tensor<i32>\n"
           "  %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>\n"
           "  %c = stablehlo.constant dense<2> : tensor<1xi32>\n"
           "  %s = stablehlo.concatenate %m1, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
           "tensor<2xi32>\n"
           "  %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x4xf32>, tensor<2xi32>) -> "
           "tensor<?x2xf32>",
           "tensor<?x2xf32>");
  EXPECT_EQ(signature_of(model), "f32[x_0, 4] -> f32[2*x_0, 2]");
  const std::vector<Type> three = {Type::get(DType::f32, {1, 4})};
  EXPECT_EQ(result_of(model, three), "f32[2, 2] 1 1 1 1");
}

TEST(StablehloSizes, AreSpreadCountedAndCut) {
  const Result<Model> model = read(
      "%x: tensor<?xf32>",
      "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
      "  %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
      "  %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n"
      "  %one = stablehlo.constant dense<1> : tensor<1xi32>\n"
      "  %c = stablehlo.real_dynamic_slice %i, %one, %s, %one : (tensor<?xf32>, tensor<1xi32>, "
      "tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>\n"
      "  %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
      "  %r = stablehlo.reduce(%c init: %z) applies stablehlo.add across dimensions = [0] : "
      "(tensor<?xf32>, tensor<f32>) -> tensor<f32>",
      "tensor<f32>");
  const std::vector<Type> four = {Type::get(DType::f32, {4})};
  EXPECT_EQ(result_of(model, four), "f32[] 6");
}

// As JAX writes a cumulative sum along an open dim: the window is as long as the dim.
TEST(StablehloSizes, OfWindowsAreOperands) {
  const auto cumulative = [](std::string_view low) {
    return parse_hlo(
        fmt::format(
            "module {{\n"
            "func.func private @add(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {{\n"
            "  %c = stablehlo.add %a, %b : tensor<f32>\n  return %c : tensor<f32>\n}}\n"
            "func.func @main(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {{\n"
            "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>\n"
            "  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
            "  %one = stablehlo.constant dense<1> : tensor<1xi32>\n"
            "  %w = stablehlo.concatenate %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
            "tensor<2xi32>\n"
            "  %m = stablehlo.constant dense<{}> : tensor<1xi32>\n"
            "  %low = stablehlo.add %n1, %m : tensor<1xi32>\n"
            "  %zero = stablehlo.constant dense<0> : tensor<1xi32>\n"
            "  %p = stablehlo.concatenate %low, %zero, %zero, %zero, dim = 0 : (tensor<1xi32>, "
            "tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<4xi32>\n"
            "  %q = stablehlo.reshape %p : (tensor<4xi32>) -> tensor<2x2xi32>\n"
            "  %ones = stablehlo.constant dense<1> : tensor<2xi32>\n"
            "  %i = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "  %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %i, %w, %ones, "
            "%ones, %ones, %q) {{called_computations = [@add]}} : (tensor<?x2xf32>, tensor<f32>, "
            "tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2x2xi32>) -> "
            "tensor<?x2xf32>\n  return %r : tensor<?x2xf32>\n}}\n}}\n",
            low),
        "p");
  };
  const std::vector<Type> three = {Type::get(DType::f32, {3, 2})};
  EXPECT_EQ(result_of(cumulative("-1"), three), "f32[3, 2] 1 1 2 2 3 3");
  EXPECT_THAT(cumulative("0"), refuses(ErrorCode::unsupported, "p:18 ... not cumulative"));
}

// The padding of a convolution may speak of sizes: as many zeros in front as there are elements.
TEST(StablehloSizes, PadConvolutions) {
  const Result<Model> model =
      read("%x: tensor<1x?x1xf32>",
           "  %n = stablehlo.get_dimension_size %x, dim = 1 : (tensor<1x?x1xf32>) -> tensor<i32>\n"
           "  %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>\n"
           "  %one = stablehlo.constant dense<1> : tensor<1xi32>\n"
           "  %p = stablehlo.concatenate %n1, %one, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> "
           "tensor<2xi32>\n"
           "  %q = stablehlo.reshape %p : (tensor<2xi32>) -> tensor<1x2xi32>\n"
           "  %w = stablehlo.constant dense<[[[1.0]], [[10.0]]]> : tensor<2x1x1xf32>\n"
           "  %r = \"stablehlo.dynamic_conv\"(%x, %w, %q) <{batch_group_count = 1 : i64, "
           "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, "
           "feature_group_count = 1 "
           ": i64, lhs_dilation = array<i64: 2>, window_strides = array<i64: 1>}> : "
           "(tensor<1x?x1xf32>, tensor<2x1x1xf32>, tensor<1x2xi32>) -> tensor<1x?x1xf32>",
           "tensor<1x?x1xf32>");
  // 0 0 1 0 1 0, two neighbours each.
  const std::vector<Type> two = {Type::get(DType::f32, {1, 2, 1})};
  EXPECT_EQ(result_of(model, two), "f32[1, 5, 1] 0 10 1 10 1");
}

// A size that follows from none in general may follow from a number.
TEST(StablehloSizes, MayBeGivenBeforeTheImport) {
  constexpr std::string_view kText =
      "func.func @main(%x: tensor<?xf32>) -> tensor<?xi32> {\n"
      "  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>\n"
      "  %k = stablehlo.popcnt %n : tensor<i32>\n"
      "  %s = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>\n"
      "  %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>\n"
      "  return %r : tensor<?xi32>\n}\n";
  EXPECT_THAT(parse_hlo(kText, "p"), refuses(ErrorCode::unsupported, "p:5 ... depends on data"));
  const std::vector<Type> seven = {Type::get(DType::f32, {7})};
  EXPECT_EQ(result_of(parse_hlo(kText, "p", {.dims = {{"x_0", 7}}}), seven), "i32[3] 0 1 2");
  EXPECT_EQ(result_of(parse_hlo(kText, "p", {.shapes = {{"x", {7}}}}), seven), "i32[3] 0 1 2");
  EXPECT_THAT(parse_hlo(kText, "p", {.dims = {{"x_0", 0}}}),
              refuses(ErrorCode::bad_input, "p:1 ... x_0"));
}

TEST(StablehloSizes, KnownNumbersDecideOpenOnes) {
  const Result<Model> model =
      read("%x: tensor<?xf32>, %y: tensor<3xf32>",
           "  %r = stablehlo.add %x, %y : (tensor<?xf32>, tensor<3xf32>) -> tensor<3xf32>",
           "tensor<3xf32>");
  EXPECT_EQ(signature_of(model), "f32[3] f32[3] -> f32[3]");
}

TEST(StablehloSizes, RefusesWhatDependsOnData) {
  EXPECT_THAT(
      read("%x: tensor<4xf32>, %s: tensor<1xi32>",
           "  %r = stablehlo.dynamic_reshape %x, %s : (tensor<4xf32>, tensor<1xi32>) -> "
           "tensor<?xf32>",
           "tensor<?xf32>"),
      refuses(ErrorCode::unsupported, "p:2 ... stablehlo.dynamic_reshape ... depends on data"));
  EXPECT_THAT(read("%x: tensor<?xf32>",
                   "  %r = \"stablehlo.triangular_solve\"(%x, %x) : (tensor<?xf32>, tensor<?xf32>) "
                   "-> tensor<?xf32>",
                   "tensor<?xf32>"),
              refuses(ErrorCode::unsupported, "p:2 ... triangular_solve ... open"));
}

TEST(StablehloSizes, RefusesLiteralsOfOpenSizes) {
  EXPECT_FALSE(
      read("", "  %r = stablehlo.constant dense<1> : tensor<?xf32>", "tensor<?xf32>").ok());
  EXPECT_THAT(parse_hlo("module attributes {hone.symbols = \"N 4 2 1\"} { func.func @main(%x: "
                        "tensor<?xf32> {hone.dims = \"N\"}) -> tensor<?xf32> { return %x : "
                        "tensor<?xf32> } }",
                        "p"),
              refuses(ErrorCode::bad_input, "hone.symbols ... N 4 2 1"));
}

}  // namespace
}  // namespace hone::HONE_FILE
