#include "oracle/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "oracle/size_classes.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Graph graph_of(std::string_view text) { return parse_graph(text).value(); }

std::string shrunk(std::string_view text, const ShrinkOptions& options) {
  const Graph graph = shrink(graph_of(text), options).value().graph;
  EXPECT_TRUE(verify(graph).ok());
  return print(graph);
}

void expect_shrunk(std::string_view text, const ShrinkOptions& options, std::string_view wanted) {
  EXPECT_EQ(shrunk(text, options), print(graph_of(wanted)));
}

// ---- Classes ------------------------------------------------------------------------------------

TEST(SizeClasses, DividesBothSidesOfAReshape) {
  SizeClasses classes(2);
  const int width = classes.add(4096), heads = classes.add(32), head = classes.add(128);
  classes.balance({width}, {heads, head});
  EXPECT_TRUE(classes.divide(width, 2));
  EXPECT_EQ(classes.size(width), 2048);
  EXPECT_EQ(classes.size(heads) * classes.size(head), 2048);
  EXPECT_EQ(classes.size(head), 64);  // the larger one
  EXPECT_TRUE(classes.divide(heads, 2));
  EXPECT_EQ(classes.size(width), 1024);
  classes.reset();
  EXPECT_EQ(classes.size(width), 4096);
}

TEST(SizeClasses, LooksForAnotherWayWhereOneIsShut) {
  SizeClasses classes(2);
  const int a = classes.add(12), b = classes.add(4), c = classes.add(3), d = classes.add(4);
  classes.balance({a}, {b, c});
  classes.join(b, d);
  classes.pin(d);
  EXPECT_FALSE(classes.divide(a, 2));  // 4 stays, and 3 has no 2
  EXPECT_EQ(classes.size(a), 12);
  EXPECT_FALSE(classes.divide(a, 3));  // 3 would become 1
  EXPECT_TRUE(classes.is_pinned(b));
}

TEST(SizeClasses, DividesByWhatAllSizesOfAClassHave) {
  SizeClasses classes(1);
  const int whole = classes.add(12), half = classes.add(6), one = classes.add(1);
  classes.join(whole, half);
  EXPECT_EQ(classes.common(whole), 6);
  EXPECT_TRUE(classes.divide(half, 3));
  EXPECT_EQ(classes.size(whole), 4);
  EXPECT_EQ(classes.size(half), 2);
  EXPECT_FALSE(classes.divide(whole, 5));
  EXPECT_FALSE(classes.divide(one, 2));
}

// ---- Graphs -------------------------------------------------------------------------------------

TEST(Shrink, DividesWhatGoesWithADimOfAnInput) {
  expect_shrunk(R"(graph @f(%x: f32[64, 12], %w: f32[12, 20], %b: f32[20]) {
      %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
      %c = broadcast %b {dims = [64, 20], map = [1]}
      %y = add %h, %c
      return %y })",
                {.divide = {{"x:0", 8}, {"b:0", 5}}},
                R"(graph @f(%x: f32[8, 12], %w: f32[12, 4], %b: f32[4]) {
      %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
      %c = broadcast %b {dims = [8, 4], map = [1]}
      %y = add %h, %c
      return %y })");
}

TEST(Shrink, KeepsTheProductOfAReshapeAndThePartOfASlice) {
  expect_shrunk(R"(graph @f(%x: f32[6, 32]) {
      %r = reshape %x {dims = [6, 4, 8]}
      %s = slice %r {start = [0, 0, 4], limit = [6, 4, 8]}
      %p = pad %s, 0 {low = [0, 0, 2], high = [0, 0, 2]}
      %c = concat %s, %p {axis = 2}
      return %c })",
                {.divide = {{"x:1", 2}}, .keep = {"x:0"}},
                R"(graph @f(%x: f32[6, 16]) {
      %r = reshape %x {dims = [6, 4, 4]}
      %s = slice %r {start = [0, 0, 2], limit = [6, 4, 4]}
      %p = pad %s, 0 {low = [0, 0, 1], high = [0, 0, 1]}
      %c = concat %s, %p {axis = 2}
      return %c })");
}

