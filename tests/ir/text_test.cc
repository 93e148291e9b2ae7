#include "ir/text.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "tests/ir/text_testing.h"

namespace hone::HONE_FILE {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Text, AGraphPrintsAsItReads) {
  expect_canonical(
      "graph @mlp(%x: f32[N, 784], %cache: f32[N, 8] donate 1) -> (f32[N, 784], f32[N, 8]) "
      "where N in 1..64 step 4 {\n"
      "  %2 = neg %x : f32[N, 784]\n"
      "  %h = add %x, %2 : f32[N, 784]\n"
      "  %c = exp %cache : f32[N, 8]\n"
      "  return %h, %c\n"
      "}\n");
}

TEST(Text, BlanksCommentsAndTypesAreOptional) {
  Graph graph = parse_ok(
      "# a comment\n"
      "graph @f(%x:f32[3])->f32[3]{%y=neg %x # why\n%z=add %x,%y return %z}");
  EXPECT_EQ(print(graph),
            "graph @f(%x: f32[3]) -> f32[3] {\n"
            "  %y = neg %x : f32[3]\n"
            "  %z = add %x, %y : f32[3]\n"
            "  return %z\n"
            "}\n");
  EXPECT_EQ(print(parse_ok("graph @f(%x: f32[3]) { %y = neg %x return %y }")),
            "graph @f(%x: f32[3]) -> f32[3] {\n"
            "  %y = neg %x : f32[3]\n"
            "  return %y\n"
            "}\n");
}

TEST(Text, AGraphMayHaveNothing) { expect_canonical("graph @f() -> () {\n  return\n}\n"); }

TEST(Text, ManyParametersStandOnLinesOfTheirOwn) {
  expect_canonical(
      "graph @f(\n"
      "    %a: f32[],\n    %b: f32[],\n    %c: f32[],\n    %d: f32[],\n    %e: f32[],\n"
      "    %f: f32[],\n    %g: f32[]) -> f32[] {\n"
      "  return %a\n"
      "}\n");
}

TEST(Text, OddNamesAreQuoted) {
  expect_canonical(
      "graph @\"my graph\"(%\"x:0\": f32[], %layer3/attn.q-proj: f32[], %\"3\": f32[], "
      "%\"a\\\"\\\\\\n\\xff\": f32[]) -> f32[] {\n"
      "  %4 = neg %\"3\" : f32[]\n"
      "  %_ = add %4, %\"x:0\" : f32[]\n"
      "  return %_\n"
      "}\n");
}

TEST(Text, UnnamedValuesStayUnnamed) {
  Graph graph = parse_ok("graph @f(%0: f32[]) { %7 = neg %0  %1 = exp %7  return %1 }");
  EXPECT_EQ(graph.name(ValueId{1}), "");
  EXPECT_EQ(print(graph),
            "graph @f(%0: f32[]) -> f32[] {\n"
            "  %1 = neg %0 : f32[]\n"
            "  %2 = exp %1 : f32[]\n"
            "  return %2\n"
            "}\n");
}

TEST(Text, AParameterBehindOtherNodesKeepsItsPlace) {
  expect_canonical(
      "graph @f(%x: f32[]) -> f32[] {\n"
      "  %y = neg %x : f32[]\n"
      "  %z = parameter donate 0 : f32[]\n"
      "  %w = add %y, %z : f32[]\n"
      "  return %w\n"
      "}\n");
}

TEST(Text, AttributesEqualToTheirDefaultsAreLeftOut) {
  expect_canonical(
      "graph @f(%x: i32[2, 3]) -> bool[2, 3] {\n"
      "  %i = iota {dtype = i32, dims = [2, 3], axis = 1} : i32[2, 3]\n"
      "  %c = compare %i, %x {direction = lt} : bool[2, 3]\n"
      "  return %c\n"
      "}\n");
}

TEST(Text, SymbolsOfAttributesAreDeclared) {
  expect_canonical(
      "graph @f() -> i32[2*N + 1] where N in 0..8 {\n"
      "  %0 = iota {dtype = i32, dims = [2*N + 1], axis = 0} : i32[2*N + 1]\n"
      "  return %0\n"
      "}\n");
}

TEST(Text, ANumberCanStandForAnOperand) {
  Graph graph = parse_ok("graph @f(%x: f32[]) { %y = max %x, 0  %z = sub 1.5, %y  return %z }");
  EXPECT_EQ(print(graph),
            "graph @f(%x: f32[]) -> f32[] {\n"
            "  %1 = constant 0 : f32[]\n"
            "  %y = max %x, %1 : f32[]\n"
            "  %3 = constant 1.5 : f32[]\n"
            "  %z = sub %3, %y : f32[]\n"
            "  return %z\n"
            "}\n");
}

