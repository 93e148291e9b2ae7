#include <gtest/gtest.h>

#include "ir/text.h"
#include "kernel/quads.h"
#include "tests/program/quads_testing.h"

namespace hone {
namespace {

Target small_target() {
  Target target;
  target.caches = {{.bytes = 1 << 20}};
  return target;
}

TEST(Quads, RandomContractionsComputeWhatTheReferenceDoes) {
  int checked = 0, in_memory = 0, windows = 0, panels = 0, blocked = 0;
  for (uint64_t seed = 0; seed < 160; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const std::optional<QuadsCase> drawn = random_quads(small_target(), rng);
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
  EXPECT_GT(checked, 80);
  EXPECT_GT(in_memory, 30);
  EXPECT_GT(windows, 30);
  EXPECT_GT(panels, 40);
  EXPECT_GT(blocked, 10);
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
    EXPECT_NE(error.find("quads of other operands"), std::string::npos) << error;
  // The bytes of a word of w are rows apart.
  const std::string apart = why_not(DType::u8, DType::i8, "i32", {});
  EXPECT_NE(apart.find("do not lie side by side"), std::string::npos) << apart;
  GemmFields blocked = panels;
  blocked.block = {{2, 6}};
  EXPECT_NE(why_not(DType::u8, DType::i8, "i32", blocked).find("block of 6"), std::string::npos);
}

}  // namespace
}  // namespace hone
