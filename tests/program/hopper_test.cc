#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "program/tiles/bounds.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "tests/base/says_testing.h"
#include "tests/program/block_programs.h"
#include "tests/program/block_testing.h"

// Copies of boxes, mbarriers, and products of warpgroups: statement by statement.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

// The product of 64 rows of @x and all of @w, both along 200 numbers: a tile of 64 columns by each
// block, in steps of 64 numbers. The last step has 8, the last tile 8 columns: the others are
// zeros.
const std::string kByBoxes =
    R"(tiles @k(@x: bf16[64, 200], @w: bf16[72, 200]) -> (@y: f32[64, 72]) {
  block swizzled @a: bf16[2, 64, 64]
  block swizzled @b: bf16[2, 64, 64]
  block @full: u64[2]
  own @s: f32[8, 4]
  blocks i in 2 {
    threads t in 128 {
      %0 = number 0: f32
      unroll j in 8 {
        unroll n in 4 {
          store @s[j, n] = %0
        }
      }
    }
    threads t in 1 {
      init 1 @full[0]
      init 1 @full[1]
    }
    barrier
    threads t in 1 {
      expect 16384 @full[0]
      fetch 64 @a[0, 0] = @x[0, 0] along 0 for @full[0]
      fetch 64 @b[0, 0] = @w[64*i, 0] along 0 for @full[0]
    }
    for k in 4 {
      await @full[mod(k, 2)] phase mod(floordiv(k, 2), 2)
      barrier
      threads t in 1 {
        for once in 1 from 0 to -k + 3 {
          expect 16384 @full[mod(k + 1, 2)]
          fetch 64 @a[mod(k + 1, 2), 0] = @x[0, 64*k + 64] along 0 for @full[mod(k + 1, 2)]
          fetch 64 @b[mod(k + 1, 2), 0] = @w[64*i, 64*k + 64] along 0 for @full[mod(k + 1, 2)]
        }
      }
      multiply 64 @s[], @a[mod(k, 2), 0], @b[mod(k, 2), 0] as bf16
    }
    threads t in 128 {
      unroll j in 8 {
        unroll h in 2 {
          unroll e in 2 {
            %1 = load @s[j, 2*h + e]
            store @y[16*floordiv(t, 32) + 8*h + floordiv(mod(t, 32), 4),
                64*i + 8*j + 2*mod(t, 4) + e] = %1
                if 0 <= 64*i + 8*j + 2*mod(t, 4) + e < 72
          }
        }
      }
    }
  }
}
)";

// The same, but threads store the second operand, a step before it is multiplied.
std::string by_stores() {
  const auto stores = [](std::string_view stage, std::string_view step, int n) {
    return fmt::format(
        "threads t in 128 {{ %z{2} = number 0.0: bf16 for u in 32 {{ "
        "%w{2} = load @w[64*i + 2*u + floordiv(t, 64), 64*{1} + mod(t, 64)] if "
        "0 <= 64*i + 2*u + floordiv(t, 64) < 72 and 0 <= 64*{1} + mod(t, 64) < 200 else %z{2} "
        "store @b[{0}, 2*u + floordiv(t, 64), mod(t, 64)] = %w{2} }} }}\n",
        stage, step, n);
  };
  std::string text = kByBoxes;
  text = changed(text, "fetch 64 @b[0, 0] = @w[64*i, 0] along 0 for @full[0]\n    }",
                 "}\n" + stores("0", "0", 1));
  const size_t fetch = text.find("fetch 64 @b[");
  const size_t end = text.find("multiply", fetch);
  std::string next = stores("mod(k + 1, 2)", "(k + 1)", 2);
  text.replace(fetch, end - fetch, "} }\n" + next);
  for (int n = 0; n < 2; ++n) text = changed(text, "expect 16384", "expect 8192", 0);
  return changed(text, "      barrier\n", "      fence\n      barrier\n");
}

// The same of a second operand that lies across: its rows are numbers of the reduction.
std::string across() {
  std::string text = changed(kByBoxes, "@w: bf16[72, 200]", "@w: bf16[200, 72]");
  text = changed(text, "@w[64*i, 0]", "@w[0, 64*i]");
  text = changed(text, "@w[64*i, 64*k + 64]", "@w[64*k + 64, 64*i]");
  return changed(text, "@b[mod(k, 2), 0] as", "across @b[mod(k, 2), 0] as");
}

std::vector<Tensor> numbers(const TileProgram& program) {
  Rng rng(1);
  std::vector<Tensor> inputs;
  for (const TileBuffer& buffer : program.buffers)
    if (buffer.role == BufferRole::input)
      inputs.push_back(with_specials(
          buffer.type, {}, rng, [&] { return rng.uniform(-3, 3); },
          [&] { return rng.between(-9, 9); }));
  return inputs;
}

