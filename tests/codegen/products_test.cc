#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "base/rng.h"
#include "program/tiles/interpret.h"
#include "program/tiles/tile_builder.h"
#include "tests/codegen/native.h"
#include "tests/program/split_testing.h"

namespace hone {
namespace {

using tile::BufferId;

struct Sizes {
  int64_t parts, steps, rows, columns;
};

// Copies both operands into scratch, multiplies them twice, each time onto what is there, and gives
// the second of two blocks of sums.
TileProgram program_of(const Sizes& n) {
  TileBuilder b("products");
  const Dims lhs = {2, n.parts, n.steps, n.rows, 16}, rhs = {1, n.parts, 16 * n.steps, n.columns};
  const Dims sums = {2, n.rows * n.columns};
  const auto type = [](DType dtype, const Dims& dims) { return Type::get(dtype, dims); };
  const BufferId x = b.buffer("x", type(DType::u32, lhs), BufferRole::input);
  const BufferId w = b.buffer("w", type(DType::u32, rhs), BufferRole::input);
  const BufferId y = b.buffer("y", type(DType::f32, {sums[1]}), BufferRole::output);
  const BufferId l = b.buffer("l", type(DType::u32, lhs), BufferRole::scratch);
  const BufferId r = b.buffer("r", type(DType::u32, rhs), BufferRole::scratch);
  const BufferId s = b.buffer("s", type(DType::f32, sums), BufferRole::scratch);
  using Indices = std::vector<IndexExpr>;
  const std::function<void(const Dims&, Indices, const std::function<void(const Indices&)>&)> all =
      [&](const Dims& dims, Indices index, const std::function<void(const Indices&)>& body) {
        if (index.size() == dims.size()) return body(index);
        b.loop(Exec::loop, "i", dims[index.size()], [&](const IndexExpr& i) {
          Indices next = index;
          next.push_back(i);
          all(dims, next, body);
        });
      };
  b.loop(Exec::loop, "once", 1, [&](const IndexExpr& once) {
    all(lhs, {}, [&](const Indices& i) { b.store(l, i, b.load(x, i)); });
    all(rhs, {}, [&](const Indices& i) { b.store(r, i, b.load(w, i)); });
    all(sums, {}, [&](const Indices& i) { b.store(s, i, b.real(DType::f32, 1)); });
    b.loop(Exec::loop, "t", 2, [&](const IndexExpr& t) {
      b.product(
          {.sums = s, .lhs = l, .rhs = r, .sums_block = 1, .lhs_block = t, .rhs_block = once});
    });
    all({sums[1]}, {}, [&](const Indices& i) { b.store(y, i, b.load(s, {1, i[0]})); });
  });
  return std::move(b).finish();
}

Tensor random_words(Type type, Rng& rng) {
  std::vector<int64_t> words;
  for (int64_t i = 0; i < type.static_elements(); ++i) {
    const auto number = [&] {
      return std::bit_cast<uint32_t>(static_cast<float>(rng.uniform(-1, 1))) >> 16;
    };
    words.push_back(number() << 16 | number());
  }
  return Tensor::from_integers(type, words);
}

TEST(Products, TextKeepsThem) {
  const TileProgram program = program_of({3, 2, 32, 16});
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
  const std::string text = print(program);
  EXPECT_NE(text.find("product @s[1], @l["), std::string::npos) << text;
  EXPECT_EQ(print(parse_tiles(text).value()), text);
}

TEST(Products, RefuseWhatDoesNotFit) {
  TileProgram program = program_of({3, 2, 32, 16});
  program.buffers[5].type = Type::get(DType::f32, {2, 32 * 32});
  EXPECT_FALSE(verify(program).ok());
  program = program_of({3, 2, 32, 16});
  program.buffers[3].type = Type::get(DType::u32, {1, 3, 2, 32, 16});
  EXPECT_FALSE(verify(program).ok());
  program = program_of({4, 2, 32, 16});
  EXPECT_FALSE(verify(program).ok());
}

TEST(Products, NeedAMatrixUnit) {
  const Target without = restricted(host_target().value(), Isa::avx2);
  const Result<std::string> code = compile_tiles(program_of({1, 1, 16, 16}), without, "k");
  ASSERT_FALSE(code.ok());
  EXPECT_NE(code.error().to_string().find("amx_bf16"), std::string::npos);
}

// The unit takes the sums in an order of its own.
TEST(Products, NativeAgreesWithTheInterpreter) {
  const Target host = host_target().value();
  const bool has_unit = host.extensions.contains(Extension::amx_bf16);
  Rng rng(1);
  for (const Sizes& sizes : {Sizes{1, 1, 16, 16}, Sizes{2, 3, 16, 32}, Sizes{3, 2, 32, 32}}) {
    const TileProgram program = program_of(sizes);
    const std::vector<Tensor> inputs = {random_words(program.buffers[0].type, rng),
                                        random_words(program.buffers[1].type, rng)};
    const std::vector<Tensor> expected = interpret(program, inputs).value();
    if (!has_unit) continue;
    const Result<std::vector<Tensor>> actual = run_native(program, inputs, host);
    ASSERT_TRUE(actual.ok()) << actual.error().to_string();
    for (int64_t i = 0; i < expected[0].type().static_elements(); ++i)
      ASSERT_NEAR((*actual)[0].real_at(i), expected[0].real_at(i), 1e-4) << i;
  }
  if (!has_unit) GTEST_SKIP() << "this processor has no matrix unit; the interpreter ran alone";
}

// In units of the largest result, of a kernel under the schedule.
double error_of(const KernelBody& body, const Schedule& schedule, const Target& target,
                const std::vector<Tensor>& inputs, const Tensor& exact) {
  const TileProgram program = build_kernel(body, schedule, "k").value();
  const Tensor actual = run_native(program, inputs, target).value().at(0);
  double error = 0, largest = 0;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    error = std::max(error, std::abs(actual.real_at(i) - exact.real_at(i)));
    largest = std::max(largest, std::abs(exact.real_at(i)));
  }
  return error / largest;
}

TEST(SplitProducts, NativeIsAsAccurateAsPlainProducts) {
  const Target host = host_target().value();
  if (!host.extensions.contains(Extension::amx_bf16))
    GTEST_SKIP() << "this processor has no matrix unit";
  const KernelBody body = body_of_all(product_of(70, 600, 50));
  Rng rng(1);
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    const Tensor exact = evaluate(body.graph, inputs, {.numerics = Numerics::wide}).value().at(0);
    std::optional<Schedule> schedule;
    while (!schedule) schedule = random_split(body, host, rng);
    SCOPED_TRACE(print(*schedule));
    const double plain = error_of(body, plain_nest(2), host, inputs, exact);
    EXPECT_LE(error_of(body, *schedule, host, inputs, exact), 2 * plain);
  }
}

