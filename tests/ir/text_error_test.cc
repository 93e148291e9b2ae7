#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/base/says_testing.h"
#include "tests/ir/text_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

// The error of a body inside of `graph @f(%x: f32[2, 3]) {`, which ends at column 27.
std::string body_error(std::string_view body) {
  return parse_error(fmt::format("graph @f(%x: f32[2, 3]) {{\n{}", body));
}

TEST(TextError, NamesWhatIsExpectedAndWhatIsFound) {
  EXPECT_THAT(parse_error(""), says("1:1: ... 'graph' ... end of the text"));
  EXPECT_EQ(parse_error("grph @f"), "1:1: expected 'graph', found 'grph'");
  EXPECT_THAT(parse_error("graph f"), says("1:7: ... name of the graph ... 'f'"));
  EXPECT_EQ(parse_error("graph @f(%x f32[])"), "1:13: expected ':', found 'f32'");
  EXPECT_EQ(parse_error("graph @f(%x: f32)"), "1:17: expected '[' after 'f32', found ')'");
  EXPECT_THAT(parse_error("graph @f() { return } x"), says("1:23: ... end of the text ... 'x'"));
  EXPECT_THAT(parse_error("graph @f() {\n"),
              says("2:1: ... statement ... 'return' ... end of the text"));
  EXPECT_EQ(parse_error("graph @f() ->\n\t\x01"), "2:2: expected a type, found '\\x01'");
  EXPECT_THAT(parse_error("graph @\"f\n() { return }"), says("1:7: ... name of the graph ... '@'"));
  EXPECT_THAT(body_error("%y = "), says("2:6: ... op ... end of the text"));
  EXPECT_EQ(body_error("%y = add %x, }"), "2:14: expected an operand, found '}'");
}

TEST(TextError, CountsColumnsInCharacters) {
  EXPECT_EQ(body_error("%\"\xc3\xa9\" = foo"), "2:8: there is no op 'foo'");
}

TEST(TextError, SuggestsNames) {
  EXPECT_EQ(body_error("%y = ngg %x"), "2:6: there is no op 'ngg'; did you mean 'neg'?");
  EXPECT_EQ(body_error("%hidden = neg %x  %y = neg %hiden"),
            "2:28: %hiden is not defined here; did you mean 'hidden'?");
  EXPECT_EQ(body_error("%y = compare %x, %x {direktion = lt}"),
            "2:22: compare has no attribute 'direktion'; did you mean 'direction'?");
  EXPECT_THAT(parse_error("graph @f(%x: f23[])"),
              says("1:14: ... 'f23' ... element type ... 'f32'"));
}

TEST(TextError, LabelsMustBeDefinedOnce) {
  EXPECT_EQ(body_error("%x = neg %x return %x }"), "2:1: %x is defined twice");
  EXPECT_EQ(body_error("%1 = neg %x %1 = neg %x return %x }"), "2:13: %1 is defined twice");
  EXPECT_EQ(body_error("return %3 }"), "2:8: %3 is not defined here");
  EXPECT_EQ(body_error("%a, %b = neg %x return %x }"), "2:10: neg has 1 results, 2 are named");
}

TEST(TextError, StatedTypesMustBeRight) {
  EXPECT_THAT(body_error("%y = neg %x : f32[2, 4]"),
              says("2:15: ... %y ... f32[2, 3] ... f32[2, 4]"));
  EXPECT_THAT(parse_error("graph @f(%x: f32[3]) -> f32[4] { return %x }"),
              says("1:25: ... output 0 ... f32[3] ... f32[4]"));
  EXPECT_THAT(parse_error("graph @f(%x: f32[3]) -> () { return %x }"),
              says("1:22: ... 1 values ... 0"));
  EXPECT_THAT(
      parse_error("graph @f(%x: f32[3, M]) { return %x }"),
      says("1:20: ... dim \"M\" ... 'M' ... not declared ... column 1 ... where N in 1..64"));
}

TEST(TextError, InferenceErrorsHaveTheirPlace) {
  std::string text = body_error("%c = constant 1 : f32[]\n%y = add %x, %c");
  EXPECT_TRUE(text.starts_with("3:6: add: ")) << text;
}

TEST(TextError, SymbolsMustMakeSense) {
  auto error = [](std::string_view where) {
    return parse_error(fmt::format("graph @f() where {} {{ return }}", where));
  };
  EXPECT_THAT(error("N in 4..1"), says("1:18: ... symbol 'N' ... 4..1"));
  EXPECT_EQ(error("N in 1..9, N in 1..9"), "1:29: symbol 'N' is declared twice");
  EXPECT_THAT(error("N in 5..7 step 8"), says("1:18: ... symbol 'N' ... multiple of 8 ... 5..7"));
  EXPECT_EQ(error("N in 5..7 step 0"), "1:18: symbol 'N' is a multiple of 0");
  EXPECT_THAT(error("N in 0..9223372036854775807"),
              says("1:18: ... symbol 'N' ... 0..9223372036854775807"));
  EXPECT_EQ(error("N of"), "1:20: expected 'in', found 'of'");
}

TEST(TextError, DonationsMustNameOutputs) {
  EXPECT_THAT(parse_error("graph @f(%x: f32[] donate 1) { return %x }"),
              says("1:27: ... output 1 ... 1"));
  EXPECT_THAT(parse_error("graph @f(%x: f32[] donate -1) { return %x }"),
              says("1:27: ... output -1"));
}

