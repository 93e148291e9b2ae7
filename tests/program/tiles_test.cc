#include "program/tiles/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "program/tiles/bounds.h"
#include "program/tiles/interpret.h"
#include "program/tiles/tile_builder.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

TileProgram parsed(std::string_view text) {
  Result<TileProgram> program = parse_tiles(text);
  EXPECT_TRUE(program.ok()) << program.error().to_string();
  return program.ok() ? *program : TileProgram();
}

std::string parse_error(std::string_view text) {
  Result<TileProgram> program = parse_tiles(text);
  return program.ok() ? "parsed" : program.error().to_string();
}

// The error of a program that parses.
std::string verify_error(std::string_view text) {
  Status status = verify(parsed(text));
  return status.ok() ? "" : status.error().to_string();
}

// One phase over x: f32[4] -> y: f32[4].
std::string in_phase(std::string_view body) {
  return fmt::format("tiles @k(@x: f32[4]) -> (@y: f32[4]) {{\n  threads i in 4 {{\n{}\n  }}\n}}\n",
                     body);
}

// A register tile of a matrix product: 2 rows by 4 columns.
constexpr std::string_view kProduct =
    "tiles @product(@a: f32[4, 3], @b: f32[3, 8]) -> (@y: f32[4, 8]) {\n"
    "  scratch @p: f32[3, 2]\n"
    "  threads m in 2 {\n"
    "    for k in 3 {\n"
    "      unroll i in 2 {\n"
    "        %0 = load @a[2*m + i, k]\n"
    "        store @p[k, i] = %0\n"
    "      }\n"
    "    }\n"
    "    for n in 2 {\n"
    "      unroll i in 2 {\n"
    "        lanes j in 4 {\n"
    "          %1 = number 0: f32\n"
    "          %2 = for k in 3 carry (%3 = %1 by add) {\n"
    "            %4 = load @p[k, i]\n"
    "            %5 = load @b[k, 4*n + j]\n"
    "            %6 = fma %4, %5, %3\n"
    "            yield %6\n"
    "          }\n"
    "          store @y[2*m + i, 4*n + j] = %2\n"
    "        }\n"
    "      }\n"
    "    }\n"
    "  }\n"
    "}\n";

TEST(Tiles, TextRoundTrips) {
  EXPECT_EQ(print(parsed(kProduct)), kProduct);
  const std::string all_statements =
      "tiles @\"odd name\"(@x: i32[N], @t: f32[N, 8]) -> (@y: f32[N], @n: i32[]) "
      "where N in 1..64 step 8 {\n"
      "  shared @s: f32[N]\n"
      "  scratch @w: f32[N/8]\n"
      "  threads i in N {\n"
      "    %0 = load @x[i]\n"
      "    index g in -1..8 = %0\n"
      "    %1 = number 0.5: f32\n"
      "    %2 = load @t[i, g] if 0 <= g < 8 else %1\n"
      "    %3 = position -2*i + N*g + floordiv(i, 8) - mod(i + g, N) + 1: i32\n"
      "    %4 = cast %3 {dtype = f32}\n"
      "    %5 = compare %2, %4 {direction = lt}\n"
      "    %6 = select %5, %2, %4\n"
      "    %7, %8 = for k in 8 carry (%9 = %6 by max, %10 = %4) {\n"
      "      %11 = max %9, %10\n"
      "      yield %11, %2\n"
      "    }\n"
      "    store @y[i] = %7 if 0 <= i - 1 < N and 0 <= mod(i, 2) < 1\n"
      "    store @y[i] = %8\n"
      "    store @s[i] = %8\n"
      "  }\n"
      "  for once in 1 {\n"
      "    %12 = number -7: i32\n"
      "    store @n[] = %12\n"
      "  }\n"
      "}\n";
  EXPECT_EQ(print(parsed(all_statements)), all_statements);
  EXPECT_EQ(verify_error(all_statements), "");
}

