#include <gtest/gtest.h>

#include <limits>

#include "ir/text.h"
#include "kernel/matrix.h"
#include "tests/base/share_testing.h"
#include "tests/program/matrix_testing.h"

namespace hone::HONE_FILE {
namespace {

TEST(Matrix, RandomContractionsComputeWhatTheReferenceDoes) {
  uint64_t number = 0;
  for (DType numbers : kMatrixNumbers) {
    if (!tested::in_share(number++, std::size(kMatrixNumbers))) continue;
    int checked = 0, blocked = 0, divided = 0, with_parts_of_rows = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SCOPED_TRACE(seed);
      Rng rng(seed);
      const std::optional<WordsCase> drawn = random_matrix_case(numbers, matrix_target(), rng);
      if (!drawn) continue;
      SCOPED_TRACE(print(drawn->body.graph));
      check_kernel(drawn->body, drawn->schedule, drawn->inputs, matrix_slack(numbers));
      if (testing::Test::HasFailure()) return;
      ++checked;
      const KernelFacts facts(drawn->body);
      const MatrixShape shape =
          matrix_shape(drawn->body, facts.contraction.value(), facts.space, drawn->schedule)
              .value();
      blocked += drawn->schedule.get<GemmFields>().block.empty() ? 0 : 1;
      divided += drawn->schedule.threads > 0 ? 1 : 0;
      with_parts_of_rows += shape.rows % 16 != 0 ? 1 : 0;
    }
    SCOPED_TRACE(name(numbers));
    EXPECT_GT(checked, 20);
    EXPECT_GT(blocked, 8);
    EXPECT_GT(divided, 8);
    EXPECT_GT(with_parts_of_rows, 4);
  }
}

TEST(Matrix, InfinitiesAndNansAreThoseOfPlainProducts) {
  for (const auto& [dtype, parts] : kPartsOfNumbers) {
    SCOPED_TRACE(fmt::format("{} in {}", name(dtype), parts));
    Rng rng(1);
    const WordsCase drawn = product_of_specials(dtype, parts, rng);
    check_kernel(drawn.body, drawn.schedule, drawn.inputs);
  }
}

// The largest products of bytes, which instructions with 16-bit sums would cut.
TEST(Matrix, BytesDoNotSaturate) {
  Builder b;
  const Type lhs = Type::get(DType::u8, {3, 64}), rhs = Type::get(DType::i8, {64, 16});
  const Attrs attrs = {
      {"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}, {"accumulate", std::string("i32")}};
  const KernelBody body = body_of_all(
      b.finish({b.op(Opcode::dot, {b.parameter("x", lhs), b.parameter("w", rhs)}, attrs)}).value());
  Rng rng(1);
  for (int64_t number : {-128, 127}) {
    std::optional<Schedule> schedule;
    while (!schedule) schedule = random_matrix(body, matrix_target(), rng);
    check_kernel(body, *schedule,
                 {Tensor::from_integers(lhs, std::vector<int64_t>(192, 255)),
                  Tensor::from_integers(rhs, std::vector<int64_t>(1024, number))});
  }
}

std::string why_not(const Graph& graph, const Target& target) {
  const KernelBody body = body_of_all(graph);
  Schedule schedule = plain_nest(2);
  schedule.lanes = {{1, 16}};
  schedule.unroll = {{0, 16}};
  schedule.own = GemmFields{
      .pack_lhs = Packing::panels, .pack_rhs = Packing::panels, .products = Products::matrix};
  const Status status = check_schedule(body, schedule, target);
  return status.ok() ? "" : status.error().to_string();
}

// A plan alone does not permit it to take denormal numbers for 0: the graph has to.
TEST(Matrix, NeedsAGraphThatPermitsItAndAMachine) {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(why_not(product_of(dtype, 40, 40, 40), matrix_target()), "");
    EXPECT_NE(why_not(product_of(dtype, 40, 40, 40), Target()).find("amx_bf16"), std::string::npos);
  }
  EXPECT_NE(why_not(product_of(DType::f64, 40, 40, 40), matrix_target()).find("other numbers"),
            std::string::npos);
  Builder b;
  const Value x = b.parameter("x", DType::f32, {40, 40});
  const Attrs contract = {{"lhs_contract", Ints{1}}, {"rhs_contract", Ints{0}}};
  const Graph strict = b.finish({b.op(Opcode::dot, {x, x}, contract)}).value();
  EXPECT_NE(why_not(strict, matrix_target()).find("other numbers"), std::string::npos);
}

}  // namespace
}  // namespace hone::HONE_FILE
