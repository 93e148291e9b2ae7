#include <gtest/gtest.h>

#include "ir/text.h"
#include "program/tiles/calling.h"
#include "tests/base/says_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

std::vector<Tensor> numbers(const TileProgram& program, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const TileBuffer& buffer : program.buffers)
    if (buffer.role == BufferRole::input)
      inputs.push_back(with_specials(
          buffer.type, {}, rng, [&] { return rng.uniform(-3, 3); },
          [&] { return rng.between(-9, 9); }));
  return inputs;
}

std::vector<Tensor> of_graph(std::string_view text, std::span<const Tensor> inputs) {
  return evaluate(parse_graph(text).value(), inputs, {.numerics = Numerics::rounded}).value();
}

std::vector<Tensor> softmax(std::span<const Tensor> inputs) {
  return of_graph(
      "graph @g(%x: f32[3, 1000]) -> f32[3, 1000] { %m = reduce %x {kind = max, axes = [1]} "
      "%b = broadcast %m {dims = [3, 1000], map = [0]} %d = sub %x, %b %e = exp %d "
      "%s = reduce %e {kind = sum, axes = [1]} %c = broadcast %s {dims = [3, 1000], map = [0]} "
      "%y = div %e, %c return %y }",
      inputs);
}

std::vector<Tensor> product(std::span<const Tensor> inputs) {
  return of_graph(
      "graph @g(%a: i32[50, 40], %b: i32[40, 70]) -> i32[50, 70] { %c = dot %a, %b "
      "{lhs_contract = [1], rhs_contract = [0]} return %c }",
      inputs);
}

// ---- What they compute --------------------------------------------------------------------------

// In the order of several seeds, and with each block as one thread.
void check_blocks(const std::string& text,
                  std::vector<Tensor> (*reference)(std::span<const Tensor>)) {
  const TileProgram program = parse_tiles(text).value();
  const std::vector<Tensor> inputs = numbers(program, 1);
  const std::vector<Tensor> expected = reference(inputs);
  check_program(program, inputs, expected, 4);
  const std::vector<Tensor> first = interpret(program, inputs).value();
  const TileProgram serial = serial_form(program);
  SCOPED_TRACE(print(serial));
  const Status status = verify(serial);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  for (uint64_t seed : {1, 2, 3}) {
    const std::vector<Tensor> again = interpret(program, inputs, {.seed = seed}).value();
    EXPECT_TRUE(std::ranges::equal(again[0].bytes(), first[0].bytes()));
  }
  const Result<std::vector<Tensor>> one_by_one = interpret(serial, inputs);
  ASSERT_TRUE(one_by_one.ok()) << one_by_one.error().to_string();
  EXPECT_TRUE(std::ranges::equal((*one_by_one)[0].bytes(), first[0].bytes()));
}

TEST(Blocks, SoftmaxOfARowByABlock) { check_blocks(kBlockSoftmax, softmax); }
TEST(Blocks, ProductByTilesInTheMemoryOfABlock) { check_blocks(kBlockProduct, product); }

TEST(Blocks, TheCallerKnowsWhatABlockNeeds) {
  const TileProgram program = parse_tiles(kBlockProduct).value();
  EXPECT_EQ(trips_of(program.phases[0], program).value(), 20);
  EXPECT_EQ(block_threads(program.phases[0], program), 256);
  EXPECT_EQ(chip_layout(program).bytes, 16 * 17 * 4 + 16 * 16 * 4);
  const TileProgram serial = serial_form(simt_form(program));
  EXPECT_EQ(trips_of(serial.phases[0], serial).value(), 20);
  EXPECT_EQ(block_threads(serial.phases[0], serial), 0);
}

// ---- Planted faults -----------------------------------------------------------------------------

TEST(Blocks, EachBarrierThatIsMissingIsFound) {
  for (const auto& [text, barriers] : {std::pair(kBlockSoftmax, 2), std::pair(kBlockProduct, 2)})
    for (int n = 0; n < barriers; ++n) {
      const std::string without = changed(text, "barrier\n", "\n", n);
      SCOPED_TRACE(without);
      const TileProgram program = parse_tiles(without).value();
      ASSERT_TRUE(verify(program).ok());
      const std::vector<Tensor> inputs = numbers(program, 1);
      int found = 0;
      for (uint64_t seed = 0; seed < 4; ++seed) {
        const Result<std::vector<Tensor>> result = interpret(program, inputs, {.seed = seed});
        found += result.ok() ? 0 : 1;
        if (!result.ok()) EXPECT_THAT(result.error(), says("element ... @"));
      }
      EXPECT_EQ(found, 4);
    }
}