TEST(Tiles, ParseErrorsHaveTheirPlace) {
  EXPECT_EQ(parse_error("tile @k"), "error: expected 'tiles', found 'tile' (<text>:1:1)");
  EXPECT_EQ(parse_error(in_phase("%0 = load @z[i]")), "error: there is no buffer @z (<text>:3:11)");
  EXPECT_THAT(parse_error(in_phase("%0 = load @x[j]")), HasSubstr("there is no index 'j' here"));
  EXPECT_THAT(parse_error(in_phase("%0 = load @x[i*i]")), HasSubstr("a product of two indices"));
  EXPECT_THAT(parse_error(in_phase("%0 = load @x[mod(i, 0)]")), HasSubstr("can be below 1"));
  EXPECT_THAT(parse_error(in_phase("%0 = nag %1")), HasSubstr("there is no op 'nag'"));
  EXPECT_THAT(parse_error(in_phase("%0 = neg %1")), HasSubstr("%1 is not defined here"));
  EXPECT_THAT(parse_error(in_phase("%0 = number 1: f32\n%0 = number 1: f32")),
              HasSubstr("%0 is defined twice"));
  EXPECT_THAT(parse_error(in_phase("%0 = number x: f32")), HasSubstr("<text>:3:13"));
  EXPECT_THAT(parse_error(in_phase("%0 = number 1: f31")), says("element type 'f31'"));
  EXPECT_THAT(parse_error(in_phase("for i in 2 {\n}")), HasSubstr("index 'i' is defined twice"));
  EXPECT_THAT(parse_error(in_phase("%0 = for k in 2 {\n}")), HasSubstr("carries 0 values"));
  EXPECT_THAT(parse_error(in_phase("%0 = load @x[i]\n%1 = add %0, %0 {axis = 1}")),
              HasSubstr("has no attribute 'axis'"));
  std::string deep;
  for (int i = 0; i < 200; ++i) deep += fmt::format("for i{} in 1 {{ ", i);
  EXPECT_THAT(parse_error(in_phase(deep)), HasSubstr("nested more than"));
  EXPECT_THAT(parse_error(in_phase("%0 = load @x[" + std::string(500, '('))),
              HasSubstr("nested more than"));
}

TEST(Tiles, VerifyProvesThatAccessesStayInside) {
  EXPECT_EQ(verify_error(kProduct), "");
  EXPECT_THAT(verify_error(in_phase("%0 = load @x[i + 1]")),
              says("index 0 of @x ... 0..3 ... tiles 'k'"));
  EXPECT_THAT(verify_error(in_phase("%0 = load @x[i - 1]")), HasSubstr("outside of 0..3"));
  EXPECT_THAT(verify_error(in_phase("%0 = load @x[]")), says("rank 1 ... 0 indices"));
  const std::string zero = "%z = number 0: f32\n";
  EXPECT_EQ(verify_error(in_phase(zero + "%0 = load @x[i - 1] if 0 <= i - 1 < 4 else %z")), "");
  EXPECT_EQ(verify_error(in_phase(zero + "%0 = load @x[2*i] if -1 <= 2*i - 1 < 3 else %z")), "");
  EXPECT_EQ(
      verify_error(in_phase(zero + "%0 = load @x[floordiv(i + 3, 2)] if 3 <= i + 3 < 8 else %z")),
      "");
  EXPECT_THAT(verify_error(in_phase(zero + "%0 = load @x[i - 1] if 0 <= i < 4 else %z")),
              HasSubstr("outside of 0..3"));
}

TEST(Tiles, GuardsOfWholeBlocksMentionNoLane) {
  TileProgram program = parsed(in_phase("    for b in 9 { lanes l in 16 {\n    } }"));
  const auto index = [&](std::string_view name) {
    const auto at = std::ranges::find(program.indices, name, &TileIndex::name);
    return IndexExpr::iter(static_cast<int>(at - program.indices.begin()));
  };
  const IndexExpr channel = index("b") * 16 + index("l");
  const auto simplified = [&](const Guard& guard) {
    return TileBounds(program).simplified(guard, {});
  };
  const Guard blocks = simplified({channel - 32, 0, 64});
  EXPECT_EQ(blocks.value, index("b") - 2);
  EXPECT_EQ(blocks.lower, 0);
  EXPECT_EQ(blocks.upper, 4);
  // The bound lies within a block.
  EXPECT_EQ(simplified({channel, 0, 65}).value, channel);
}