TEST(Text, AStretchedNumberBecomesABroadcast) {
  Graph graph = parse_ok(
      "graph @f(%x: f32[N, 3], %p: bool[N, 3]) where N in 1..4 { %y = select %p, %x, -inf return "
      "%y "
      "}");
  EXPECT_EQ(print(graph),
            "graph @f(%x: f32[N, 3], %p: bool[N, 3]) -> f32[N, 3] where N in 1..4 {\n"
            "  %2 = constant -inf : f32[]\n"
            "  %3 = broadcast %2 {dims = [N, 3], map = []} : f32[N, 3]\n"
            "  %y = select %p, %x, %3 : f32[N, 3]\n"
            "  return %y\n"
            "}\n");
}

TEST(Text, RegionsAreIndented) {
  expect_canonical(
      "graph @f(%p: bool[], %x: f32[N]) -> f32[N] where N in 1..8 {\n"
      "  %r = if %p, %x then (%a: f32[N]) {\n"
      "    %n = neg %a : f32[N]\n"
      "    return %n\n"
      "  } else @keep(%0: f32[N]) {\n"
      "    return %0\n"
      "  } : f32[N]\n"
      "  return %r\n"
      "}\n");
}

TEST(Text, AnOpMayHaveSeveralResultsOrNone) {
  expect_canonical(
      "graph @f(%i: i32[], %x: f32[4]) -> (i32[], f32[4]) {\n"
      "  while condition () {\n"
      "    %0 = constant false : bool[]\n"
      "    return %0\n"
      "  } body () {\n"
      "    return\n"
      "  }\n"
      "  %j, %y = while %i, %x condition (%0: i32[], %1: f32[4]) {\n"
      "    %2 = constant 3 : i32[]\n"
      "    %3 = compare %0, %2 {direction = lt} : bool[]\n"
      "    return %3\n"
      "  } body (%0: i32[], %1: f32[4]) {\n"
      "    %2 = constant 1 : i32[]\n"
      "    %3 = add %0, %2 : i32[]\n"
      "    %4 = exp %1 : f32[4]\n"
      "    return %3, %4\n"
      "  } : i32[], f32[4]\n"
      "  return %j, %y\n"
      "}\n");
}

TEST(Text, SymbolsThatOnlyARegionHasAreDeclared) {
  expect_canonical(
      "graph @f(%p: bool[]) -> i32[] where N in 1..8 {\n"
      "  %r = if %p then () {\n"
      "    %i = iota {dtype = i32, dims = [N], axis = 0} : i32[N]\n"
      "    %c = constant 2 : i32[]\n"
      "    return %c\n"
      "  } else () {\n"
      "    %c = constant 1 : i32[]\n"
      "    return %c\n"
      "  } : i32[]\n"
      "  return %r\n"
      "}\n");
}

TEST(Text, AbsentOperandsAreUnderscores) {
  expect_canonical(
      "graph @f(%x: f32[5, 2, 3], %w: f32[1, 16, 3], %r: f32[1, 16, 4], %h: f32[1, 2, 4]) -> "
      "f32[5, 1, 2, 4] {\n"
      "  %y, %5, %6 = lstm %x, %w, %r, _, _, %h : f32[5, 1, 2, 4], f32[1, 2, 4], f32[1, 2, 4]\n"
      "  return %y\n"
      "}\n");
}

TEST(Text, AnOpWithoutOperandsEndsBeforeTheNextStatement) {
  Graph graph = parse_ok("graph @f() { %d = device_index %e = neg %d return %e }");
  EXPECT_EQ(graph.node_count(), 2U);
}

TEST(Text, AttributesOfAllKindsReadBack) {
  expect_canonical(
      "graph @f(%x: f32[2, 3], %y: f32[3, 4]) -> f32[2, 4] {\n"
      "  %a = layer_norm %x {epsilon = 0.001} : f32[2, 3]\n"
      "  %b = cast %y {dtype = bf16} : bf16[3, 4]\n"
      "  %c = cumulative %a {kind = sum, axis = 1, reverse = true} : f32[2, 3]\n"
      "  %d = einsum %c, %y {equation = \"ab,bc->ac\"} : f32[2, 4]\n"
      "  return %d\n"
      "}\n");
}