TEST(Blocks, AWrongPlaceInTheMemoryOfABlockIsFound) {
  const TileProgram program =
      parse_tiles(changed(kBlockProduct, "store @ta[floordiv(u, 16), mod(u, 16)]",
                          "store @ta[mod(u, 16), floordiv(u, 16)]"))
          .value();
  const std::vector<Tensor> inputs = numbers(program, 1);
  const std::vector<Tensor> actual = interpret(program, inputs).value();
  EXPECT_FALSE(compare(actual[0], product(inputs)[0], {})->passed());
  // Two threads that meet in one element.
  EXPECT_THAT(interpret(parse_tiles(changed(kBlockProduct, "store @ta[floordiv(u, 16), mod(u, 16)]",
                                            "store @ta[floordiv(u, 32), mod(u, 16)]"))
                            .value(),
                        inputs),
              refuses(ErrorCode::bad_input, "element ... @ta"));
}

TEST(Blocks, APredicateThatIsOffByOneIsFound) {
  EXPECT_THAT(verify(parse_tiles(changed(kBlockProduct, "< 50 and", "< 51 and")).value()),
              refuses(ErrorCode::bad_input, "index 0 of @a"));
  const TileProgram last = parse_tiles(changed(kBlockProduct, "< 70\n", "< 69\n")).value();
  ASSERT_TRUE(verify(last).ok());
  EXPECT_THAT(interpret(last, numbers(last, 1)), refuses(ErrorCode::bad_input, "@c ... written"));
}

// ---- What the verifier refuses ------------------------------------------------------------------

std::string in_block(std::string_view body, std::string_view more = "") {
  return fmt::format(
      "tiles @k(@x: f32[4, 64]) -> (@y: f32[4, 64]) {{ block @b: f32[64] own @o: f32[] {} "
      "blocks i in 4 {{ {} }} }}",
      more, body);
}

TEST(Blocks, AllThreadsOfABlockComeToABarrier) {
  const auto status = [](std::string_view body) {
    return verify(parse_tiles(in_block(body)).value());
  };
  EXPECT_TRUE(status("for k in 3 { barrier } threads t in 64 { %x = load @x[i, t] "
                     "store @y[i, t] = %x }")
                  .ok());
  EXPECT_THAT(status("threads t in 64 { barrier }"), refuses(ErrorCode::bad_input, "barrier"));
  EXPECT_THAT(status("threads t in 64 { combine @o[] by add }"),
              refuses(ErrorCode::bad_input, "combination"));
  EXPECT_THAT(status("%x = number 1: f32"), refuses(ErrorCode::bad_input, "block"));
  EXPECT_THAT(status("unroll k in 3 { barrier }"), refuses(ErrorCode::bad_input, "block"));
  EXPECT_THAT(status("threads t in 2000 { %x = load @x[i, 0] }"),
              refuses(ErrorCode::bad_input, "2000 ... 1024"));
  EXPECT_THAT(status("blocks j in 4 { barrier } barrier"), refuses(ErrorCode::bad_input, "alone"));
  EXPECT_THAT(status("combine @b[0] by add"), refuses(ErrorCode::bad_input, "@b"));
  EXPECT_THAT(status("combine @o[] by sub"), refuses(ErrorCode::bad_input, "sub ... @o"));
  EXPECT_THAT(verify(parse_tiles("tiles @k(@x: f32[4]) -> (@y: f32[4]) { block @b: f32[4] "
                                 "threads i in 4 { %x = load @x[i] store @b[i] = %x } }")
                         .value()),
              refuses(ErrorCode::bad_input, "@b"));
  EXPECT_THAT(verify(parse_tiles("tiles @k(@x: f32[4]) -> (@y: f32[4]) { "
                                 "for i in 4 { blocks j in 2 { barrier } } }")
                         .value()),
              refuses(ErrorCode::bad_input, "blocks loop j"));
}

TEST(Blocks, WhatNoThreadWroteIsNotCombined) {
  EXPECT_THAT(interpret(parse_tiles(in_block("threads t in 33 { %x = load @x[i, t] "
                                             "store @o[] = %x } combine @o[] by add"))
                            .value(),
                        numbers(parse_tiles(in_block("barrier")).value(), 1)),
              refuses(ErrorCode::bad_input, "@o of thread 33"));
}