// Vectors in panels that are wider: lanes are neighbours, for no panel ends within a vector.
TEST(Tiles, PartsOfPanelsMentionLanesOnce) {
  TileProgram program = parsed(in_phase("    for b in 9 { for u in 2 { lanes l in 8 {\n    } } }"));
  const auto index = [&](std::string_view name) {
    const auto at = std::ranges::find(program.indices, name, &TileIndex::name);
    return IndexExpr::iter(static_cast<int>(at - program.indices.begin()));
  };
  const TileBounds bounds(program);
  const IndexExpr tile = index("b") * 16, within = index("u") * 8 + index("l"),
                  column = tile + within;
  EXPECT_EQ(bounds.simplified(floordiv(column, 32)), floordiv(tile, 32));
  EXPECT_EQ(bounds.simplified(mod(column, 32)), mod(tile, 32) + within);
  EXPECT_EQ(bounds.simplified(floordiv(column + 19, 32)), floordiv(column + 19, 32));
  EXPECT_EQ(bounds.simplified(mod(column - 16, 32)), mod(tile - 16, 32) + within);
  EXPECT_EQ(bounds.of(mod(column, 32)).high, 31);
  EXPECT_EQ(bounds.of(mod(tile, 32) + within).high, 31);
  EXPECT_EQ(bounds.of(mod(tile + 4, 32)).high, 28);
  // A panel may end within a vector.
  EXPECT_EQ(bounds.simplified(floordiv(column, 20)), floordiv(column, 20));
}

// A rest within a rest is one rest. Where a guard keeps what is added small, it is a sum again.
TEST(Tiles, PartsOfPanelsAreKnownByGuards) {
  TileProgram program = parsed(in_phase("    for b in 9 { for u in 6 { for v in 4 {\n    } } }"));
  const auto index = [&](std::string_view name) {
    const auto at = std::ranges::find(program.indices, name, &TileIndex::name);
    return IndexExpr::iter(static_cast<int>(at - program.indices.begin()));
  };
  const TileBounds bounds(program);
  const IndexExpr tile = index("b") * 4, within = index("u"),
                  column = mod(index("b"), 8) * 4 + within;
  const std::vector<Guard> guard = {{within, 0, 4}};
  EXPECT_EQ(bounds.simplified(mod(column, 32), guard), mod(tile, 32) + within);
  EXPECT_EQ(bounds.simplified(floordiv(tile + within, 32), guard), floordiv(tile, 32));
  EXPECT_EQ(bounds.simplified(mod(column, 32)), mod(tile + within, 32)) << "5 is too much";
  const std::vector<Guard> open = {{index("v"), 0, Symbol::get("N", 1, 64)}};
  EXPECT_EQ(bounds.simplified(mod(tile + index("v"), 32), open), mod(tile, 32) + index("v"));
}