TEST(TextError, ConstantsMustFitTheirTypes) {
  auto error = [](std::string_view rest) {
    return parse_error(fmt::format("graph @f() {{\n%c = constant {} return %c }}", rest));
  };
  EXPECT_THAT(error("[1, 2] : f32[3]"), says("2:15: ... 2 numbers ... f32[3] ... 3 elements"));
  EXPECT_EQ(error("256 : u8[]"), "2:15: 256 is out of range: u8 holds 0 to 255");
  EXPECT_EQ(error("-129 : i8[]"), "2:15: -129 is out of range: i8 holds -128 to 127");
  EXPECT_THAT(error("-1 : u64[]"),
              says("2:15: ... -1 ... integer ... u64 ... 0 to 18446744073709551615"));
  EXPECT_THAT(error("1.5 : i32[]"),
              says("2:15: ... 1.5 ... integer ... i32 ... -2147483648 to 2147483647"));
  EXPECT_THAT(error("1 : bool[]"), says("2:15: ... '1' ... true ... false"));
  EXPECT_EQ(error("true : f32[]"), "2:15: 'true' is not a number");
  EXPECT_THAT(error("hex \"00\" : f32[]"), says("2:15: ... 2 hex digits ... f32[] ... 4 bytes"));
  EXPECT_EQ(error("hex \"0g\" : u8[]"), "2:15: '0g' is not hex");
  EXPECT_THAT(error("hex \"02\" : bool[]"), says("2:15: ... byte 0 ... 02 ... bool"));
  EXPECT_THAT(error("hex \"f1\" : u4[1]"), says("2:15: ... unused bits ... last byte"));
  EXPECT_THAT(error("... : f32[9]"), says("2:15: ... numbers ... constant"));
  EXPECT_THAT(error("@w : f32[9]"), says("2:15: ... weight 'w' ... without weights"));
  EXPECT_EQ(error("1"), "2:17: expected ':', found 'return'");
}

TEST(TextError, WeightsMustBeThere) {
  WeightTable table;
  table.add("w1", Tensor::zeros(Type::get(DType::f32, {3})));
  auto error = [&](std::string_view rest) {
    return parse_graph(fmt::format("graph @f() {{ %c = constant {} return %c }}", rest),
                       {.weights = &table})
        .error()
        .what();
  };
  EXPECT_EQ(error("@w2 : f32[3]"), "there is no weight 'w2'");
  EXPECT_THAT(error("@w1 : f32[4]"), says("weight 'w1' ... f32[3] ... f32[4]"));
}

TEST(TextError, ANumberNeedsAType) {
  EXPECT_THAT(body_error("%y = add 1, 2"), says("2:10: ... operand ... type ... 1"));
}

TEST(TextError, RegionsAreClosedAndNamed) {
  EXPECT_EQ(body_error("%p = constant true : bool[] %y = if %p then () { return %x }"),
            "2:57: %x is not defined here");
  EXPECT_EQ(body_error("%p = constant true : bool[] %y = if %p than () { return }"),
            "2:40: expected 'then', found 'than'");
  EXPECT_EQ(body_error("%p = constant true : bool[] %y = if %p return %y }"),
            "2:40: expected 'then', found 'return'");
}

TEST(TextError, ANumberCannotStandForEveryOperand) {
  EXPECT_THAT(body_error("%y = reverse 1 {axes = []}"),
              says("2:14: ... reverse ... number ... operand ... constant"));
}

TEST(TextError, AttributesAreChecked) {
  EXPECT_EQ(body_error("%y = compare %x, %x {direction}"),
            "2:22: expected 'name = value', found 'direction'");
  EXPECT_EQ(body_error("%y = compare %x, %x {direction = lt, direction = gt}"),
            "2:37: attribute 'direction' is given twice");
  EXPECT_THAT(body_error("%y = compare %x, %x {direction = lt"),
              says("2:21: ... attributes ... '}'"));
  EXPECT_EQ(body_error("%y = compare %x, %x"), "2:6: compare: attribute 'direction' is missing");
  EXPECT_EQ(body_error("%y = transpose %x {permutation = [1, a]}"),
            "2:20: attribute 'permutation': 'a' is not an integer");
}

// ---- Hostile texts -----------------------------------------------------------------------------

TEST(TextHostile, AShortTextDoesNotAllocateMuch) {
  Result<Graph> graph =
      parse_graph("graph @f() { %c = constant 0 : f32[1000, 1000, 1000, 1000] return %c }");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code(), ErrorCode::limit);
  // Many that are each within the limit are not within it together.
  std::string text = "graph @f() {\n";
  for (int i = 0; i < 3; ++i) text += fmt::format("%{} = constant 1 : u8[30000000]\n", i);
  graph = parse_graph(text + "return }");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code(), ErrorCode::limit);
  EXPECT_EQ(graph.error().where(), "<text>:4:15");
}

TEST(TextHostile, DeepRegionsAreRefused) {
  auto nested = [](int depth) {
    std::string text = "graph @f(%x: f32[]) {", end;
    for (int i = 0; i < depth; ++i) {
      text += " %y = call %x callee (%x: f32[]) {";
      end += " return %x }";
    }
    return text + end + " return %x }";
  };
  EXPECT_TRUE(parse_graph(nested(64)).ok());
  for (int depth : {65, 100000}) {
    Result<Graph> graph = parse_graph(nested(depth));
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.error().code(), ErrorCode::limit);
    EXPECT_THAT(graph.error().what(), says("regions ... 64"));
  }
}

TEST(TextHostile, DeepBracketsAreRefused) {
  std::string deep(200000, '(');
  EXPECT_FALSE(parse_graph("graph @f(%x: f32[" + deep + "]) { return }").ok());
  EXPECT_FALSE(parse_graph("graph @f(" + deep).ok());
  EXPECT_FALSE(parse_graph("graph @f(%x: f32[3]) { %y = neg %x {" + deep + "} return }").ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