TEST(Shrink, MakesAScanShorter) {
  const std::string_view text = R"(graph @f(%h: f32[4, 8], %w: f32[6, 8, 8]) {
      %y, %z = scan %h, %w {carried = 1} body (%s: f32[4, 8], %l: f32[8, 8]) {
        %d = dot %s, %l {lhs_contract = [1], rhs_contract = [0]}
        %e = exp %d
        return %d, %e }
      return %y, %z })";
  const Shrunk one = shrink(graph_of(text), {.divide = {{"layers", 3}}}).value();
  EXPECT_EQ(one.graph.input_types()[1].to_string(), "f32[2, 8, 8]");
  EXPECT_EQ(one.graph.output_types()[1].to_string(), "f32[2, 4, 8]");
  ASSERT_EQ(one.changes.size(), 1u);
  EXPECT_EQ(one.changes[0].kind, "layers");
  const Shrunk two = shrink(graph_of(text), {.divide = {{"width", 4}}}).value();
  EXPECT_EQ(two.graph.input_types()[1].to_string(), "f32[6, 2, 2]");
}

TEST(Shrink, ConvolutionsKeepTheirWindows) {
  const Shrunk one = shrink(graph_of(R"(graph @f(%x: f32[2, 8, 16, 16], %w: f32[32, 8, 3, 3]) {
      %y = conv %x, %w {pad_low = [1, 1], pad_high = [1, 1]}
      return %y })"),
                            {.operations = 1})
                         .value();
  EXPECT_EQ(one.graph.input_types()[0].to_string(), "f32[2, 2, 2, 2]");
  EXPECT_EQ(one.graph.input_types()[1].to_string(), "f32[2, 2, 3, 3]");
  EXPECT_LT(one.operations_behind, one.operations_before / 1000);
}

TEST(Shrink, IntegersOfAConstantFixItsSize) {
  const std::string_view text = R"(graph @f(%x: f32[8, 6], %y: f32[8, 6]) {
      %i = constant [7, 6, 5, 4, 3, 2, 1, 0] : i64[8]
      %g = gather %x, %i {offset_dims = [1], collapsed_dims = [0], index_map = [0],
        index_vector_dim = 1, sizes = [1, 6]}
      %s = add %g, %y
      return %s })";
  const ShrinkOptions all = {.operations = 1};
  EXPECT_EQ(shrink(graph_of(text), all).value().graph.output_types()[0].to_string(), "f32[8, 3]");
  EXPECT_THAT(shrink(graph_of(text), {.divide = {{"y:0", 2}}}),
              refuses(ErrorCode::unsupported, "y:0 ... constant"));
}

TEST(Shrink, CutsConstantsOfReals) {
  expect_shrunk(R"(graph @f(%x: f32[4]) {
      %c = constant [1, 2, 3, 4] : f32[4]
      %y = mul %x, %c
      return %y })",
                {.divide = {{"4", 2}}}, R"(graph @f(%x: f32[2]) {
      %c = constant [1, 2] : f32[2]
      %y = mul %x, %c
      return %y })");
}

TEST(Shrink, CutsConstantsOfEightBitFloats) {
  expect_shrunk(
      "graph @g(%x: f32[8]) -> f32[8] {\n"
      "  %c = constant 1 : f8e4m3fn[8]\n  %w = cast %c {dtype = f32} : f32[8]\n"
      "  %y = add %x, %w\n  return %y\n}\n",
      {.divide = {{"x:0", 2}}},
      "graph @g(%x: f32[4]) -> f32[4] {\n"
      "  %c = constant 1 : f8e4m3fn[4]\n  %w = cast %c {dtype = f32} : f32[4]\n"
      "  %y = add %x, %w\n  return %y\n}\n");
}

TEST(Shrink, FollowsComposites) {
  const Shrunk one = shrink(graph_of(R"(graph @f(%x: f32[4, 32], %s: f32[32]) {
      %n = layer_norm %x, %s
      %y = softmax %n
      return %y })"),
                            {.divide = {{"s:0", 8}}})
                         .value();
  EXPECT_EQ(one.graph.output_types()[0].to_string(), "f32[4, 4]");
}

TEST(Shrink, SaysWhatItCannotDivide) {
  const Graph graph = graph_of("graph @f(%x: f32[6, 5]) { %y = exp %x return %y }");
  EXPECT_THAT(shrink(graph, {.divide = {{"x:2", 2}}}), refuses(ErrorCode::usage, "x ... 2 dims"));
  EXPECT_THAT(shrink(graph, {.divide = {{"z:0", 2}}}), refuses(ErrorCode::usage, "'z'"));
  EXPECT_THAT(shrink(graph, {.divide = {{"7", 7}}}), refuses(ErrorCode::usage, "size 7"));
  EXPECT_THAT(shrink(graph, {.keep = {"height"}}), refuses(ErrorCode::usage, "height"));
  EXPECT_THAT(shrink(graph, {.divide = {{"x:0", 4}}}),
              refuses(ErrorCode::unsupported, "x:0 ... 4 ... 6"));
}

}  // namespace
}  // namespace hone::HONE_FILE