TEST(Tiles, VerifyRefusesWhatIsNotWellFormed) {
  const std::string x = "%x = load @x[i]\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {x + "store @x[i] = %x", "@x ... input ... stored"},
      {x + "%0 = position i: i32\nstore @y[i] = %0", "@y holds f32, not i32"},
      {x + "%0 = position i: f32", "position ... f32"},
      {x + "index g in 0..3 = %x", "index ... integer ... f32"},
      {x + "%0 = load @x[i] else %x", "guards ... `else`"},
      {x + "threads j in 2 { %1 = load @x[j] }", "another one"},
      {x + "for j in 2 { threads l in 2 { %1 = load @x[l] } }", "threads loop l ... outermost"},
      {x + "for j in 2 { %1 = load @x[j] }\nstore @y[i] = %1", "not defined"},
      {x + "%1 = lanes j in 2 carry (%a = %x) {\nyield %x }", "carries a value in order"},
      {x + "%1 = for j in 2 carry (%a = %x by sub) {\n%2 = sub %a, %x\nyield %2 }",
       "sub does not combine trips"},
      {x + "%1 = for j in 2 carry (%a = %x by add) {\n%2 = mul %a, %x\nyield %2 }",
       "combine ... add"},
      {x + "%1 = for j in 2 carry (%a = %x by add) {\n%2 = add %a, %a\nyield %2 }",
       "combine ... add"},
      {x + "%1 = for j in 2 carry (%a = %x by add) {\n%2 = add %a, %x\nstore @y[i] = %2\nyield %2 "
           "}",
       "combine ... add"},
      {x + "%1 = for j in 2 carry (%a = %x by add) {\n%2 = add %a, %x\n%3 = add %2, %a\nyield %3 }",
       "combine ... add"},
      {x + "%1 = for j in 2 carry (%a = %x by add) {\n%2 = add %x, %a\nyield %2 }",
       "combine ... add"},
  };
  for (const auto& [body, error] : cases)
    EXPECT_THAT(verify_error(in_phase(body)), says(std::string(error))) << body;
  EXPECT_THAT(verify_error("tiles @k(@x: f32[N]) -> () where N in 0..4 {\n"
                           "  lanes i in N {\n %0 = load @x[i]\n }\n}\n"),
              says("lanes loop i ... extent"));
}

TEST(Tiles, InterpretsARegisterTile) {
  std::vector<double> a, b, expected(32, 0.0);
  for (int i = 0; i < 12; ++i) a.push_back(i - 5);
  for (int i = 0; i < 24; ++i) b.push_back(2 * i - 20);
  for (size_t m = 0; m < 4; ++m)
    for (size_t n = 0; n < 8; ++n)
      for (size_t k = 0; k < 3; ++k) expected[m * 8 + n] += a[m * 3 + k] * b[k * 8 + n];
  const std::vector<Tensor> inputs = {Tensor::from_reals(Type::get(DType::f32, {4, 3}), a),
                                      Tensor::from_reals(Type::get(DType::f32, {3, 8}), b)};
  for (bool backwards : {false, true}) {
    Result<std::vector<Tensor>> results =
        interpret(parsed(kProduct), inputs, {.backwards = backwards});
    ASSERT_TRUE(results.ok()) << results.error().to_string();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ((*results)[0].real_at(static_cast<int64_t>(i)), expected[i]) << i;
  }
}

std::string interpret_error(std::string_view text) {
  const TileProgram program = parsed(text);
  EXPECT_EQ(verify_error(text), "");
  Result<std::vector<Tensor>> results =
      interpret(program, std::vector{Tensor::zeros(Type::get(DType::f32, {4}))});
  return results.ok() ? "" : results.error().to_string();
}

TEST(Tiles, TripsWithoutStatementsAreLimitedToo) {
  const TileProgram program = parsed(R"(tiles @f(@x: f32[4]) -> (@y: f32[4]) {
  threads i in 88888888888888 {
  }
}
)");
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {4}));
  EXPECT_THAT(interpret(program, std::vector{x}, {.max_statements = 1000}).error().to_string(),
              testing::HasSubstr("more than 1000 statements"));
}

TEST(Tiles, InterpretationFindsRacesAndUnwrittenMemory) {
  EXPECT_EQ(interpret_error(in_phase("%0 = load @x[i]\nstore @y[i] = %0")), "");
  EXPECT_THAT(interpret_error(in_phase("%0 = load @x[i]\nstore @y[0] = %0")),
              says("two trips ... element 0 of @y ... tiles 'k'"));
  EXPECT_THAT(interpret_error(in_phase("%0 = load @x[i]\nstore @y[i] = %0\n"
                                       "%1 = load @y[0]\nstore @y[i] = %1")),
              says("two trips ... element 0 of @y"));
  EXPECT_THAT(interpret_error(in_phase("%0 = load @y[i]\nstore @y[i] = %0")),
              says("element 0 of @y ... read ... written"));
  EXPECT_THAT(interpret_error(in_phase("%0 = load @x[i]\nstore @y[i] = %0 if 0 <= i < 3")),
              says("element 3 of @y ... never"));
  // Scratch is forgotten from phase to phase.
  EXPECT_THAT(interpret_error("tiles @k(@x: f32[4]) -> (@y: f32[4]) {\n"
                              "  scratch @s: f32[4]\n"
                              "  for i in 4 {\n %0 = load @x[i]\n store @s[i] = %0\n }\n"
                              "  for i in 4 {\n %1 = load @s[i]\n store @y[i] = %1\n }\n}\n"),
              says("element 0 of @s ... read ... written"));
}