// ---- Copies in the background
// --------------------------------------------------------------------

std::string copying(std::string_view body) {
  return fmt::format(
      "tiles @k(@x: f32[4, 64]) -> (@y: f32[4, 64]) {{ block @b: f32[64] blocks i in 4 {{ {} "
      "threads u in 64 {{ %x = load @b[63 - u] store @y[i, u] = %x }} }} }}",
      body);
}

TEST(Blocks, CopiesAreThereBehindAWaitAndABarrier) {
  constexpr std::string_view kCopy =
      "threads t in 16 { copy 4 @b[4*t] = @x[i, 4*t] if 0 <= t < 15 } ";
  const auto run = [&](std::string_view behind) {
    const TileProgram program =
        parse_tiles(copying(std::string(kCopy) + std::string(behind))).value();
    EXPECT_EQ(print(parse_tiles(print(program)).value()), print(program));
    EXPECT_TRUE(verify(program).ok());
    return interpret(program, numbers(program, 1));
  };
  const std::vector<Tensor> result = run("group wait 0 barrier").value();
  const std::vector<Tensor> x = numbers(parse_tiles(copying("barrier")).value(), 1);
  for (int64_t u = 0; u < 64; ++u)
    EXPECT_EQ(result[0].real_at(u), u < 4 ? 0 : x[0].real_at(63 - u)) << u;
  EXPECT_THAT(run("group wait 0"), refuses(ErrorCode::bad_input, "@b"));
  EXPECT_THAT(run("group barrier"), refuses(ErrorCode::bad_input, "@b ... waited"));
  EXPECT_THAT(run("wait 0 barrier"), refuses(ErrorCode::bad_input, "@b ... waited"));
  EXPECT_THAT(run("group wait 1 barrier"), refuses(ErrorCode::bad_input, "@b ... waited"));
  EXPECT_TRUE(run("group group wait 1 barrier").ok());
}

TEST(Blocks, CopiesThatCannotBeAreRefused) {
  const auto status = [](std::string_view body) {
    return verify(parse_tiles(copying(body)).value());
  };
  EXPECT_TRUE(status("threads t in 16 { copy 4 @b[4*t] = @x[i, 4*t] }").ok());
  EXPECT_THAT(status("threads t in 15 { copy 4 @b[4*t + 1] = @x[i, 4*t] }"),
              refuses(ErrorCode::bad_input, "@b ... between two pieces"));
  EXPECT_THAT(status("threads t in 16 { copy 3 @b[3*t] = @x[i, 3*t] }"),
              refuses(ErrorCode::bad_input, "96 bits"));
  EXPECT_THAT(status("threads t in 16 { copy 1 @b[t] = @y[i, t] }"),
              refuses(ErrorCode::bad_input, "@y"));
  EXPECT_THAT(status("threads t in 65 { copy 1 @b[t] = @x[i, t] if 0 <= t < 64 }"),
              refuses(ErrorCode::bad_input, "@b"));
  EXPECT_THAT(status("threads t in 16 { group }"), refuses(ErrorCode::bad_input, "block"));
}

// Memory that a phase before has written is copied like an input.
TEST(Blocks, CopiesComeFromWhatAPhaseBeforeWrote) {
  const auto program = [](std::string_view first, std::string_view copies) {
    return parse_tiles(
               fmt::format("tiles @k(@x: f32[4, 64]) -> (@y: f32[4, 64]) {{ shared @s: f32[4, 64] "
                           "block @b: f32[64] threads i in 4 {{ threads j in {} {{ %x = load @x[i, "
                           "j] store @s[i, j] = %x }} }} blocks i in 4 {{ {} group wait 0 barrier "
                           "threads u in 64 {{ %y = load @b[63 - u] store @y[i, u] = %y }} }} }}",
                           first, copies))
        .value();
  };
  const std::string copies = "threads t in 16 { copy 4 @b[4*t] = @s[i, 4*t] }";
  const TileProgram whole = program("64", copies);
  ASSERT_TRUE(verify(whole).ok());
  const std::vector<Tensor> x = numbers(whole, 1);
  const std::vector<Tensor> result = interpret(whole, x).value();
  for (int64_t u = 0; u < 64; ++u) EXPECT_EQ(result[0].real_at(u), x[0].real_at(63 - u)) << u;
  EXPECT_THAT(interpret(program("63", copies), x),
              refuses(ErrorCode::bad_input, "element 63 of @s ... before it is written"));
  // Memory that the phase changes may change under a copy.
  EXPECT_THAT(verify(program("64", copies + " threads t in 16 { %z = load @x[i, t] "
                                            "store @s[i, t] = %z }")),
              refuses(ErrorCode::bad_input, "@s"));
}

