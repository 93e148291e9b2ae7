#include <gtest/gtest.h>

#include <bit>

#include "base/rng.h"
#include "codegen/gpu/gpu_code.h"
#include "program/tiles/interpret.h"
#include "program/tiles/tile_builder.h"
#include "tests/base/says_testing.h"
#include "tests/codegen/words_native.h"
#include "tests/program/matrix_testing.h"

namespace hone::HONE_FILE {
namespace {

using tile::BufferId;

struct Sizes {
  int64_t parts, steps, rows, columns;
  DType lhs = DType::u32, rhs = DType::u32, sums = DType::f32;
  bool is_first = false;
};

// Copies both operands into scratch, multiplies them twice, each time onto what is there, and gives
// the second of two blocks of sums.
TileProgram program_of(const Sizes& n) {
  TileBuilder b("products");
  const Dims lhs = {2, n.parts, n.steps, n.rows, 16}, rhs = {1, n.parts, 16 * n.steps, n.columns};
  const Dims sums = {2, n.rows * n.columns};
  const auto type = [](DType dtype, const Dims& dims) { return Type::get(dtype, dims); };
  const BufferId x = b.buffer("x", type(n.lhs, lhs), BufferRole::input);
  const BufferId w = b.buffer("w", type(n.rhs, rhs), BufferRole::input);
  const BufferId y = b.buffer("y", type(n.sums, {sums[1]}), BufferRole::output);
  const BufferId l = b.buffer("l", type(n.lhs, lhs), BufferRole::scratch);
  const BufferId r = b.buffer("r", type(n.rhs, rhs), BufferRole::scratch);
  const BufferId s = b.buffer("s", type(n.sums, sums), BufferRole::scratch);
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
    all(sums, {}, [&](const Indices& i) {
      b.store(s, i, n.sums == DType::f32 ? b.real(n.sums, 1) : b.integer(n.sums, 1));
    });
    b.loop(Exec::loop, "t", 2, [&](const IndexExpr& t) {
      b.product({.sums = s,
                 .lhs = l,
                 .rhs = r,
                 .sums_block = 1,
                 .lhs_block = t,
                 .rhs_block = once,
                 .is_first = n.is_first});
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
    words.push_back(wrap_to(type.dtype(), number() << 16 | number()));
  }
  return Tensor::from_integers(type, words);
}

TEST(Products, TextKeepsThem) {
  const TileProgram program = program_of({3, 2, 32, 16});
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
  const std::string text = print(program);
  EXPECT_NE(text.find("product @s[1], @l["), std::string::npos) << text;
  EXPECT_EQ(print(parse_tiles(text).value()), text);
  const std::string first =
      print(program_of({1, 2, 7, 16, DType::i32, DType::u32, DType::i32, true}));
  EXPECT_NE(first.find(", first"), std::string::npos) << first;
  EXPECT_EQ(print(parse_tiles(first).value()), first);
}

TEST(Products, RefuseWhatDoesNotFit) {
  TileProgram program = program_of({3, 2, 32, 16});
  program.buffers[5].type = Type::get(DType::f32, {2, 32 * 32});
  EXPECT_FALSE(verify(program).ok());
  program = program_of({3, 2, 32, 16});
  program.buffers[3].type = Type::get(DType::u32, {1, 3, 2, 32, 16});
  EXPECT_FALSE(verify(program).ok());
  for (const Sizes& sizes :
       {Sizes{4, 2, 32, 16}, Sizes{1, 2, 33, 16}, Sizes{1, 2, 16, 24},
        Sizes{1, 2, 16, 16, DType::i32}, Sizes{2, 2, 16, 16, DType::u32, DType::u32, DType::i32}})
    EXPECT_FALSE(verify(program_of(sizes)).ok());
}

// The unit is configured once, for all of them.
TEST(Products, OfAProgramAreOfOneKind) {
  const auto verified = [](int64_t rows, DType sums) {
    TileBuilder b("two");
    const auto product = [&](int64_t own_rows, DType dtype) {
      const auto scratch = [&](std::string_view name, DType of, const Dims& dims) {
        return b.buffer(name, Type::get(of, dims), BufferRole::scratch);
      };
      b.product({.sums = scratch("s", dtype, {1, own_rows * 16}),
                 .lhs = scratch("l", DType::u32, {1, 1, 1, own_rows, 16}),
                 .rhs = scratch("r", DType::u32, {1, 1, 16, 16}),
                 .is_first = true});
    };
    b.loop(Exec::loop, "once", 1, [&](const IndexExpr&) {
      product(16, DType::f32);
      product(rows, sums);
    });
    return verify(std::move(b).finish()).ok();
  };
  EXPECT_TRUE(verified(16, DType::f32));
  EXPECT_FALSE(verified(17, DType::f32));
  EXPECT_FALSE(verified(16, DType::i32));
}

TEST(Products, NeedAMatrixUnit) {
  const Target without = restricted(host_target().value(), Isa::avx2);
  for (DType sums : {DType::f32, DType::i32}) {
    const TileProgram program = program_of({1, 1, 16, 16, DType::u32, DType::u32, sums});
    const Result<std::string> code = compile_tiles(program, without, "k");
    ASSERT_FALSE(code.ok());
    EXPECT_NE(code.error().to_string().find(sums == DType::f32 ? "amx_bf16" : "amx_int8"),
              std::string::npos);
    EXPECT_THAT(compile_for_gpu(program, 80, "k"),
                tested::refuses(ErrorCode::unsupported, "kernel ... matrix unit of a CPU"));
  }
}

// The unit takes the sums in an order of its own.
TEST(Products, NativeAgreesWithTheInterpreter) {
  const Target host = host_target().value();
  const bool has_unit = has_all_matrix_units(host);
  Rng rng(1);
  std::vector<Sizes> all = {{1, 1, 16, 16}, {2, 3, 16, 32}, {3, 2, 32, 32}, {1, 2, 1, 16},
                            {3, 1, 7, 32},  {2, 2, 17, 16}, {1, 1, 31, 32}};
  for (DType lhs : {DType::u32, DType::i32})
    for (DType rhs : {DType::u32, DType::i32})
      for (int64_t rows : {5, 16, 29}) all.push_back({1, 2, rows, 32, lhs, rhs, DType::i32});
  for (size_t i = 0; i < all.size(); ++i) all[i].is_first = i % 2 == 1;
  for (const Sizes& sizes : all) {
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

// A contraction on the unit, beside plain sums.
class Precision {
 public:
  Precision(const Graph& graph, const Target& target)
      : body_(body_of_all(graph)), target_(target) {}

  // How many times those of plain sums the largest errors are, over all runs.
  double loss(int runs) {
    for (int run = 0; run < runs; ++run) {
      std::optional<Schedule> schedule;
      while (!schedule) schedule = random_matrix(body_, target_, rng_);
      const TileProgram program = build_kernel(body_, *schedule, "k").value();
      std::vector<Tensor> inputs;
      for (Type type : body_.graph.input_types()) {
        std::vector<double> numbers(static_cast<size_t>(type.static_elements()));
        for (double& each : numbers) each = rng_.normal();
        inputs.push_back(Tensor::from_reals(type, numbers));
      }
      const auto reference = [&](Numerics numerics) {
        return evaluate(body_.graph, inputs, {.numerics = numerics}).value().at(0);
      };
      const Tensor wide = reference(Numerics::wide), plain = reference(Numerics::fp32);
      const Tensor actual = run_native(program, inputs, target_).value().at(0);
      for (int64_t i = 0; i < wide.elements(); ++i) {
        error_ = std::max(error_, std::abs(actual.real_at(i) - wide.real_at(i)));
        plain_error_ = std::max(plain_error_, std::abs(plain.real_at(i) - wide.real_at(i)));
      }
    }
    return error_ / plain_error_;
  }

 private:
  KernelBody body_;
  Target target_;
  Rng rng_{1};
  double error_ = 0, plain_error_ = 0;
};

TEST(Matrix, NativeIsAsAccurateAsPlainProducts) {
  const Target host = host_target().value();
  if (!has_all_matrix_units(host)) GTEST_SKIP() << "this processor has no matrix unit";
  EXPECT_LE(Precision(product_of(DType::f32, 70, 600, 50), host).loss(5), 2);
}

// Four times the errors of plain sums are allowed (docs/accuracy.md).
TEST(Matrix, NativeLongSumsInTwoPartsAreAccurate) {
  const Target host = host_target().value();
  if (!has_all_matrix_units(host)) GTEST_SKIP() << "this processor has no matrix unit";
  EXPECT_LE(Precision(product_of(DType::f32, 40, 9650, 40, 2), host).loss(5), 3);
  Builder b;
  const Value x = b.parameter("x", DType::f32, {1, 1072, 6, 6});
  const Value w = b.parameter("w", DType::f32, {32, 1072, 3, 3});
  const Graph conv =
      b.finish({b.op(Opcode::conv, {x, w}, {{"flush", true}, {"parts", 2}})}).value();
  EXPECT_LE(Precision(conv, host).loss(5), 3);
  // It is the length that makes it so.
  EXPECT_GT(Precision(product_of(DType::f32, 40, 256, 40, 2), host).loss(5), 4);
}

TEST(Matrix, NativeComputesWhatTheReferenceDoes) {
  const Target host = host_target().value();
  if (!has_all_matrix_units(host)) GTEST_SKIP() << "this processor has no matrix unit";
  for (DType numbers : kMatrixNumbers) {
    SCOPED_TRACE(name(numbers));
    int checked = 0;
    for (uint64_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed);
      const std::optional<WordsCase> drawn = random_matrix_case(numbers, host, rng);
      if (!drawn) continue;
      check_native(*drawn, host, matrix_slack(numbers));
      if (testing::Test::HasFailure()) return;
      ++checked;
    }
    EXPECT_GT(checked, 15);
  }
}

TEST(Matrix, NativeTreatsInfinitiesAndNansAsPlainProductsDo) {
  const Target host = host_target().value();
  if (!has_all_matrix_units(host)) GTEST_SKIP() << "this processor has no matrix unit";
  for (const auto& [dtype, parts] : kPartsOfNumbers) {
    SCOPED_TRACE(fmt::format("{} in {}", name(dtype), parts));
    Rng rng(1);
    const WordsCase drawn = product_of_specials(dtype, parts, rng);
    check_native(drawn, host);
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