// A statement before a loop is known in all of it, also where others were named before.
// It is not proved that only one point stores to an element.
TEST(Tiles, InterpretationFindsWhatHasChanged) {
  const auto error = [](std::string_view loop) {
    return interpret_error(
        fmt::format("tiles @k(@x: f32[4]) -> (@y: f32[4] in @x) {{\n  {} {{\n"
                    "    for i in 4 {{\n      %0 = load @x[i]\n"
                    "      store @y[i] = %0\n    }}\n  }}\n}}\n",
                    loop));
  };
  EXPECT_EQ(error("for once in 1"), "");
  for (std::string_view loop : {"for again in 2", "threads both in 2"})
    EXPECT_THAT(error(loop), says("element 0 of @x ... read ... @y"));
}

constexpr std::string_view kDonor =
    "tiles @k(@x: f32[4], @g: f32[4]) -> (@y: f32[4] in @x, @z: f32[4]) {\n"
    "  threads i in 2 {\n"
    "    %0 = load @g[2*i]\n"
    "    lanes j in 2 {\n"
    "      %1 = load @x[2*i + j]\n"
    "      %2 = add %0, %1\n"
    "      store @y[2*i + j] = %2\n"
    "      store @z[2*i + j] = %1\n"
    "    }\n"
    "  }\n"
    "}\n";

TEST(Tiles, VerifyProvesWhatIsLoadedWhereAnOutputMayLie) {
  EXPECT_EQ(print(parsed(kDonor)), kDonor);
  const auto error = [](std::string_view from, std::string_view to) {
    std::string text(kDonor);
    text.replace(text.find(from), from.size(), to);
    const Result<TileProgram> program = parse_tiles(text);
    const Status status = program.ok() ? verify(*program) : program.error();
    return status.ok() ? std::string() : status.error().to_string();
  };
  EXPECT_EQ(error("", ""), "");
  EXPECT_EQ(error("%1 = load @x[2*i + j]", "%1 = load @x[2*i + j] if 0 <= j < 1 else %0"), "");
  EXPECT_EQ(error("store @y[2*i + j] = %2", "store @y[2*i + j] = %2 if 0 <= j < 1"), "");
  EXPECT_THAT(error("load @x[2*i + j]", "load @x[2*i]"), says("@x ... loaded ... @y"));
  EXPECT_THAT(error("load @g[2*i]", "load @x[2*i]"), says("@y"));
  EXPECT_THAT(
      error("store @z[2*i + j] = %1", "%3 = load @x[2*i + j]\n      store @z[2*i + j] = %3"),
      says("@x ... loaded ... @y"));
  EXPECT_THAT(error("@y: f32[4] in @x", "@y: f32[4] in @z"), HasSubstr("there is no buffer @z"));
  EXPECT_THAT(error("@y: f32[4] in @x", "@y: f32[4] in @y"), says("output @y ... input"));
  EXPECT_THAT(error("@y: f32[4] in @x", "update @y: f32[4] in @x"),
              says("@y ... other memory ... output"));
  EXPECT_THAT(error("@z: f32[4]", "@z: f32[4] in @x"), says("two outputs ... input @x"));
  EXPECT_THAT(error("@x: f32[4]", "@x: f32[5]"), says("output @y is f32[4] ... input"));
}

TEST(Tiles, BuilderNamesWhatItPutsBefore) {
  TileBuilder b("k");
  const tile::BufferId x = b.buffer("x", Type::scalar(DType::i64), BufferRole::input);
  b.loop(Exec::loop, "i", 2, [&](IndexExpr) {
    const tile::Scalar value = b.load(x, {});
    b.loop(Exec::loop, "j", 2, [&](IndexExpr) {
      b.loop(Exec::loop, "k", 2, [&](IndexExpr) { b.choose("s", 0, 4, value); });
      b.within(1, [&] { b.choose("s", 0, 4, value); });
    });
  });
  const TileProgram program = std::move(b).finish();
  Status status = verify(program);
  EXPECT_TRUE(status.ok()) << status.error().to_string() << print(program);
}

