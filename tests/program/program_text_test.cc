#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/program.h"
#include "program/run.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

constexpr std::string_view kKernels =
    "  tiles @negate(@x: f32[4]) -> (@y: f32[4]) {\n"
    "    threads i in 4 {\n"
    "      %0 = load @x[i]\n"
    "      %1 = neg %0\n"
    "      store @y[i] = %1\n"
    "    }\n"
    "  }\n"
    "  tiles @is_small(@x: f32[4]) -> (@y: bool[]) {\n"
    "    for once in 1 {\n"
    "      %0 = load @x[0]\n"
    "      %1 = number 100: f32\n"
    "      %2 = compare %0, %1 {direction = lt}\n"
    "      store @y[] = %2\n"
    "    }\n"
    "  }\n"
    "  tiles @add(@x: f32[4], @z: f32[4]) -> (@y: f32[4]) {\n"
    "    threads i in 4 {\n"
    "      %0 = load @x[i]\n"
    "      %1 = load @z[i]\n"
    "      %2 = add %0, %1\n"
    "      store @y[i] = %2\n"
    "    }\n"
    "  }\n";

// All kinds of commands and buffers.
std::string all_kinds() {
  return "program @\"all kinds\" {\n  threads 2\n" + std::string(kKernels) +
         "  frame @negative(%x: f32[4]) -> (%y: f32[4]) {\n"
         "    0 @k0 = launch @negate(%x) -> (%y)\n"
         "  }\n"
         "  frame @same(%x: f32[4]) -> (%y: f32[4]) {\n"
         "    0 @y = copy (%x) -> (%y)\n"
         "  }\n"
         "  frame @test(%x: f32[4]) -> (%y: bool[]) {\n"
         "    0 @k0 = launch @is_small(%x) -> (%y)\n"
         "  }\n"
         "  frame @twice(%x: f32[4]) -> (%y: f32[4]) {\n"
         "    0 @k0 = launch @add(%x, %x) -> (%y)\n"
         "  }\n"
         "  frame @sums(%s: f32[4], %x: f32[4]) -> (%next: f32[4], %y: f32[4]) {\n"
         "    0 @k0 = launch @add(%s, %x) -> (%next)\n"
         "    1 @y = copy (%next) -> (%y) after 0\n"
         "  }\n"
         "  frame @main(%x: f32[4], %c: bool[], %xs: f32[3, 4]) -> "
         "(%a: f32[4], %b: f32[4], %s: f32[4], %ys: f32[3, 4]) {\n"
         "    constant %one = 1 : f32[4]\n"
         "    constant %zero = [0, 0, 0, 0] : f32[2, 2]\n"
         "    temporary %t: f32[4] at 0\n"
         "    temporary %u: f32[4] at 64\n"
         "    temporary %go: bool[] at 0\n"
         "    view %v: f32[2, 2] = %t [0]\n"
         "    view %last: f32[4] = %xs [32]\n"
         "    0 @k0 = launch @add(%x, %one) -> (%t)\n"
         "    1 @a = branch %c then @negative else @same(%t) -> (%a) after 0\n"
         "    2 @b = copy (%v) -> (%b) after 0\n"
         "    3 @loop = while @test %go do @twice(%b) -> (%u) after 0, 1, 2\n"
         "    4 @s = call @negative(%last) -> (%s) after 1, 3\n"
         "    5 @sums = scan [3] reverse do @sums(%s over %xs) -> (%u over %ys) after 3, 4\n"
         "  }\n"
         "}\n";
}

Program parsed(std::string_view text) {
  Result<Program> program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  if (!program.ok()) return {};
  return *program;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ProgramText, RoundTrips) {
  const Program program = parsed(all_kinds());
  const std::string text = print(program);
  EXPECT_EQ(text, replaced(all_kinds(), "[0, 0, 0, 0]", "0"));
  EXPECT_EQ(print(parsed(text)), text);
}

