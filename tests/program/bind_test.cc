#include "program/tiles/bind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/tiles/calling.h"

namespace hone::HONE_FILE {
namespace {

TileProgram parsed(std::string_view text) {
  Result<TileProgram> program = parse_tiles(text);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? *program : TileProgram();
}

// Symbols in types, bounds, indices, guards; M stands in no buffer.
std::string text_of(std::string_view n, std::string_view m, std::string_view where) {
  return fmt::format(
      "tiles @k(@x: i32[{0}]) -> (@y: f32[{0}]){2} {{\n"
      "  scratch @a: i4[3]\n"
      "  scratch @b: f32[{0}]\n"
      "  shared @s: f32[{0}]\n"
      "  scratch @c: f32[5]\n"
      "  threads i in {0} {{\n"
      "    threads j in 1 {{\n"
      "      for k in {1} {{\n"
      "        %0 = load @x[i]\n"
      "        index g in 0..{0} = %0\n"
      "        %1 = position {0}*g + mod(i, {0}) + floordiv(i, {0}): i32\n"
      "        %2 = cast %1 {{dtype = f32}}\n"
      "        store @y[i] = %2 if 0 <= i + g < {0}\n"
      "      }}\n"
      "    }}\n"
      "  }}\n"
      "  for once in 7 {{\n"
      "  }}\n"
      "}}\n",
      n, m, where);
}

TEST(Bind, ReplacesSymbolsEverywhere) {
  const TileProgram program = parsed(text_of("N", "M", " where N in 1..64 step 8, M in 0..9"));
  EXPECT_EQ(print(program), text_of("N", "M", " where N in 1..64 step 8, M in 0..9"));
  std::vector<std::string> names;
  for (Symbol symbol : symbols_of(program)) names.push_back(symbol.name());
  EXPECT_THAT(names, testing::ElementsAre("N", "M"));

  Result<TileProgram> bound = specialize(program, {{"N", 16}, {"M", 2}, {"K", 1}});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  EXPECT_EQ(print(*bound), print(parsed(text_of("16", "2", ""))));
  EXPECT_TRUE(symbols_of(*bound).empty());
  Result<TileProgram> half = specialize(program, {{"M", 2}});
  ASSERT_TRUE(half.ok()) << half.error().to_string();
  EXPECT_EQ(print(*half), text_of("N", "2", " where N in 1..64 step 8"));
}

TEST(Bind, RefusesWhatDoesNotFitTheSymbol) {
  const TileProgram program = parsed(text_of("N", "M", " where N in 1..64 step 8, M in 0..9"));
  EXPECT_FALSE(specialize(program, {{"N", 128}}).ok());
  EXPECT_FALSE(specialize(program, {{"N", 12}}).ok());
  EXPECT_FALSE(specialize(program, {{"M", -1}}).ok());
}

TEST(Calling, LaysScratchOutInLinesOfACache) {
  const TileProgram program = parsed(text_of("16", "2", ""));
  const ScratchLayout layout = scratch_layout(program);
  // x, y, a, b, s, c
  EXPECT_THAT(layout.offsets, testing::ElementsAre(0, 0, 0, 64, 0, 128));
  EXPECT_EQ(layout.bytes, 192);
  const TileProgram symbolic = parsed(text_of("N", "M", " where N in 1..64 step 8, M in 0..9"));
  EXPECT_EQ(scratch_layout(symbolic).bytes.bind({{"N", 16}}), 192);
  EXPECT_EQ(bytes_of(Type::get(DType::i4, {3})), 2);
}

TEST(Calling, CountsTheTripsOfThreadsLoopsTogether) {
  const TileProgram program = parsed(
      "tiles @k() -> () {\n"
      "  threads i in 3 {\n threads j in 5 {\n for k in 7 {\n}\n }\n }\n"
      "  for i in 3 {\n }\n}\n");
  EXPECT_EQ(trips_of(program.phases[0], program), 15);
  EXPECT_EQ(trips_of(program.phases[1], program), 1);
}

}  // namespace
}  // namespace hone::HONE_FILE
