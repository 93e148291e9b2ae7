#include <gtest/gtest.h>

#include "base/rng.h"
#include "program/tiles/interpret.h"
#include "program/tiles/tile_builder.h"
#include "tests/base/share_testing.h"
#include "tests/codegen/words_native.h"
#include "tests/program/words_testing.h"

namespace hone::HONE_FILE {
namespace {

// With and without VNNI, on each level of this machine.
std::vector<Target> all_targets() {
  std::vector<Target> targets = host_targets();
  targets.push_back(host_target().value());
  return targets;
}

// sums[i] = words of x at `apart * i` times those of w, one behind the other, added up over rows.
TileProgram program_of(Products products, int64_t lanes, int64_t apart, bool is_guarded) {
  const bool are_pairs = products == Products::pairs;
  const int64_t each = are_pairs ? 2 : 4;
  TileBuilder b("words");
  const auto type = [](DType dtype, const Dims& dims) { return Type::get(dtype, dims); };
  const auto x = b.buffer("x", type(are_pairs ? DType::bf16 : DType::u8, {3, lanes * apart + each}),
                          BufferRole::input);
  const auto w = b.buffer("w", type(are_pairs ? DType::bf16 : DType::i8, {3, each * lanes}),
                          BufferRole::input);
  const auto y =
      b.buffer("y", type(are_pairs ? DType::f32 : DType::i32, {lanes}), BufferRole::output);
  b.loop(Exec::loop, "once", 1, [&](const IndexExpr&) {
    b.loop(Exec::lanes, "i", lanes, [&](const IndexExpr& i) {
      const auto first = are_pairs ? b.real(DType::f32, 7) : b.integer(DType::i32, 7);
      const auto sum = b.carry(
          Exec::loop, "r", 3, first, Opcode::add, [&](const IndexExpr& r, tile::Scalar so_far) {
            std::vector<Guard> guards;
            if (is_guarded) guards.push_back({i, 1, Dim(lanes - 1)});
            const auto otherwise = b.integer(DType::u32, are_pairs ? 0x3f80c000 : 0x80ff0102);
            const auto left = b.load_word(x, {r, i * apart}, guards, otherwise);
            const auto right = b.load_word(w, {r, i * each});
            return are_pairs ? b.pair(left, right, so_far) : b.quad(left, right, so_far);
          });
      b.store(y, {i}, sum);
    });
  });
  return std::move(b).finish();
}

Tensor random_bytes(Type type, Rng& rng) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < type.static_elements(); ++i)
    numbers.push_back(wrap_to(type.dtype(), rng.between(0, 255)));
  return Tensor::from_integers(type, numbers);
}

TEST(Quads, TextKeepsThem) {
  const TileProgram program = program_of(Products::quads, 16, 4, true);
  ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
  const std::string text = print(program);
  EXPECT_NE(text.find("= load word @x[r, 4*i] if"), std::string::npos) << text;
  EXPECT_NE(text.find("= quad %"), std::string::npos) << text;
  EXPECT_EQ(print(parse_tiles(text).value()), text);
}

std::string refused(std::string_view text) {
  return verify(parse_tiles(text).value()).error().to_string();
}

TEST(Quads, WordsLieInsideOfBuffersOfBytes) {
  EXPECT_NE(refused("tiles @t(@x: u8[6]) -> (@y: u32[]) { for i in 1 {\n"
                    "%0 = load word @x[i + 3]\nstore @y[] = %0\n} }")
                .find("outside of 0..5"),
            std::string::npos);
  EXPECT_NE(refused("tiles @t(@x: u16[6]) -> (@y: u32[]) { for i in 1 {\n"
                    "%0 = load word @x[i]\nstore @y[] = %0\n} }")
                .find("has no words"),
            std::string::npos);
  EXPECT_NE(refused("tiles @t(@x: i32[6]) -> (@y: i32[]) { for i in 1 {\n"
                    "%0 = load @x[i]\n%1 = quad %0, %0, %0\nstore @y[] = %1\n} }")
                .find("two words of u32"),
            std::string::npos);
}

TEST(Quads, NativeIsExact) {
  Rng rng(1);
  uint64_t number = 0;
  for (const Target& target : all_targets())
    for (int64_t lanes : {1, 2, 3, 4, 8, 12, 16, 32, 48, 64})
      for (int64_t apart : {0, 1, 4, 7})
        for (bool is_guarded : {false, true}) {
          if (!tested::in_share(number++, 3)) continue;
          SCOPED_TRACE(lanes);
          SCOPED_TRACE(apart);
          const TileProgram program = program_of(Products::quads, lanes, apart, is_guarded);
          const std::vector<Tensor> inputs = {random_bytes(program.buffers[0].type, rng),
                                              random_bytes(program.buffers[1].type, rng)};
          expect_close(run_native(program, inputs, target).value(),
                       interpret(program, inputs).value());
          if (testing::Test::HasFailure()) return;
        }
}

// On some of the machines.
void check_native_kernels(Products products, const std::vector<Target>& targets) {
  int checked = 0;
  for (uint64_t seed = 0; seed < tested::share_of(120, 3); ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const Target target = rng.pick(targets);
    const std::optional<WordsCase> drawn = random_words(products, target, rng);
    if (!drawn) continue;
    check_native(*drawn, target);
    if (testing::Test::HasFailure()) return;
    ++checked;
  }
  EXPECT_GT(checked, 16);
}

TEST(Quads, NativeKernelsComputeWhatTheReferenceDoes) {
  check_native_kernels(Products::quads, all_targets());
}

// Schedules for a machine that has the instruction; code for this one.
TEST(Pairs, NativeKernelsComputeWhatTheReferenceDoes) {
  std::vector<Target> targets = all_targets();
  std::erase_if(targets, [](const Target& target) {
    return !target.extensions.contains(Extension::avx512_bf16);
  });
  if (targets.empty()) GTEST_SKIP() << "this machine has no avx512_bf16";
  check_native_kernels(Products::pairs, targets);
}

// With the instruction, and with the arithmetic of machines that have none.
TEST(Pairs, NativeIsThatOfTheInterpreter) {
  Rng rng(1);
  for (const Target& target : all_targets())
    for (int64_t lanes : {1, 3, 4, 8, 16, 48})
      for (int64_t apart : {0, 1, 2, 5})
        for (bool is_guarded : {false, true}) {
          SCOPED_TRACE(lanes);
          SCOPED_TRACE(apart);
          const TileProgram program = program_of(Products::pairs, lanes, apart, is_guarded);
          ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
          EXPECT_EQ(print(parse_tiles(print(program)).value()), print(program));
          const std::vector<Tensor> inputs = {random_tensor(program.buffers[0].type, rng),
                                              random_tensor(program.buffers[1].type, rng)};
          expect_close(run_native(program, inputs, target).value(),
                       interpret(program, inputs).value());
          if (testing::Test::HasFailure()) return;
        }
}

}  // namespace
}  // namespace hone::HONE_FILE
