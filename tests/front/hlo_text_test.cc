#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "front/hlo/hlo.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Result<Model> parsed(std::string_view text) { return parse_hlo(text, "p.txt"); }

// All results of a module without parameters.
std::string results_of(std::string_view text) {
  const Result<Model> model = parsed(text);
  if (!model.ok()) return model.error().to_string();
  const Result<std::vector<Tensor>> results = evaluate_model(*model, {});
  if (!results.ok()) return results.error().to_string();
  std::vector<std::string> numbers;
  for (const Tensor& one : *results)
    for (int64_t i = 0; i < one.elements(); ++i) numbers.push_back(format_double(one.real_at(i)));
  return join(numbers, " ");
}

TEST(HloText, ReadsComputationsShapesAndAttributes) {
  EXPECT_EQ(results_of("HloModule jit_f, entry_computation_layout={()->f32[2]{0}}\n\n"
                       "FileNames\n1 \"a.py\"\n\nStackFrames\n1 {file_location_id=1}\n\n"
                       "region_0.1 {\n"
                       "  a.1 = f32[] parameter(0)\n"
                       "  b.1 = f32[] parameter(1)\n"
                       "  ROOT add.1 = f32[] add(a.1, b.1)\n}\n\n"
                       "ENTRY main.5 {\n"
                       "  x.1 = f32[2,3]{1,0} constant({ { 1, 2, 3 }, { 4, 5, -inf } })\n"
                       "  c.1 = f32[] constant(0)\n"
                       "  ROOT reduce.1 = f32[2]{0} reduce(x.1, /*index=1*/c.1), dimensions={1}, "
                       "to_apply=region_0.1, metadata={op_name=\"sum\" stack_frame_id=1}\n}\n"),
            "6 -inf");
}

// The older style: signatures, %, and shapes in front of operands.
TEST(HloText, ReadsTheOlderStyle) {
  EXPECT_EQ(results_of("HloModule f\n\n"
                       "ENTRY %main () -> s32[4] {\n"
                       "  %a = s32[2]{0} constant({1, 2})\n"
                       "  %z = s32[] constant(-1)\n"
                       "  %b = s32[4]{0} pad(s32[2]{0} %a, s32[] %z), padding=1_0_1\n}\n"),
            "-1 1 -1 2");
}

TEST(HloText, TakesTuplesApart) {
  EXPECT_EQ(
      results_of("HloModule f\n\n"
                 "body {\n"
                 "  s = (s32[], s32[2]{0}) parameter(0)\n"
                 "  i = s32[] get-tuple-element(s), index=0\n"
                 "  v = s32[2]{0} get-tuple-element(s), index=1\n"
                 "  one = s32[] constant(1)\n"
                 "  j = s32[] add(i, one)\n"
                 "  w = s32[2]{0} add(v, v)\n"
                 "  ROOT t = (s32[], s32[2]{0}) tuple(j, w)\n}\n"
                 "cond {\n"
                 "  s.1 = (s32[], s32[2]{0}) parameter(0)\n"
                 "  i.1 = s32[] get-tuple-element(s.1), index=0\n"
                 "  n = s32[] constant(3)\n"
                 "  ROOT p = pred[] compare(i.1, n), direction=LT\n}\n"
                 "ENTRY main {\n"
                 "  zero = s32[] constant(0)\n"
                 "  v.2 = s32[2]{0} constant({1, 10})\n"
                 "  t.2 = (s32[], s32[2]{0}) tuple(zero, v.2)\n"
                 "  ROOT w.2 = (s32[], s32[2]{0}) while(t.2), condition=cond, body=body\n}\n"),
      "3 8 80");
}

TEST(HloText, ChoosesBranchesAndInlinesFusions) {
  EXPECT_EQ(results_of("HloModule f\n"
                       "twice { a = s32[] parameter(0)\n ROOT b = s32[] add(a, a)\n}\n"
                       "same { ROOT a = s32[] parameter(0)\n}\n"
                       "ENTRY main {\n"
                       "  x = s32[] constant(21)\n"
                       "  i = s32[] constant(7)\n"
                       "  c = s32[] conditional(i, x, x), branch_computations={same, twice}\n"
                       "  ROOT f = s32[] fusion(c), kind=kLoop, calls=twice\n}\n"),
            "84");
}

// A constant that the text leaves out is an input.
TEST(HloText, MakesAnInputOfAnElidedConstant) {
  std::string said;
  const Result<Model> model =
      parse_hlo("HloModule f\nENTRY main { ROOT c = f32[2,2]{1,0} constant({...})\n}\n", "p",
                {.notice = [&](std::string_view line) { said = line; }});
  ASSERT_EQ(model.value().inputs.size(), 1);
  EXPECT_EQ(model->inputs[0].type.to_string(), "f32[2, 2]");
  EXPECT_EQ(model->inputs[0].name, "missing constant at 2:37");
  EXPECT_THAT(said, testing::HasSubstr("numbers of a constant (p:2:37)"));
}

// In a loop or outside of it: an input says that the model cannot run.
TEST(HloText, LooksAtCallsOfOtherLibraries) {
  const Result<Model> model = parsed(
      "HloModule f\nENTRY main {\n  x = f32[2] parameter(0)\n"
      "  ROOT k = f32[2] custom-call(x), custom_call_target=\"gpu_kernel\"\n}\n");
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  ASSERT_EQ(model->inputs.size(), 2u);
  EXPECT_EQ(model->inputs[1].name, "missing call of gpu_kernel");
}