// ---- Constants -------------------------------------------------------------------------------

Graph constant_graph(Tensor tensor) {
  Graph graph("f");
  graph.set_outputs({graph.add_constant(std::move(tensor), "c")});
  return graph;
}

// The text between "constant" and the type.
std::string constant_text(Tensor tensor) {
  std::string text = print(constant_graph(std::move(tensor)));
  size_t begin = text.find("constant ") + 9;
  return text.substr(begin, text.find(" : ", begin) - begin);
}

void expect_constant(Tensor tensor, std::string_view text) {
  EXPECT_EQ(constant_text(tensor), text);
  Graph graph = constant_graph(tensor);
  expect_identical(parse_ok(print(graph)), graph);
}

Tensor reals(DType dtype, std::vector<double> values) {
  return Tensor::from_reals(Type::get(dtype, {static_cast<int64_t>(values.size())}), values);
}
Tensor integers(DType dtype, std::vector<int64_t> values) {
  return Tensor::from_integers(Type::get(dtype, {static_cast<int64_t>(values.size())}), values);
}

TEST(TextConstant, SmallOnesAreNumbersThatReadBack) {
  expect_constant(Tensor::scalar(DType::f32, 0.1), "0.1");
  expect_constant(reals(DType::f32, {1, 2.5, kNan, kInf, -kInf, -0.0, 1e-45}),
                  "[1, 2.5, nan, inf, -inf, -0, 1e-45]");
  expect_constant(reals(DType::f64, {0.1, 1e300, 5e-324}), "[0.1, 1e+300, 5e-324]");
  expect_constant(reals(DType::f16, {0.5, 65504, 6e-8}), "[0.5, 65504, 5.9604645e-08]");
  expect_constant(reals(DType::bf16, {1.5, -3}), "[1.5, -3]");
  expect_constant(reals(DType::f8e4m3fn, {448, kNan}), "[448, nan]");
  expect_constant(reals(DType::f8e5m2fnuz, {0.25, kNan}), "[0.25, nan]");
  expect_constant(integers(DType::i64, {INT64_MIN, INT64_MAX}),
                  "[-9223372036854775808, 9223372036854775807]");
  expect_constant(integers(DType::u64, {-1, 7}), "[18446744073709551615, 7]");
  expect_constant(integers(DType::i4, {-8, 7, 1}), "[-8, 7, 1]");
  expect_constant(integers(DType::u4, {15, 0}), "[15, 0]");
  expect_constant(integers(DType::i2, {-2, 1, 0, -1, 1}), "[-2, 1, 0, -1, 1]");
  expect_constant(integers(DType::u2, std::vector<int64_t>(7, 3)), "3");
  expect_constant(reals(DType::f4e2m1, {-1.5, 6, 0.5}), "[-1.5, 6, 0.5]");
  expect_constant(reals(DType::f4e2m1, std::vector<double>(5, -3)), "-3");
  expect_constant(reals(DType::f8e8m0, {0.25, 0}), "[0.25, 5.877472e-39]");
  expect_constant(integers(DType::boolean, {1, 0}), "[true, false]");
  expect_constant(Tensor::zeros(Type::get(DType::f32, {0, 3})), "[]");
}

TEST(TextConstant, EqualElementsAreOneNumber) {
  expect_constant(Tensor::zeros(Type::get(DType::f32, {100, 100})), "0");
  expect_constant(reals(DType::f16, std::vector<double>(50, kInf)), "inf");
  expect_constant(integers(DType::i4, std::vector<int64_t>(5, -3)), "-3");
  expect_constant(integers(DType::boolean, std::vector<int64_t>(40, 1)), "true");
}

TEST(TextConstant, LargeOnesAreHexWithoutATable) {
  std::vector<int64_t> values;
  std::string digits;
  for (int i = 0; i < 17; ++i) {
    values.push_back(i);
    digits += fmt::format("{:02x}", i);
  }
  expect_constant(integers(DType::u8, values), "hex \"" + digits + "\"");
  // 0x21, 0x03: low half first.
  PrintOptions options{.inline_elements = 0};
  Graph packed = constant_graph(integers(DType::u4, {1, 2, 3}));
  EXPECT_NE(print(packed, options).find("hex \"2103\""), std::string::npos);
  expect_identical(parse_ok(print(packed, options)), packed);
}