// ---- Products of warps --------------------------------------------------------------------------

// Fragments by their places: a thread at a time, in words of both types.
TEST(Blocks, AWarpMultipliesWhatItsThreadsHave) {
  for (std::string_view numbers_of : {"bf16", "f16"}) {
    const std::string text = fmt::format(
        "tiles @k(@x: {0}[16, 16], @w: {0}[8, 16]) -> (@y: f32[16, 8]) {{ block @a: {0}[16, 16] "
        "block @b: {0}[8, 16] own @l: u32[4] own @r: u32[2] own @s: f32[4] blocks i in 1 {{ "
        "threads t in 32 {{ for k in 8 {{ %x = load @x[floordiv(t, 2), 8*mod(t, 2) + k] "
        "store @a[floordiv(t, 2), 8*mod(t, 2) + k] = %x }} "
        "for k in 4 {{ %w = load @w[floordiv(t, 4), 4*mod(t, 4) + k] "
        "store @b[floordiv(t, 4), 4*mod(t, 4) + k] = %w }} }} barrier "
        "threads t in 32 {{ %zero = number 0.5: f32 unroll q in 2 {{ unroll h in 2 {{ "
        "%l = load word @a[floordiv(t, 4) + 8*h, 2*mod(t, 4) + 8*q] store @l[h + 2*q] = %l "
        "store @s[h + 2*q] = %zero }} "
        "%r = load word @b[floordiv(t, 4), 2*mod(t, 4) + 8*q] store @r[q] = %r }} }} "
        "multiply @s[], @l[], @r[] as {0} "
        "threads t in 32 {{ unroll h in 2 {{ unroll e in 2 {{ %y = load @s[2*h + e] "
        "store @y[floordiv(t, 4) + 8*h, 2*mod(t, 4) + e] = %y }} }} }} }} }}",
        numbers_of);
    const auto reference = [](std::span<const Tensor> inputs) {
      return of_graph(
          fmt::format("graph @g(%x: {0}[16, 16], %w: {0}[8, 16]) {{ %a = cast %x {{dtype = f32}} "
                      "%b = cast %w {{dtype = f32}} %h = constant 0.5 : f32[] "
                      "%c = broadcast %h {{dims = [16, 8], map = []}} "
                      "%d = dot %a, %b {{lhs_contract = [1], rhs_contract = [1]}} "
                      "%y = add %d, %c return %y }}",
                      name(inputs[0].dtype())),
          inputs);
    };
    check_blocks(text, reference);
    // A fragment that lies elsewhere.
    const TileProgram wrong =
        parse_tiles(changed(text, "store @l[h + 2*q]", "store @l[2*h + q]")).value();
    const std::vector<Tensor> inputs = numbers(wrong, 1);
    EXPECT_FALSE(compare(interpret(wrong, inputs).value()[0], reference(inputs)[0], {})->passed());
    EXPECT_THAT(verify(parse_tiles(changed(text, "own @r: u32[2]", "own @r: u32[4]")).value()),
                refuses(ErrorCode::bad_input, "@r ... 2 u32"));
    EXPECT_THAT(interpret(parse_tiles(changed(text, "store @r[q] = %r", "")).value(), inputs),
                refuses(ErrorCode::bad_input, "@r of thread 0"));
  }
}

// ---- Matrices of warps --------------------------------------------------------------------------

// A matrix of 16 rows of 16 numbers in memory of the block, and what threads then do with it.
std::string with_matrix(std::string_view own, std::string_view load, std::string_view result) {
  return fmt::format(
      "tiles @k(@x: bf16[16, 16]) -> (@y: u32[32, 4]) {{ block @a: bf16[16, 16] own @l: u32[{}] "
      "blocks i in 1 {{ threads t in 32 {{ for k in 8 {{ %x = load @x[floordiv(t, 2), 8*mod(t, 2) "
      "+ k] store @a[floordiv(t, 2), 8*mod(t, 2) + k] = %x }} }} barrier {} "
      "threads t in 32 {{ unroll n in 4 {{ %w = load @l[{}] store @y[t, n] = %w }} }} }} }}",
      own, load, result);
}