std::vector<Tensor> product(std::span<const Tensor> inputs) {
  const int across = inputs[1].type().dim(0).is(200) ? 0 : 1;
  const std::string graph = fmt::format(
      "graph @g(%x: bf16[64, 200], %w: {}) {{ %a = cast %x {{dtype = f32}} "
      "%b = cast %w {{dtype = f32}} %y = dot %a, %b {{lhs_contract = [1], rhs_contract = [{}]}} "
      "return %y }}",
      inputs[1].type().to_string(), across);
  return evaluate(parse_graph(graph).value(), inputs, {.numerics = Numerics::rounded}).value();
}

TEST(Hopper, WarpgroupsMultiplyWhatComesAsBoxes) {
  for (const std::string& text : {kByBoxes, by_stores(), across()}) {
    const TileProgram program = parse_tiles(text).value();
    const Status status = verify(program);
    ASSERT_TRUE(status.ok()) << status.error().to_string();
    EXPECT_EQ(print(parse_tiles(print(program)).value()), print(program));
    const std::vector<Tensor> inputs = numbers(program);
    check_program(program, inputs, product(inputs), 16);
    expect_same_in_any_order(program, inputs);
  }
}

TEST(Hopper, TheCallerKnowsWhatABlockNeeds) {
  const TileProgram program = parse_tiles(changed(kByBoxes, "block swizzled @a: bf16[2, 64, 64]\n",
                                                  "block @c: f32[3] block swizzled @a: bf16[2, 64, "
                                                  "64]\n"))
                                  .value();
  EXPECT_EQ(block_threads(program.phases[0], program), 128);
  const ChipLayout layout = chip_layout(program);
  EXPECT_EQ(layout.offsets,
            (std::vector<int64_t>{0, 0, 0, 0, 1024, 1024 + 16384, 1024 + 32768, 0}));
  EXPECT_EQ(layout.bytes, 1024 + 32768 + 16);
}

// ---- Swizzled memory ----------------------------------------------------------------------------

// The index says the place that memory has. Each piece of eight rows has places in all banks.
TEST(Hopper, PiecesOfRowsChangePlaces) {
  for (DType dtype : {DType::bf16, DType::f32, DType::u8}) {
    const int64_t row_size = swizzled_row(dtype), piece = swizzled_piece(dtype);
    std::vector<bool> is_taken(static_cast<size_t>(24 * row_size));
    for (int64_t row = 0; row < 24; ++row)
      for (int64_t column = 0; column < row_size; ++column) {
        const int64_t place = swizzled_place(dtype, row * row_size + column);
        EXPECT_EQ(place, row * row_size + ((column / piece) ^ (row % 8)) * piece + column % piece);
        EXPECT_FALSE(is_taken[static_cast<size_t>(place)]);
        is_taken[static_cast<size_t>(place)] = true;
        const std::vector<int64_t> at = {row / 8, row % 8, column};
        std::vector<IndexExpr> index =
            swizzled_index(dtype, {IndexExpr::iter(0), IndexExpr::iter(1), IndexExpr::iter(2)});
        EXPECT_EQ((index[0].at(at) * 8 + index[1].at(at)) * row_size + index[2].at(at), place);
      }
  }
}

// Turns pieces a second time, and so back, in all stores to the buffer, or in all loads of it.
int turn_back(tile::Block& body, tile::BufferId buffer, DType dtype, bool in_stores) {
  int places = 0;
  const auto turn = [&](std::vector<IndexExpr>& index) {
    index = swizzled_index(dtype, std::move(index));
    ++places;
  };
  for (tile::Statement& statement : body) {
    if (auto* loop = std::get_if<tile::Loop>(&statement.kind))
      places += turn_back(loop->body, buffer, dtype, in_stores);
    auto* store = std::get_if<tile::Store>(&statement.kind);
    if (store != nullptr && in_stores && store->buffer == buffer) turn(store->index);
    auto* load = std::get_if<tile::Load>(&statement.kind);
    if (load != nullptr && !in_stores && load->buffer == buffer) turn(load->index);
  }
  return places;
}