TEST(TextConstant, NansWithAPayloadAreHex) {
  std::vector<float> values = {1, std::bit_cast<float>(0x7fc00001U)};
  expect_constant(Tensor::of<float>(Type::get(DType::f32, {2}), values),
                  "hex \"0000803f0100c07f\"");
  values = {std::bit_cast<float>(0xffc00000U), std::bit_cast<float>(0xffc00000U)};
  expect_constant(Tensor::of<float>(Type::get(DType::f32, {2}), values),
                  "hex \"0000c0ff0000c0ff\"");
}

TEST(TextConstant, LargeOnesGoToTheTable) {
  std::vector<double> values(20);
  for (size_t i = 0; i < 20; ++i) values[i] = static_cast<double>(i) / 4;
  Graph graph("f");
  ValueId a = graph.add_constant(reals(DType::f32, values), "w 1");
  ValueId b = graph.add_constant(reals(DType::f16, values));
  graph.set_outputs({a, b});
  WeightTable table;
  std::string text = print(graph, {.weights = &table});
  EXPECT_EQ(text,
            "graph @f() -> (f32[20], f16[20]) {\n"
            "  %\"w 1\" = constant @w_1 : f32[20]\n"
            "  %1 = constant @c1 : f16[20]\n"
            "  return %\"w 1\", %1\n"
            "}\n");
  ASSERT_EQ(table.entries().size(), 2U);
  expect_identical(*parse_graph(text, {.weights = &table}), graph);
}

TEST(TextConstant, NamesInTheTableArePlain) {
  auto table_name = [](std::string_view name) {
    Graph graph("f");
    std::vector<int64_t> values(20);
    values[1] = 1;
    graph.set_outputs({graph.add_constant(integers(DType::u8, values), name)});
    WeightTable table;
    expect_identical(*parse_graph(print(graph, {.weights = &table}), {.weights = &table}), graph);
    return table.entries()[0].name;
  };
  EXPECT_EQ(table_name("layer1/w.q-0"), "layer1/w.q-0");
  EXPECT_EQ(table_name("/model/x:0"), "_model/x_0");
  // A mark at the front or after a mark gives way, so no part of a path is "." or "..".
  EXPECT_EQ(table_name("../../etc"), "_._._/etc");
  EXPECT_EQ(table_name("a/./b/"), "a/_/b_");
  EXPECT_EQ(table_name("0"), "_0");
}

TEST(TextConstant, TheTableKeepsNamesApart) {
  WeightTable table;
  EXPECT_EQ(table.add("w", Tensor::scalar(DType::f32, 1)), "w");
  EXPECT_EQ(table.add("w", Tensor::scalar(DType::f32, 2)), "w.1");
  EXPECT_EQ(table.add("w.2", Tensor::scalar(DType::f32, 3)), "w.2");
  EXPECT_EQ(table.add("w", Tensor::scalar(DType::f32, 4)), "w.3");
  EXPECT_EQ(table.find("w.3")->real_at(0), 4);
  EXPECT_EQ(table.find("v"), nullptr);
}

TEST(TextConstant, RawBytesStandForTypesThatNumpyLacks) {
  std::vector<double> values(20, 1.5);
  values[3] = 2;
  Tensor tensor = reals(DType::bf16, values);
  WeightTable table;
  table.add("w", tensor.viewed_as(Type::get(DType::u8, {40})));
  Graph graph =
      *parse_graph("graph @f() { %c = constant @w : bf16[20] return %c }", {.weights = &table});
  EXPECT_TRUE(graph.constant(NodeId{0}).same_bytes(tensor));
}

TEST(TextConstant, LargeOnesCanBeLeftOut) {
  Graph graph = constant_graph(integers(DType::i8, std::vector<int64_t>(17, 1)));
  EXPECT_NE(print(graph, {.elide = true}).find("constant 1 : i8[17]"), std::string::npos);
  std::vector<int64_t> values(17);
  values[0] = 1;
  EXPECT_NE(print(constant_graph(integers(DType::i8, values)), {.elide = true})
                .find("constant ... : i8[17]"),
            std::string::npos);
}

TEST(TextConstant, LazyOnesAreNotReadForPrintingToATable) {
  bool filled = false;
  Tensor lazy =
      Tensor::lazy(Type::get(DType::f32, {1000}), 1, [&](std::span<std::byte>) { filled = true; });
  WeightTable table;
  EXPECT_NE(print(constant_graph(lazy), {.weights = &table}).find("@c"), std::string::npos);
  EXPECT_FALSE(filled);
}

}  // namespace
}  // namespace hone::HONE_FILE