// A computation that applies itself, or another one that applies it.
TEST(HloTextErrors, RefusesRecursion) {
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  x = f32[] parameter(0)\n"
                     "  ROOT y = f32[] call(x), to_apply=main\n}"),
              refuses(ErrorCode::bad_input, "p.txt:2 ... 'main' calls itself"));
  EXPECT_THAT(parsed("HloModule f\n"
                     "a {\n  x = f32[] parameter(0)\n  ROOT y = f32[] call(x), to_apply=b\n}\n"
                     "b {\n  z = f32[] parameter(0)\n"
                     "  ROOT w = f32[] fusion(z), kind=kLoop, calls=a\n}\n"
                     "ENTRY main {\n  v = f32[] parameter(0)\n"
                     "  ROOT r = f32[] call(v), to_apply=a\n}"),
              refuses(ErrorCode::bad_input, "p.txt:2 ... 'a' calls itself"));
  EXPECT_THAT(parsed("HloModule f\n"
                     "c {\n  u = s32[] parameter(0)\n  ROOT p = pred[] compare(u, u), "
                     "direction=LT\n}\n"
                     "again {\n  s = s32[] parameter(0)\n"
                     "  ROOT w = s32[] while(s), condition=c, body=again\n}\n"
                     "ENTRY main {\n  v = s32[] parameter(0)\n"
                     "  ROOT r = s32[] while(v), condition=c, body=again\n}"),
              refuses(ErrorCode::bad_input, "p.txt:6 ... 'again' calls itself"));
}

// A type may name a billion elements; only those that are there take memory.
TEST(HloTextErrors, TakesNoMemoryForLongLiterals) {
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  ROOT a = f32[1000000000] constant({1, 2})\n}"),
              refuses(ErrorCode::bad_input, "p.txt:3 ... 2 elements ... 1000000000"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  ROOT a = f32[1000,1000,1000] constant({})\n}"),
              refuses(ErrorCode::bad_input, "p.txt:3"));
  EXPECT_THAT(
      parsed("func.func @main() -> tensor<1000000000xf32> {\n"
             "  %r = stablehlo.constant dense<\"0x0000803F00000040\"> : tensor<1000000000xf32>\n"
             "  return %r : tensor<1000000000xf32>\n}"),
      refuses(ErrorCode::bad_input, "p.txt:2 ... 8 bytes ... takes 4000000000"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n"
                     "  ROOT a = f32[4000000000,4000000000,4000000000] constant({...})\n}"),
              refuses(ErrorCode::limit, "p.txt:3"));
}

// Wherever a text ends, the reader says so, and where.
TEST(HloTextErrors, SayWhereATextEnds) {
  constexpr std::string_view kHlo =
      "HloModule m, num_partitions=2\n\n"
      "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n\n"
      "ENTRY main {\n  x = f32[2,3]{1,0} parameter(0), sharding={devices=[2,1]<=[2]}, "
      "metadata={op_name=\"x\"}\n  z = f32[] constant(0)\n"
      "  ROOT r = f32[2]{0} reduce(x, z), dimensions={1}, to_apply=add\n}";
  constexpr std::string_view kStablehlo =
      "module @m {\n  sdy.mesh @mesh = <[\"a\"=2]>\n"
      "  func.func @main(%x: tensor<2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{\"a\"}, {}]>}) "
      "-> tensor<2xf32> {\n"
      "    %z = stablehlo.constant dense<\"0x00000000\"> : tensor<f32>\n"
      "    %r = \"stablehlo.reduce\"(%x, %z) <{dimensions = array<i64: 1>}> ({\n"
      "    ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
      "      %c = stablehlo.add %a, %b : tensor<f32>\n"
      "      stablehlo.return %c : tensor<f32>\n"
      "    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>\n"
      "    return %r : tensor<2xf32>\n  }\n}";
  for (const std::string_view whole : {kHlo, kStablehlo}) {
    ASSERT_TRUE(parsed(whole).ok()) << parsed(whole).error().to_string();
    const size_t head = whole.find('\n');
    for (size_t size = head; size < whole.size(); ++size) {
      const Result<Model> model = parsed(whole.substr(0, size));
      ASSERT_FALSE(model.ok()) << whole.substr(0, size);
      const std::string text = model.error().to_string();
      EXPECT_EQ(model.error().code(), ErrorCode::bad_input) << text;
      EXPECT_THAT(text, testing::HasSubstr("p.txt")) << whole.substr(0, size);
    }
  }
}

TEST(HloTextErrors, HaveAPlace) {
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  ROOT a = f32[] add(b, b)\n}"),
              refuses(ErrorCode::bad_input, "p.txt:3:22 ... 'b' ... not defined"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  a = f32[] constant(1)\n"),
              refuses(ErrorCode::bad_input, "p.txt:4:1 ... ends within a computation"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  a = f32[] parameter(1)\n}"),
              refuses(ErrorCode::bad_input, "p.txt:2:7 ... no parameter 0"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  a = f32[2]{0} constant({1})\n}"),
              refuses(ErrorCode::bad_input, "p.txt:3 ... f32[2]"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n  x = f32[2] parameter(0)\n"
                     "  ROOT a = f32[2] add(x, x), dimentions={0}\n}"),
              refuses(ErrorCode::bad_input, "p.txt:4 ... no attribute 'dimentions'"));
  EXPECT_THAT(parsed("HloModule f\nENTRY main {\n a = f32[] foo()\n b = f32[] foo()\n}"),
              refuses(ErrorCode::unsupported, "p.txt:3:12 ... 'foo' ... 2 uses"));
}

}  // namespace
}  // namespace hone::HONE_FILE