TEST(Blocks, AWarpLoadsMatrices) {
  const auto words = [](std::string_view place) {
    return fmt::format(
        "threads t in 32 {{ unroll q in 2 {{ unroll h in 2 {{ %l = load word @a[{}] "
        "store @l[h + 2*q] = %l }} }} }}",
        place);
  };
  struct Case {
    std::string matrices, words;
  };
  const Case cases[] = {
      // Two matrices below each other, then those beside them.
      {with_matrix("4", "threads t in 32 { matrices 4 @l[] = @a[mod(t, 16), 8*floordiv(t, 16)] }",
                   "n"),
       with_matrix("4", words("floordiv(t, 4) + 8*h, 2*mod(t, 4) + 8*q"), "n")},
      // Beside each other first, into two places.
      {with_matrix("2, 2",
                   "threads t in 32 { matrices 4 @l[0] = "
                   "@a[mod(t, 8) + 8*floordiv(t, 16), 8*mod(floordiv(t, 8), 2)] }",
                   "floordiv(n, 2), mod(n, 2)"),
       with_matrix("4", words("floordiv(t, 4) + 8*q, 2*mod(t, 4) + 8*h"), "n")}};
  for (const Case& one : cases) {
    const TileProgram program = parse_tiles(one.matrices).value();
    EXPECT_EQ(print(parse_tiles(print(program)).value()), print(program));
    ASSERT_TRUE(verify(program).ok()) << verify(program).error().to_string();
    const std::vector<Tensor> inputs = numbers(program, 1);
    expect_same_in_any_order(program, inputs);
    const std::vector<Tensor> expected = interpret(parse_tiles(one.words).value(), inputs).value();
    SimtCounts counts;
    const std::vector<Tensor> actual = interpret(program, inputs, {.counts = &counts}).value();
    EXPECT_TRUE(std::ranges::equal(actual[0].bytes(), expected[0].bytes()));
    // Eight steps fill @a, in each of which four threads meet at a bank. Rows have 32 bytes: two
    // of the eight of a matrix begin at the same bank.
    EXPECT_EQ(counts.bank_conflicts, 8 * 3 + 4);
  }
}

TEST(Blocks, MatricesThatCannotBeAreRefused) {
  const auto status = [](std::string_view load, std::string_view own = "4") {
    return verify(parse_tiles(with_matrix(own, load, own == "4" ? "n" : "0, mod(n, 2)")).value());
  };
  EXPECT_TRUE(status("threads t in 32 { matrices 4 @l[] = @a[mod(t, 16), 0] }").ok());
  EXPECT_THAT(status("threads t in 16 { matrices 4 @l[] = @a[mod(t, 16), 0] }"),
              refuses(ErrorCode::bad_input, "lack some of its threads"));
  EXPECT_THAT(status("threads t in 32 { for k in 2 from mod(t, 2) to 2 { "
                     "matrices 4 @l[] = @a[mod(t, 16), 0] } }"),
              refuses(ErrorCode::bad_input, "lack some of its threads"));
  EXPECT_THAT(status("threads t in 32 { matrices 3 @l[] = @a[mod(t, 16), 0] }"),
              refuses(ErrorCode::bad_input, "3 matrices"));
  EXPECT_THAT(status("threads t in 32 { matrices 4 @l[] = @a[mod(t, 16), mod(t, 2)] }"),
              refuses(ErrorCode::bad_input, "a row of 8 elements ... between two pieces"));
  EXPECT_THAT(status("threads t in 32 { matrices 4 @l[] = @x[mod(t, 16), 0] }"),
              refuses(ErrorCode::bad_input, "@x"));
  EXPECT_THAT(status("threads t in 32 { matrices 4 @l[] = @a[t, 0] }"),
              refuses(ErrorCode::bad_input, "@a may lie outside"));
  EXPECT_THAT(status("threads t in 32 { %one = number 1: i32 index c in 0..1 = %one "
                     "matrices 4 @l[] = @a[mod(t, 16), 8*c] }"),
              refuses(ErrorCode::bad_input, "index c, which each thread makes"));
  EXPECT_THAT(status("threads t in 32 { matrices 2 @l[] = @a[mod(t, 16), 0] }"),
              refuses(ErrorCode::bad_input, "words of 2 matrices"));
  EXPECT_THAT(status("threads t in 32 { matrices 4 @l[1] = @a[mod(t, 16), 0] }", "3, 2"),
              refuses(ErrorCode::bad_input, "words of 4 matrices"));
}