TEST(ProgramText, KeepsSymbolsAndLargeConstants) {
  const std::string text =
      "program @p {\n  threads 1\n"
      "  frame @main(%x: f32[N, 4]) -> (%y: f32[N, 4]) where N in 2..8 {\n"
      "    constant %w = @w : f32[3, 7]\n"
      "    view %v: f32[4] = %x [16*N - 16]\n"
      "    0 @y = copy (%x) -> (%y)\n"
      "  }\n}\n";
  std::vector<double> numbers;
  for (int i = 0; i < 21; ++i) numbers.push_back(i);
  WeightTable weights;
  weights.add("w", Tensor::from_reals(Type::get(DType::f32, {3, 7}), numbers));
  Result<Program> program = parse_program(text, {.weights = &weights});
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_TRUE(verify(*program).ok());
  WeightTable again;
  EXPECT_EQ(print(*program, {.weights = &again}), text);
  EXPECT_NE(again.find("w"), nullptr);
  Result<Program> bound = specialize(*program, {{"N", 2}});
  ASSERT_TRUE(bound.ok());
  EXPECT_THAT(print(*bound), HasSubstr("view %v: f32[4] = %x [16]"));
  EXPECT_FALSE(specialize(*program, {{"N", 1}}).ok());
}

TEST(ProgramText, ErrorsHaveTheirPlace) {
  auto error = [](std::string_view from, std::string_view to) {
    Result<Program> program = parse_program(replaced(all_kinds(), from, to));
    return program.ok() ? "parsed" : program.error().to_string();
  };
  EXPECT_EQ(error("threads 2", "thread 2"),
            "error: expected 'threads', found 'thread' (<text>:2:3)");
  EXPECT_THAT(error("0 @k0 = launch @negate", "0 @k0 = launch @nothing"),
              says("kernel @nothing ... <text>:27:20"));
  EXPECT_THAT(error("1 @y = copy", "2 @y = copy"), HasSubstr("command 1 is number 2"));
  EXPECT_THAT(error("@is_small", "@negate"), HasSubstr("two kernels are called 'negate'"));
  EXPECT_THAT(error("frame @same", "frame @negative"), HasSubstr("two frames are called"));
  EXPECT_THAT(error("do @twice", "do @thrice"), says("frame @thrice"));
  EXPECT_THAT(error("do @twice", "do @main"), says("frame @main"));
  EXPECT_THAT(error("do @twice", "do @same"), HasSubstr("there are frames that @main does not"));
  EXPECT_THAT(error("%u: f32[4]", "%t: f32[4]"), HasSubstr("%t cannot name a buffer here"));
  EXPECT_THAT(error("copy (%v)", "copy (%w)"), says("buffer %w"));
  EXPECT_THAT(error("copy (%v)", "copy (%v, %t)"), HasSubstr("one buffer is copied"));
  EXPECT_THAT(error("after 0, 1, 2", "after 3"), says("command 3"));
  EXPECT_THAT(error("%xs [32]", "%xs [32"), HasSubstr("(<text>:49:30)"));
  EXPECT_THAT(error("%xs [32]", "%xs [M]"), HasSubstr("symbol 'M' is not declared"));
  EXPECT_THAT(error("scan [3]", "scan 3"), HasSubstr("expected the number of steps in brackets"));
  EXPECT_THAT(error("0 @k0 = launch @add(%x, %one)", "0 @k0 = jump @add(%x, %one)"),
              HasSubstr("expected launch, copy, call"));
  std::string deep =
      "program @p {\n  threads 1\n  frame @f0(%x: f32[]) -> (%y: f32[]) {\n"
      "    0 @y = copy (%x) -> (%y)\n  }\n";
  for (int i = 1; i <= 200; ++i)
    deep += fmt::format(
        "  frame @f{}(%x: f32[]) -> (%y: f32[]) {{\n"
        "    0 @y = call @f{}(%x) -> (%y)\n  }}\n",
        i, i - 1);
  Result<Program> program = parse_program(deep + "}\n");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code(), ErrorCode::limit);
}

