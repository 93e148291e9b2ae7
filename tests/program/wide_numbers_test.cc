#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/schedule_text.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

// Reals of 16 bits are f32 within a kernel.

namespace hone::HONE_FILE {
namespace {

std::vector<Tensor> run_kernel(std::string_view text, const std::vector<Tensor>& inputs,
                               std::string_view schedule = "{algorithm = nest, order = [0]}") {
  const KernelBody body = body_of_all(parse_graph(text).value());
  TextParser parser(schedule, {});
  const TileProgram program = build_kernel(body, parse_schedule(parser).value(), "k").value();
  const Status good = verify(program);
  EXPECT_TRUE(good.ok()) << good.error().to_string();
  return interpret(program, inputs, {}).value();
}

// In f16 the sum with 2048 is a whole number, in bf16 with 256.
TEST(WideNumbers, AreRoundedWhereTheyAreStored) {
  for (const auto& [dtype, large] : {std::pair("f16", 2048), std::pair("bf16", 256)}) {
    SCOPED_TRACE(dtype);
    const Type type = Type::get(*dtype_from_name(dtype), {4});
    const std::vector<Tensor> x = {Tensor::from_reals(type, std::vector{0.25, -0.75, 1.5, 3.25})};
    const auto expect_kept = [&](std::string_view body) {
      SCOPED_TRACE(body);
      const std::string text = fmt::format(
          "graph @g(%x: {0}[4]) -> {0}[4] {{ %n = constant {1} : {0}[] "
          "%c = broadcast %n {{dims = [4], map = []}} %s = add %x, %c {2} return %y }}",
          dtype, large, body);
      const std::vector<Tensor> y = run_kernel(text, x);
      EXPECT_TRUE(y[0].same_bytes(x[0]));
      const Tensor rounded =
          evaluate(parse_graph(text).value(), x, {.numerics = Numerics::rounded}).value()[0];
      EXPECT_FALSE(rounded.same_bytes(x[0]));
    };
    expect_kept("%y = sub %s, %c");
    expect_kept("%r = reverse %s {axes = [0]} %t = reverse %r {axes = [0]} %y = sub %t, %c");
    // Where it is read between other numbers, which are loaded.
    expect_kept(
        "%j = concat %s, %x {axis = 0} %p = slice %j {start = [0], limit = [4]} %y = sub %p, %c");
    expect_kept(
        "%w = reshape %s {dims = [4, 1]} %m = reduce %w {kind = max, axes = [1]} "
        "%y = sub %m, %c");
  }
}

TEST(WideNumbers, AreRoundedByACast) {
  for (const char* dtype : {"f16", "bf16"}) {
    const std::string text = fmt::format(
        "graph @g(%x: f32[2]) -> f32[2] {{ %h = cast %x {{dtype = {}}} "
        "%y = cast %h {{dtype = f32}} return %y }}",
        dtype);
    const std::vector<Tensor> x = {
        Tensor::from_reals(Type::get(DType::f32, {2}), std::vector{0.1, 1e30})};
    const Tensor y = run_kernel(text, x)[0];
    for (int64_t i = 0; i < 2; ++i)
      EXPECT_EQ(y.real_at(i), round_to(*dtype_from_name(dtype), x[0].real_at(i))) << dtype;
  }
}

// The bits of a number are those of its type.
TEST(WideNumbers, AreRoundedBeforeTheirBitsAreRead) {
  const std::vector<Tensor> x = {Tensor::from_reals(Type::get(DType::f16, {1}), std::vector{0.25})};
  const Tensor bits = run_kernel(
      "graph @g(%x: f16[1]) -> u16[1] { %n = constant [2048] : f16[1] %s = add %x, %n "
      "%y = bitcast %s {dtype = u16} return %y }",
      x)[0];
  EXPECT_EQ(bits.integer_at(0), 0x6800);
}

TEST(WideNumbers, OfAProductGoOnUnrounded) {
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f16, {1, 2}), std::vector{2048.0, 0.25}),
      Tensor::from_reals(Type::get(DType::f16, {2, 1}), std::vector{1.0, 1.0})};
  const Tensor y = run_kernel(
      "graph @g(%x: f16[1, 2], %w: f16[2, 1]) -> f16[1, 1] { "
      "%n = constant 2048 : f16[1, 1] "
      "%d = dot %x, %w {lhs_contract = [1], rhs_contract = [0]} %y = sub %d, %n return %y }",
      inputs, "{algorithm = nest, order = [0, 1]}")[0];
  EXPECT_EQ(y.real_at(0), 0.25);
}

}  // namespace
}  // namespace hone::HONE_FILE