// ---- What is counted ----------------------------------------------------------------------------

TEST(Blocks, AccessesAreCounted) {
  // Rows of 33 words put a column into 32 banks; rows of 32 into one.
  for (const auto& [columns, conflicts] : {std::pair(33, 0), std::pair(32, 31)}) {
    const TileProgram program =
        parse_tiles(fmt::format("tiles @k(@x: f32[32, 32]) -> (@y: f32[32, 32]) {{ "
                                "block @b: f32[32, {}] blocks i in 1 {{ for k in 32 {{ "
                                "threads t in 32 {{ %x = load @x[k, t] store @b[k, t] = %x }} }} "
                                "barrier for k2 in 32 {{ threads u in 32 {{ %z = load @b[u, k2] "
                                "store @y[u, k2] = %z }} }} }} }}",
                                columns))
            .value();
    ASSERT_TRUE(verify(program).ok());
    SimtCounts counts;
    ASSERT_TRUE(interpret(program, numbers(program, 1), {.counts = &counts}).ok());
    EXPECT_EQ(counts.barriers, 1);
    EXPECT_EQ(counts.block_accesses, 64);
    EXPECT_EQ(counts.bank_conflicts, 32 * conflicts);
    EXPECT_EQ(counts.global_accesses, 64);
    // Loads take four sectors each; stores, which lie apart, 32.
    EXPECT_EQ(counts.sectors, 32 * 4 + 32 * 32);
    EXPECT_EQ(counts.least_sectors, 64 * 4);
  }
}

// ---- Votes --------------------------------------------------------------------------------------

// A block adds its numbers if one of them is above 100, and else multiplies them.
const std::string kVote = R"(tiles @vote(@x: f32[4, 64]) -> (@y: f32[4, 64]) {
  own @seen: u32[2]
  blocks i in 4 {
    threads t in 64 {
      %x = load @x[i, t]
      %limit = number 100.0: f32
      %above = compare %x, %limit {direction = gt}
      %seen = cast %above {dtype = u32}
      %none = number 0: u32
      store @seen[0] = %none
      store @seen[1] = %seen
    }
    vote any = @seen[1]
    for once in 1 from any to 1 {
      threads u in 64 {
        %a = load @x[i, u]
        %m = mul %a, %a
        store @y[i, u] = %m
      }
    }
    for twice in 1 from 0 to any {
      threads v in 64 {
        %b = load @x[i, v]
        %s = add %b, %b
        store @y[i, v] = %s
      }
    }
  }
}
)";

TEST(Blocks, VoteForWhatAllThreadsDo) {
  const TileProgram program = parse_tiles(kVote).value();
  const Status status = verify(program);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(print(parse_tiles(print(program)).value()), print(program));
  std::vector<double> numbers(256, 3);
  numbers[64 + 5] = 101;
  numbers[3 * 64 + 63] = 1000;
  const Tensor x = Tensor::from_reals(Type::get(DType::f32, {4, 64}), numbers);
  const Tensor y = interpret(program, {{x}}).value()[0];
  for (int64_t i = 0; i < 256; ++i) {
    const double number = numbers[static_cast<size_t>(i)];
    EXPECT_EQ(y.real_at(i), i / 64 % 2 == 1 ? 2 * number : number * number) << i;
  }
  expect_same_in_any_order(program, {{x}});
}

TEST(Blocks, SayWhatNobodyCanVoteBy) {
  const auto status = [](const std::string& from, const std::string& to) {
    return verify(parse_tiles(changed(kVote, from, to)).value());
  };
  EXPECT_THAT(status("own @seen", "block @seen"), refuses(ErrorCode::bad_input, "votes by @seen"));
  EXPECT_THAT(status("@seen[1]\n    for", "@seen[2]\n    for"),
              refuses(ErrorCode::bad_input, "may lie outside"));
  EXPECT_THAT(status("      %x = load", "      vote some = @seen[1]\n      %x = load"),
              refuses(ErrorCode::bad_input, "not between the threads loops"));
  const Tensor x = Tensor::from_reals(Type::get(DType::f32, {4, 64}), std::vector<double>(256, 1));
  EXPECT_THAT(
      interpret(parse_tiles(changed(kVote, "      store @seen[1] = %seen\n", "")).value(), {{x}}),
      refuses(ErrorCode::bad_input, "votes by @seen before it is written"));
}

}  // namespace
}  // namespace hone::HONE_FILE