// Threads, boxes and products mean the same places, in both oracles.
TEST(Hopper, ASwizzleOfOneSideAloneIsFound) {
  const TileProgram program = parse_tiles(by_stores()).value();
  const std::vector<Tensor> inputs = numbers(program);
  const auto is_right = [&](const TileProgram& changed) {
    EXPECT_TRUE(verify(changed).ok()) << verify(changed).error().to_string() << print(changed);
    const Result<std::vector<Tensor>> actual = interpret(changed, inputs);
    return actual.ok() &&
           compare((*actual)[0], product(inputs)[0], default_tolerance(DType::f32))->passed();
  };
  for (const TileProgram& right : {program, serial_form(program)}) {
    EXPECT_TRUE(is_right(right));
    const bool is_serial = right.phases[0].exec != Exec::blocks;
    for (tile::BufferId buffer : {3, 4})
      for (bool in_stores : {false, true}) {
        TileProgram wrong = right;
        const int places = turn_back(wrong.phases[0].body, buffer, DType::bf16, in_stores);
        // Boxes and products are statements of their own.
        EXPECT_EQ(places > 0, is_serial || (buffer == 4 && in_stores)) << buffer << in_stores;
        if (places > 0) EXPECT_FALSE(is_right(wrong)) << buffer << in_stores;
      }
  }
}

// ---- Planted faults -----------------------------------------------------------------------------

// True if the interpreter or the results tell, whether boxes come at once or late.
bool is_found(const std::string& text, std::string_view what = "") {
  const TileProgram program = parse_tiles(text).value();
  const Status status = verify(program);
  EXPECT_TRUE(status.ok()) << status.error().to_string() << text;
  const std::vector<Tensor> inputs = numbers(program);
  return std::ranges::all_of(std::array{false, true}, [&](bool late) {
    const Result<std::vector<Tensor>> result =
        interpret(program, inputs, {.seed = 3, .lands_late = late});
    if (!result.ok() && !what.empty())
      EXPECT_THAT(result, refuses(ErrorCode::bad_input, std::string(what))) << text;
    return !result.ok() ||
           !compare((*result)[0], product(inputs)[0], default_tolerance(DType::f32))->passed();
  });
}

TEST(Hopper, EachPlantedFaultIsFound) {
  struct Fault {
    std::string from, to, what;
    int places = 1;
  };
  const std::string await = "await @full[mod(k, 2)] phase mod(floordiv(k, 2), 2)\n",
                    of_next = "@full[mod(k + 1, 2)]";
  for (const Fault& fault : {
           Fault{"barrier\n", "\n", "", 2},
           Fault{await, "\n", "element ... waited"},
           Fault{await, "await @full[mod(k, 2)] phase mod(floordiv(k, 2) + 1, 2)\n", ""},
           Fault{await, "await @full[mod(k, 2)] phase 0\n", ""},
           Fault{await, "await @full[mod(k + 1, 2)] phase mod(floordiv(k, 2), 2)\n", ""},
           Fault{"expect 16384", "expect 16385", "never ends", 2},
           Fault{"expect 16384", "expect 8192", "", 2},
           Fault{"expect 16384 @full[0]", "", "never ends"},
           Fault{"init 1", "init 2", "never ends ... 1 arrivals", 2},
           Fault{"init 1 @full[1]", "", "before its beginning"},
           Fault{"init 1 @full[1]", "init 1 @full[0]", "begins twice"},
           Fault{"@a[mod(k + 1, 2), 0]", "@a[mod(k, 2), 0]", "element ... @a"},
           Fault{"from 0 to -k + 3", "from 0 to -k + 4", "ends before element"},
           Fault{"from 0 to -k + 3", "from 0 to -k + 2", "never ends"},
           Fault{"fetch 64 @b", "fetch 56 @b", "never ends", 2},
           Fault{"@w[64*i,", "@w[64*i + 1,", "", 2},
           Fault{"64*k + 64]", "64*k + 65]", "", 2},
           Fault{"@a[mod(k, 2), 0], @b", "@a[mod(k + 1, 2), 0], @b", "element ... @a"},
           Fault{"multiply 64",
                 "multiply 64 @s[], @a[mod(k, 2), 0], @b[mod(k, 2), 0] as bf16 "
                 "multiply 64",
                 ""},
       })
    for (int n = 0; n < fault.places; ++n) {
      const std::string text = changed(kByBoxes, fault.from, fault.to, n);
      ASSERT_FALSE(text.empty()) << fault.from << " " << n;
      EXPECT_TRUE(is_found(text, fault.what)) << fault.from << " -> " << fault.to << " " << n;
    }
}

TEST(Hopper, AnOperandThatLiesTheOtherWayIsFound) {
  EXPECT_TRUE(is_found(changed(kByBoxes, "@b[mod(k, 2), 0] as", "across @b[mod(k, 2), 0] as")));
  EXPECT_TRUE(is_found(changed(kByBoxes, ", @a[mod(k, 2)", ", across @a[mod(k, 2)")));
  EXPECT_TRUE(is_found(changed(across(), "across ", "")));
}