TEST(ProgramVerify, AcceptsAllKinds) {
  Status status = verify(parsed(all_kinds()));
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

TEST(ProgramVerify, RefusesWhatCannotRun) {
  auto error = [](std::string_view from, std::string_view to) {
    Status status = verify(parsed(replaced(all_kinds(), from, to)));
    return status.ok() ? "verified" : status.error().to_string();
  };
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {"threads 2", "threads 0", "runs on 0 threads"},
      {"load @x[i]", "load @x[i + 1]", "may lie outside"},
      {"copy (%v) -> (%b)", "copy (%xs) -> (%b)", "%xs is f32[3, 4], %b f32[4]"},
      {"launch @add(%x, %one) -> (%t)", "launch @add(%x) -> (%t)", "has 2 inputs, 1 are given"},
      {"launch @add(%x, %one) -> (%t)", "launch @add(%x, %xs) -> (%t)",
       "has inputs f32[4]: %xs is f32[3, 4]"},
      {"launch @add(%x, %one) -> (%t)", "launch @add(%x, %u) -> (%t)", "%u ... read ... written"},
      {"launch @add(%x, %one) -> (%t)", "launch @add(%x, %one) -> (%x)", "input %x is written"},
      {"launch @add(%x, %one) -> (%t)", "launch @add(%x, %one) -> (%one)",
       "constant %one is written"},
      {"@negative(%last) -> (%s) after 1, 3", "@negative(%b) -> (%b) after 3",
       "%b is read and written"},
      {"branch %c", "branch %x", "condition %x is f32[4]"},
      {"while @test %go", "while @test %t", "condition %t is f32[4]"},
      {"then @negative", "then @test", "has outputs bool[]: %a is f32[4]"},
      {"@sums(%s over %xs) -> (%u over %ys)", "@sums(%s over %xs) -> (over %ys)",
       "1 values become 0"},
      {"@sums(%s over %xs) -> (%u over %ys)", "@sums(%s over ) -> (%u over %ys)",
       "has 2 inputs, not 1"},
      {"@sums(%s over %xs) -> (%u over %ys)", "@sums(%s over %x) -> (%u over %ys)",
       "%x ... f32[4] ... 3 times f32[4]"},
      {"@sums(%s over %xs) -> (%u over %ys)", "@sums(%s over %xs) -> (%s over %ys)",
       "has 2 outputs, not 1"},
      {"@twice(%b) -> (%u)", "@twice(%b) -> (%b)", "has 1 outputs, 0 are given"},
      {"scan [3]", "scan [-3]", "it makes -3 steps"},
      {"%xs [32]", "%xs [33]", "view %last is not inside of %xs"},
      {"%xs [32]", "%xs [-1]", "view %last is not inside of %xs"},
      {"= %xs [32]", "= %v [0]", "%last ... view ... %v"},
      {"%go: bool[] at 0", "%go: bool[]", "offset"},
      {"%t: f32[4] at 0", "%t: f32[4] at 8", "multiple of 64"},
      {"%t: f32[4] at 0", "%t: f32[4] at -64", "multiple of 64"},
      {"%go: bool[] at 0", "%go: bool[] at 64", "%u and %go overlap ... command 3"},
      {"after 0, 1, 2", "after 0, 2", "command 3 'loop' ... command 1 'a'"},
      {"(%a) after 0", "(%a)", "command 1 'a' ... command 0 'k0'"},
      {"after 0, 1, 2", "after 1, 1, 2", "it waits for 1"},
      {"    2 @b = copy (%v) -> (%b) after 0\n", "    2 @b = copy (%v) -> (%u) after 0\n",
       "%b ... read ... written"},
      {"    4 @s = call @negative(%last) -> (%s) after 1, 3\n",
       "    4 @s = call @negative(%last) -> (%u) after 1, 3\n", "%s ... read ... written"},
  };
  for (const auto& [from, to, what] : cases)
    EXPECT_THAT(error(from, to), says(std::string(what))) << to;
  // A command also waits for those before the ones that it waits for.
  EXPECT_EQ(error("after 0, 1, 2", "after 1, 2"), "verified");
}

