#include "tensor/special_numbers.h"

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "kernel/schedule_text.h"
#include "oracle/special_judge.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/native.h"
#include "tests/program/kernel_testing.h"
#include "tests/program/random_kernels.h"

namespace hone::HONE_FILE {
namespace {

constexpr int64_t kCount = 256;
constexpr DType kReals[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr DType kShortReals[] = {DType::f8e4m3fn,   DType::f8e4m3fnuz, DType::f8e5m2,
                                 DType::f8e5m2fnuz, DType::f8e8m0,     DType::f4e2m1};

// Each number as the reference has it, NaN for NaN, and zeros by their signs.
void expect_same(const Tensor& actual, const Tensor& expected, const std::string& what) {
  const Result<Comparison> comparison =
      compare(actual, expected, tolerance_of_each(expected.dtype()));
  ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
  EXPECT_TRUE(comparison->passed()) << what << ": " << comparison->to_string();
  const std::optional<int64_t> zero = first_other_zero(actual, expected, {});
  EXPECT_FALSE(zero.has_value()) << what << ": the sign of the zero at " << zero.value_or(0);
}

// A graph as one kernel, on special numbers of all sorts: interpreted, and on each level with
// vectors of several lengths.
void check_on_specials(const Graph& graph, uint64_t seed) {
  const KernelBody body = body_of_all(graph);
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (Type type : graph.input_types())
    inputs.push_back(with_specials(
        type, Specials::of_all_sorts(1), rng, [] { return 0.0; }, [] { return int64_t{0}; }));
  const std::vector<Tensor> expected =
      evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
  const auto expect_all = [&](const Result<std::vector<Tensor>>& actual) {
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (size_t i = 0; i < expected.size(); ++i)
      expect_same((*actual)[i], expected[i], graph.describe(graph.producer(graph.outputs()[i])));
  };
  for (int lanes : {1, 8, 16}) {
    const std::string text =
        lanes == 1 ? "{algorithm = nest, order = [0]}"
                   : fmt::format("{{algorithm = nest, order = [0], lanes = [0:{}]}}", lanes);
    SCOPED_TRACE(text);
    TextParser parser(text, {});
    const TileProgram program = build_kernel(body, parse_schedule(parser).value(), "k").value();
    if (lanes == 1) expect_all(interpret(program, inputs, {}));
    for (const Target& target : host_targets()) {
      SCOPED_TRACE(name(target.isa));
      expect_all(run_native(program, inputs, target));
    }
  }
}

std::vector<Opcode> elementwise_ops(DType dtype, int operands) {
  std::vector<Opcode> ops;
  for (int i = 0; i < kOpcodeCount; ++i) {
    const auto opcode = static_cast<Opcode>(i);
    const OpDef& def = op_def(opcode);
    if (is_elementwise(opcode) && operand_arity(def).max == operands &&
        def.dtypes.contains(dtype) && def.attrs.empty())
      ops.push_back(opcode);
  }
  return ops;
}

// LLVM 19 takes max and min of widened halves for those of halves, and loses NaN and the signs of
// zeros.
TEST(SpecialNumbers, MaximaAndMinimaAreThoseOfTheReference) {
  uint64_t number = 0;
  for (DType dtype : kReals) {
    if (!tested::in_share(number++, 2)) continue;
    SCOPED_TRACE(name(dtype));
    Builder b;
    const Value x = b.parameter("x", dtype, {kCount}), y = b.parameter("y", dtype, {kCount});
    const Value zero = broadcast_to(b.scalar(dtype, 0), {kCount});
    const Value one = broadcast_to(b.scalar(dtype, 1), {kCount});
    check_on_specials(b.finish({maximum(x, y), minimum(x, y), maximum(x, zero), minimum(zero, y),
                                minimum(maximum(x, zero), one), maximum(unary(Opcode::neg, x), y)})
                          .value(),
                      1);
    // Combined in lanes, in registers, and one after another.
    for (std::string_view kind : {"max", "min"}) {
      Builder r;
      const Value rows = r.parameter("x", dtype, {kCount, 3});
      check_on_specials(
          r.finish({r.op(Opcode::reduce, {rows}, {{"kind", std::string(kind)}, {"axes", Ints{1}}})})
              .value(),
          2);
    }
  }
}

TEST(SpecialNumbers, ElementwiseOpsAreThoseOfTheReference) {
  uint64_t number = 0;
  for (DType dtype : kReals) {
    if (!tested::in_share(number++, 2)) continue;
    SCOPED_TRACE(name(dtype));
    Builder b;
    const Value x = b.parameter("x", dtype, {kCount}), y = b.parameter("y", dtype, {kCount});
    std::vector<Value> results;
    for (Opcode opcode : elementwise_ops(dtype, 1)) results.push_back(unary(opcode, x));
    for (Opcode opcode : elementwise_ops(dtype, 2)) results.push_back(binary(opcode, x, y));
    for (std::string_view direction : {"eq", "ne", "lt", "le", "gt", "ge"})
      results.push_back(compare(direction, x, y));
    results.push_back(select(compare("lt", x, y), x, y));
    check_on_specials(b.finish(results).value(), 3);
  }
}

TEST(SpecialNumbers, CastsAreThoseOfTheReference) {
  for (DType dtype : kReals) {
    SCOPED_TRACE(name(dtype));
    Builder b;
    const Value x = b.parameter("x", dtype, {kCount});
    std::vector<Value> results;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto to = static_cast<DType>(i);
      if (to != dtype && bits(to) >= 8) results.push_back(cast(x, to));
    }
    for (DType to : kShortReals) results.push_back(cast(cast(x, to), DType::f32));
    check_on_specials(b.finish(results).value(), 4);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