TEST(Tiles, ChoosesTheNearestIndex) {
  const TileProgram program = parsed(
      "tiles @k(@i: u64[4], @x: f32[3]) -> (@y: f32[4]) {\n"
      "  threads t in 4 {\n"
      "    %0 = load @i[t]\n"
      "    index g in 0..2 = %0\n"
      "    %1 = load @x[g]\n"
      "    store @y[t] = %1\n"
      "  }\n"
      "}\n");
  ASSERT_TRUE(verify(program).ok());
  const std::vector<Tensor> inputs = {
      Tensor::from_integers(Type::get(DType::u64, {4}), std::vector<int64_t>{0, 1, 7, -1}),
      Tensor::from_reals(Type::get(DType::f32, {3}), std::vector<double>{10, 11, 12})};
  const Tensor y = interpret(program, inputs).value()[0];
  EXPECT_EQ(y.real_at(0), 10);
  EXPECT_EQ(y.real_at(1), 11);
  EXPECT_EQ(y.real_at(2), 12);
  EXPECT_EQ(y.real_at(3), 12);  // 2^64 - 1
}

// Sums rows of x between offsets.
constexpr std::string_view kSegments =
    "tiles @k(@x: f32[4], @o: i32[3]) -> (@y: f32[2]) {\n"
    "  threads i in 2 {\n"
    "    %0 = load @o[i]\n"
    "    index s in 0..4 = %0\n"
    "    %1 = load @o[i + 1]\n"
    "    index t in 0..4 = %1\n"
    "    %2 = number 0: f32\n"
    "    %3 = for r in 4 from s to t carry (%4 = %2 by add) {\n"
    "      %5 = load @x[r]\n"
    "      %6 = add %4, %5\n"
    "      yield %6\n"
    "    }\n"
    "    store @y[i] = %3\n"
    "  }\n"
    "}\n";

TEST(Tiles, LoopsOverAPartOfTheirTrips) {
  const TileProgram program = parsed(kSegments);
  EXPECT_EQ(print(program), kSegments);
  EXPECT_EQ(verify_error(kSegments), "");
  const Tensor x = Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>{1, 2, 4, 8});
  const auto sums = [&](std::vector<int64_t> offsets, bool backwards) {
    const Tensor inputs[] = {x, Tensor::from_integers(Type::get(DType::i32, {3}), offsets)};
    const Tensor y = interpret(program, inputs, {.backwards = backwards}).value()[0];
    return std::vector<double>{y.real_at(0), y.real_at(1)};
  };
  for (bool backwards : {false, true}) {
    EXPECT_EQ(sums({0, 3, 4}, backwards), (std::vector<double>{7, 8}));
    EXPECT_EQ(sums({-7, 4, 2}, backwards), (std::vector<double>{15, 0}));
    EXPECT_EQ(sums({1, 1, 99}, backwards), (std::vector<double>{0, 14}));
  }
}

TEST(Tiles, APartOfTheTripsIsOfALoop) {
  const auto loop = [](std::string_view bounds) {
    return in_phase(
        fmt::format("    %0 = load @x[i]\n"
                    "    %1 = cast %0 {{dtype = i32}}\n"
                    "    index g in -1..5 = %1\n"
                    "    {} {{\n"
                    "      store @y[i] = %0\n"
                    "    }}",
                    bounds));
  };
  EXPECT_EQ(verify_error(loop("for r in 4 from g to 4")), "");
  EXPECT_THAT(verify_error(loop("for r in 4 from 4611686018427387904*g to 4")), says("loop"));
  EXPECT_THAT(verify_error(loop("unroll r in 4 from 0 to 2")), says("part of its trips"));
}

}  // namespace
}  // namespace hone::HONE_FILE