// Memory that is written in parts.
TEST(ProgramVerify, PartsAreWrittenBeforeTheWholeIsRead) {
  const std::string text = "program @p {\n  threads 1\n" + std::string(kKernels) +
                           "  frame @main(%x: f32[4]) -> (%y: f32[8]) {\n"
                           "    temporary %t: f32[8]\n"
                           "    view %a: f32[4] = %t [0]\n"
                           "    view %b: f32[4] = %t [16]\n"
                           "    view %m: f32[4] = %t [8]\n"
                           "    view %c: f32[4] = %y [0]\n"
                           "    view %d: f32[4] = %y [16]\n"
                           "    0 @a = launch @negate(%x) -> (%a)\n"
                           "    1 @b = launch @add(%a, %x) -> (%b) after 0\n"
                           "    2 @c = launch @negate(%m) -> (%c) after 0, 1\n"
                           "    3 @d = launch @add(%c, %m) -> (%d) after 0, 1, 2\n"
                           "  }\n}\n";
  auto error = [&](std::string_view from, std::string_view to) {
    Status status = verify(parsed(replaced(text, from, to)));
    return status.ok() ? "verified" : status.error().to_string();
  };
  EXPECT_EQ(error("", ""), "verified");
  EXPECT_THAT(error("(%a, %x) -> (%b)", "(%m, %x) -> (%b)"), says("%m ... read ... written"));
  EXPECT_THAT(error("(%a, %x) -> (%b)", "(%a, %x) -> (%m)"), HasSubstr("%a is read and written"));
  EXPECT_THAT(error("add(%c, %m) -> (%d)", "negate(%m) -> (%c)"),
              HasSubstr("output %y is never written"));
  EXPECT_THAT(error("%c: f32[4] = %y [0]", "%c: f32[4] = %x [0]"),
              HasSubstr("input %c is written"));
  EXPECT_THAT(error("(%c) after 0, 1", "(%c) after 0"), says("wait ... command 1"));
}

// An output that may lie in an input.
constexpr std::string_view kDonated =
    "program @p {\n  threads 1\n"
    "  tiles @set(@v: f32[]) -> (update @y: f32[4]) {\n"
    "    for once in 1 {\n"
    "      %0 = load @v[]\n"
    "      store @y[1] = %0\n"
    "    }\n"
    "  }\n"
    "  frame @main(%x: f32[4], %v: f32[], %w: f32[5]) -> (%y: f32[4] in %x, %z: f32[4]) {\n"
    "    0 @y = copy (%x) -> (%y)\n"
    "    1 @z = copy (%x) -> (%z) after 0\n"
    "    2 @k0 = launch @set(%v) -> (%y) after 0, 1\n"
    "  }\n"
    "}\n";

TEST(ProgramVerify, WhatIsGivenAwayIsNotReadAgain) {
  auto error = [](std::string_view from, std::string_view to) {
    Status status = verify(parsed(replaced(std::string(kDonated), from, to)));
    return status.ok() ? "verified" : status.error().to_string();
  };
  EXPECT_EQ(error("", ""), "verified");
  EXPECT_EQ(print(parsed(kDonated)), kDonated);
  EXPECT_THAT(error("in %x", "in %w"), says("output %y ... f32[4] ... input"));
  EXPECT_THAT(error("in %x", "in %y"), says("output %y ... input"));
  EXPECT_THAT(error("%z: f32[4])", "%z: f32[4] in %x)"), says("two outputs ... input %x"));
  EXPECT_THAT(error("(%y) after 0, 1", "(%y) after 0"), says("wait ... command 1"));
  EXPECT_THAT(error("copy (%x) -> (%y)", "copy (%x) -> (%z)"), says("%y ... updated ... written"));
  EXPECT_THAT(error("(%y) after 0, 1\n", "(%y) after 0, 1\n    3 @x = copy (%x) -> (%z)\n"),
              says("%x ... read ... output"));
}