TEST(SplitProducts, NativeComputesWhatTheReferenceDoes) {
  const Target host = host_target().value();
  if (!host.extensions.contains(Extension::amx_bf16))
    GTEST_SKIP() << "this processor has no matrix unit";
  int checked = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    KernelBody body = body_of_all(RandomGemm(rng).graph());
    for (size_t i = 0; i < body.inputs.size(); ++i)
      body.inputs[i] = random_layout(body.graph.type(body.graph.inputs()[i]), rng);
    const std::optional<Schedule> schedule = random_split(body, host, rng);
    if (!schedule) continue;
    SCOPED_TRACE(print(*schedule));
    const std::vector<Tensor> inputs = random_inputs(body.graph, rng);
    std::vector<Tensor> memory;
    for (size_t i = 0; i < inputs.size(); ++i) memory.push_back(stored(inputs[i], body.inputs[i]));
    const auto program = build_kernel(body, *schedule, "k").value();
    expect_close(run_native(program, memory, host, 2).value(),
                 evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value(), 16);
    if (testing::Test::HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, 10);
}

TEST(SplitProducts, NativeTreatsInfinitiesAndNansAsPlainProductsDo) {
  const Target host = host_target().value();
  if (!host.extensions.contains(Extension::amx_bf16))
    GTEST_SKIP() << "this processor has no matrix unit";
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> numbers = {0, 1, -1.5, inf, -inf, nan, 3e38, -3e38, 1.0000001, 1e-20};
  const auto count = static_cast<int64_t>(numbers.size());
  const KernelBody body = body_of_all(product_of(count, 1, count));
  Rng rng(1);
  std::optional<Schedule> schedule;
  while (!schedule) schedule = random_split(body, host, rng);
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(Type::get(DType::f32, {count, 1}), numbers),
      Tensor::from_reals(Type::get(DType::f32, {1, count}), numbers)};
  expect_close(run_native(build_kernel(body, *schedule, "k").value(), inputs, host).value(),
               evaluate(body.graph, inputs, {.numerics = Numerics::rounded}).value());
}

}  // namespace
}  // namespace hone
