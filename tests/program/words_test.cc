#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/words.h"
#include "tests/base/says_testing.h"
#include "tests/base/share_testing.h"
#include "tests/program/words_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

Target small_target() {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  target.extensions = {Extension::avx512_bf16};
  return target;
}

void check_random_contractions(Products products, uint64_t count) {
  uint64_t checked = 0, in_memory = 0, windows = 0, panels = 0, blocked = 0;
  for (uint64_t seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::optional<WordsCase> drawn = random_words(products, small_target(), rng);
    if (!drawn) continue;
    SCOPED_TRACE(print(drawn->body.graph));
    check_kernel(drawn->body, drawn->schedule, drawn->inputs);
    if (testing::Test::HasFailure()) return;
    ++checked;
    const GemmFields& own = drawn->schedule.get<GemmFields>();
    for (Packing packing : {own.pack_lhs, own.pack_rhs}) {
      in_memory += packing == Packing::no ? 1 : 0;
      windows += packing == Packing::window ? 1 : 0;
      panels += packing == Packing::panels ? 1 : 0;
    }
    for (const Tile& block : own.block)
      blocked += block.dim >= space_of(drawn->body).parallel ? 1 : 0;
  }
  EXPECT_GT(checked, count / 2);
  EXPECT_GT(in_memory, count / 6);
  EXPECT_GT(windows, count / 6);
  EXPECT_GT(panels, count / 4);
  EXPECT_GT(blocked, count / 16);
}

TEST(Quads, RandomContractionsComputeWhatTheReferenceDoes) {
  check_random_contractions(Products::quads, tested::share_of(160, 2));
}

TEST(Pairs, RandomContractionsComputeWhatTheReferenceDoes) {
  check_random_contractions(Products::pairs, tested::share_of(80, 2));
}

// The largest products of bytes, which instructions with 16-bit sums would cut.
TEST(Quads, DoNotSaturate) {
  Builder b;
  const Type lhs = Type::get(DType::u8, {2, 64}), rhs = Type::get(DType::i8, {64, 16});
  const Value x = b.parameter("x", lhs), w = b.parameter("w", rhs);
  const Graph graph = b.finish({b.op(Opcode::dot, {x, w},
                                     {{"lhs_contract", Ints{1}},
                                      {"rhs_contract", Ints{0}},
                                      {"accumulate", std::string("i32")}})})
                          .value();
  Schedule schedule = plain_nest(2);
  schedule.lanes = {{1, 16}};
  schedule.own = GemmFields{.pack_rhs = Packing::panels, .products = Products::quads};
  for (int64_t number : {-128, 127})
    check_kernel(body_of_all(graph), schedule,
                 {Tensor::from_integers(lhs, std::vector<int64_t>(128, 255)),
                  Tensor::from_integers(rhs, std::vector<int64_t>(1024, number))});
}

std::string why_not(DType x, DType w, std::string_view sum, GemmFields own) {
  Builder b;
  const Graph graph =
      b.finish({b.op(Opcode::dot, {b.parameter("x", x, {4, 8}), b.parameter("w", w, {8, 16})},
                     {{"lhs_contract", Ints{1}},
                      {"rhs_contract", Ints{0}},
                      {"accumulate", std::string(sum)}})})
          .value();
  Schedule schedule = plain_nest(2);
  own.products = Products::quads;
  schedule.own = own;
  const Status status = check_schedule(body_of_all(graph), schedule, small_target());
  return status.ok() ? "" : status.error().to_string();
}

TEST(Quads, RefuseWhatTheyCannotMultiply) {
  const GemmFields panels = {.pack_lhs = Packing::panels, .pack_rhs = Packing::panels};
  EXPECT_EQ(why_not(DType::u8, DType::i8, "i32", panels), "");
  EXPECT_EQ(why_not(DType::i8, DType::u8, "i32", panels), "");
  for (const std::string& error :
       {why_not(DType::u8, DType::u8, "i32", panels), why_not(DType::u8, DType::i8, "i64", panels),
        why_not(DType::i32, DType::i32, "same", panels)})
    EXPECT_THAT(error, says("quads ... operands"));
  // The bytes of a word of w are rows apart.
  const std::string apart = why_not(DType::u8, DType::i8, "i32", {});
  EXPECT_NE(apart.find("side by side"), std::string::npos) << apart;
  GemmFields blocked = panels;
  blocked.block = {{2, 6}};
  EXPECT_NE(why_not(DType::u8, DType::i8, "i32", blocked).find("block of 6"), std::string::npos);
}

Graph product_of_bf16(bool flushes) {
  Builder b;
  const Value x = b.parameter("x", DType::bf16, {4, 8}), w = b.parameter("w", DType::bf16, {8, 16});
  return b
      .finish({b.op(Opcode::dot, {x, w},
                    {{"lhs_contract", Ints{1}},
                     {"rhs_contract", Ints{0}},
                     {"accumulate", std::string("f32")},
                     {"flush", flushes}})})
      .value();
}

Schedule in_pairs() {
  Schedule schedule = plain_nest(2);
  schedule.own = GemmFields{
      .pack_lhs = Packing::panels, .pack_rhs = Packing::panels, .products = Products::pairs};
  return schedule;
}

// A plan alone does not permit it: the graph has to.
TEST(Pairs, NeedAGraphThatPermitsThemAndAMachine) {
  const auto why_not = [](bool flushes, const Target& target) {
    const Status status = check_schedule(body_of_all(product_of_bf16(flushes)), in_pairs(), target);
    return status.ok() ? "" : status.error().to_string();
  };
  EXPECT_EQ(why_not(true, small_target()), "");
  EXPECT_NE(why_not(false, small_target()).find("denormal numbers"), std::string::npos);
  EXPECT_NE(why_not(true, Target()).find("avx512_bf16"), std::string::npos);
}

// The numbers that instructions take for 0, and those that they do not.
TEST(Pairs, TakeDenormalNumbersForZero) {
  const Graph graph = product_of_bf16(true);
  const TileProgram program = build_kernel(body_of_all(graph), in_pairs(), "k").value();
  const auto first = [&](double x, double w) {
    std::vector<double> left(32), right(128);
    left[0] = x;
    right[0] = w;
    const std::vector<Tensor> inputs = {Tensor::from_reals(graph.input_types()[0], left),
                                        Tensor::from_reals(graph.input_types()[1], right)};
    return interpret(program, inputs).value()[0].real_at(0);
  };
  EXPECT_EQ(first(0x1p-126, 0x1p100), 0x1p-26);
  EXPECT_EQ(first(0x1p-127, 0x1p100), 0);
  EXPECT_EQ(first(0x1p-70, 0x1p-70), 0);
  EXPECT_EQ(first(INFINITY, -2), -INFINITY);
}

}  // namespace
}  // namespace hone::HONE_FILE