// A kernel that reads an input where it writes.
TEST(ProgramVerify, AKernelMayReadWhatItsOutputLiesIn) {
  constexpr std::string_view text =
      "program @p {\n  threads 1\n"
      "  tiles @add(@a: f32[4], @b: f32[4]) -> (@y: f32[4] in @a) {\n"
      "    for i in 4 {\n"
      "      %0 = load @a[i]\n"
      "      %1 = load @b[i]\n"
      "      %2 = add %0, %1\n"
      "      store @y[i] = %2\n"
      "    }\n"
      "  }\n"
      "  frame @main(%x: f32[4], %v: f32[4]) -> (%y: f32[4] in %x, %z: f32[4]) {\n"
      "    0 @z = copy (%x) -> (%z)\n"
      "    1 @k0 = launch @add(%x, %v) -> (%y) after 0\n"
      "  }\n"
      "}\n";
  auto error = [&](std::string_view from, std::string_view to) {
    Status status = verify(parsed(replaced(std::string(text), from, to)));
    return status.ok() ? "verified" : status.error().to_string();
  };
  EXPECT_EQ(error("", ""), "verified");
  EXPECT_EQ(print(parsed(text)), text);
  EXPECT_EQ(error("%y: f32[4] in %x", "%y: f32[4]"), "verified");
  EXPECT_THAT(error("%y: f32[4] in %x", "%y: f32[4] in %v"), HasSubstr("%v is read and written"));
  EXPECT_THAT(error("@y: f32[4] in @a", "@y: f32[4]"), HasSubstr("%x is read and written"));
  EXPECT_THAT(error("@add(%x, %v)", "@add(%x, %x)"), HasSubstr("%x is read and written"));
  EXPECT_THAT(error("(%y) after 0", "(%y)"), says("wait ... command 0"));
  EXPECT_THAT(error("after 0\n", "after 0\n    2 @w = copy (%x) -> (%z) after 1\n"),
              says("%x ... read ... output"));
  const auto x = Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>{1, 2, 3, 4});
  EXPECT_EQ(run(parsed(text), std::vector{x, x}).value()[0].real_at(3), 8);
}

TEST(ProgramRun, UpdatesKeepWhatTheyDoNotWrite) {
  const auto x = Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>{1, 2, 3, 4});
  const auto w = Tensor::zeros(Type::get(DType::f32, {5}));
  const std::vector<Tensor> outputs =
      run(parsed(kDonated), std::vector{x, Tensor::scalar(DType::f32, 9), w}).value();
  EXPECT_EQ(outputs[0].real_at(0), 1);
  EXPECT_EQ(outputs[0].real_at(1), 9);
  EXPECT_TRUE(outputs[1].same_bytes(x));
}

Tensor reals(const Dims& dims, std::vector<double> values) {
  return Tensor::from_reals(Type::get(DType::f32, dims), values);
}

void expect_equal(const Tensor& tensor, std::vector<double> values) {
  ASSERT_EQ(tensor.elements(), static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(tensor.real_at(static_cast<int64_t>(i)), values[i]) << i;
}

TEST(ProgramRun, RunsAllKinds) {
  const Program program = parsed(all_kinds());
  for (bool condition : {false, true}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<Tensor> inputs = {
          reals({4}, {2, 0, -2, -4}),
          Tensor::from_integers(Type::scalar(DType::boolean), std::vector<int64_t>{condition}),
          reals({3, 4}, {1, 2, 3, 4, 10, 20, 30, 40, 100, 200, 300, 400})};
      Result<std::vector<Tensor>> results = run(program, inputs, {.order_seed = seed});
      ASSERT_TRUE(results.ok()) << results.error().to_string();
      if (condition)
        expect_equal((*results)[0], {-3, -1, 1, 3});
      else
        expect_equal((*results)[0], {3, 1, -1, -3});
      expect_equal((*results)[1], {192, 64, -64, -192});
      expect_equal((*results)[2], {11, 22, 33, 44});
      expect_equal((*results)[3], {11, 22, 33, 44, 10, 20, 30, 40, 0, 0, 0, 0});
    }
  }
}

TEST(ProgramRun, RefusesWrongInputsAndEndlessLoops) {
  auto error = [](const Program& program, const std::vector<Tensor>& inputs) {
    Result<std::vector<Tensor>> results = run(program, inputs, {.max_iterations = 10});
    return results.ok() ? "ran" : results.error().to_string();
  };
  const Program endless = parsed(
      replaced(all_kinds(), "compare %0, %1 {direction = lt}", "compare %0, %1 {direction = ne}"));
  const Tensor no = Tensor::zeros(Type::scalar(DType::boolean)),
               xs = Tensor::zeros(Type::get(DType::f32, {3, 4}));
  EXPECT_THAT(error(endless, {reals({4}, {0, 0, 0, 0}), no, xs}),
              says("10 iterations ... program 'all kinds', command 'loop'"));
  EXPECT_THAT(error(endless, {no, no, xs}), HasSubstr("%x is f32[4], the tensor bool[]"));
  EXPECT_THAT(error(endless, {}), says("0 tensors ... 3 inputs"));
}

}  // namespace
}  // namespace hone::HONE_FILE