TEST(Hopper, StoresThatAreNotFencedAreFound) {
  const std::string text = by_stores();
  EXPECT_FALSE(is_found(text));
  EXPECT_TRUE(is_found(changed(text, "fence\n", "\n"), "@b ... no fence"));
  // Before what is stored.
  EXPECT_TRUE(
      is_found(changed(changed(text, "fence\n", "\n"), "    for k in 4", "fence for k in 4"),
               "@b ... no fence"));
  EXPECT_TRUE(is_found(changed(text, "fence\n      barrier\n", "fence\n"), "element ... @"));
  // A box that lies where threads stored.
  EXPECT_TRUE(
      is_found(changed(kByBoxes, "    barrier\n",
                       "threads t in 1 { %n = number 1.0: bf16 store @a[1, 3, 5] = %n } barrier\n"),
               "@a ... no fence"));
  EXPECT_FALSE(is_found(
      changed(kByBoxes, "    barrier\n",
              "threads t in 1 { %n = number 1.0: bf16 store @a[1, 3, 5] = %n } fence barrier\n")));
}

// ---- What the verifier refuses ------------------------------------------------------------------

TEST(Hopper, WhatCannotBeIsRefused) {
  const auto status = [](const std::string& from, const std::string& to) {
    const std::string text = changed(kByBoxes, from, to);
    EXPECT_FALSE(text.empty()) << from;
    return verify(parse_tiles(text).value());
  };
  const auto refused = [&](const std::string& from, const std::string& to, std::string_view what) {
    EXPECT_THAT(status(from, to), refuses(ErrorCode::bad_input, std::string(what))) << to;
  };
  // Swizzled memory.
  refused("block swizzled @a: bf16[2, 64, 64]", "block swizzled @a: bf16[2, 64, 32]",
          "@a ... rows of 128 bytes");
  refused("block swizzled @a: bf16[2, 64, 64]", "block swizzled @a: bf16[2, 68, 64]", "@a");
  refused("block swizzled @a:", "block @a:", "@a, which is not swizzled");
  // Mbarriers.
  refused("block @full: u64[2]", "block @full: i64[2]", "@full ... u64");
  refused("init 1 @full[1]", "%n = load @full[1]", "mbarriers, but numbers");
  refused("threads t in 1 {\n      init", "threads t in 2 {\n      init", "one thread");
  refused("phase mod(floordiv(k, 2), 2)", "phase floordiv(k, 2) + 1", "parity");
  refused("await @full[mod(k, 2)]", "await @full[k]", "@full may lie outside");
  // Boxes.
  refused("@x: bf16[64, 200]", "@x: bf16[64, 201]", "@x ... multiples of 16 bytes");
  refused("@x: bf16[64, 200]", "@x: f16[64, 200]", "@x ... @a");
  refused("@x[0, 0] along 0", "@x[0, 0] along 1", "dim 1 of @x");
  refused("= @x[0, 0] along 0", "= @a[0, 0, 0] along 0", "@a, which is not only an input");
  refused("fetch 64 @b[0, 0]", "fetch 60 @b[0, 0]", "60 rows of @b");
  refused("fetch 64 @b[0, 0]", "fetch 64 @b[0, 4]", "@b, or begins at one");
  refused("fetch 64 @b[0, 0]", "fetch 72 @b[0, 0]", "@b may lie outside");
  // Products.
  refused("as bf16", "as f64", "not f64");
  refused("as bf16", "as f32", "product of f32 has rows of @a");
  refused("@a[mod(k, 2), 0], @b[mod(k, 2), 0] as bf16",
          "@a[mod(k, 2), 0], across @b[mod(k, 2), 0] as f32", "f32 along rows alone");
  refused("as bf16", "as f16", "product of f16 has rows of @a");
  refused("multiply 64", "multiply 56", "@s ... 56 columns");
  refused("multiply 64 @s[], @a[mod(k, 2), 0], @b", "multiply 56 @s[], @a[mod(k, 2), 0], across @b",
          "56 columns lie across");
  refused("own @s: f32[8, 4]", "own @s: f32[8, 5]", "@s");
  EXPECT_THAT(verify(parse_tiles("tiles @k() -> (@y: f32[32]) { block swizzled @a: bf16[64, 64] "
                                 "own @s: f32[8, 4] blocks i in 1 { threads t in 32 { "
                                 "%n = number 1: f32 store @y[t] = %n } "
                                 "multiply 64 @s[], @a[0], @a[0] as bf16 } }")
                         .value()),
              refuses(ErrorCode::bad_input, "32 threads ... warpgroups"));
  EXPECT_THAT(status("threads t in 1 {\n      init", "barrier threads t in 1 { fence init"),
              refuses(ErrorCode::bad_input, "barrier"));
}

}  // namespace
}  // namespace hone::HONE_FILE
