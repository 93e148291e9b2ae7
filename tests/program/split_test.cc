#include <gtest/gtest.h>

#include <limits>

#include "ir/text.h"
#include "tests/program/split_testing.h"

namespace hone {
namespace {

TEST(SplitProducts, RandomContractionsComputeWhatTheReferenceDoes) {
  int checked = 0, blocked = 0, divided = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool is_deep = rng.chance(0.2);
    const Graph graph = is_deep
                            ? product_of(rng.between(1, 40), rng.between(1, 70), rng.between(1, 40))
                            : RandomGemm(rng).graph();
    KernelBody body = body_of_all(graph);
    for (size_t i = 0; i < body.inputs.size(); ++i)
      body.inputs[i] = random_layout(body.graph.type(body.graph.inputs()[i]), rng);
    body.outputs[0] = random_layout(body.graph.type(body.graph.outputs()[0]), rng);
    const std::optional<Schedule> schedule = random_split(body, matrix_target(), rng);
    if (!schedule) continue;
    SCOPED_TRACE(print(body.graph));
    check_kernel(body, *schedule, random_inputs(body.graph, rng), 16);
    if (testing::Test::HasFailure()) return;
    ++checked;
    blocked += schedule->get<GemmFields>().block.empty() ? 0 : 1;
    divided += schedule->threads > 0 ? 1 : 0;
  }
  EXPECT_GT(checked, 40);
  EXPECT_GT(blocked, 20);
  EXPECT_GT(divided, 20);
}

TEST(SplitProducts, InfinitiesAndNansAreThoseOfPlainProducts) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> numbers = {0, 1, -1.5, inf, -inf, nan, 3e38, -3e38, 1.0000001, 1e-20};
  const auto count = static_cast<int64_t>(numbers.size());
  const Graph graph = product_of(count, 1, count);
  const KernelBody body = body_of_all(graph);
  Rng rng(1);
  std::optional<Schedule> schedule;
  while (!schedule) schedule = random_split(body, matrix_target(), rng);
  check_kernel(body, *schedule,
               {Tensor::from_reals(Type::get(DType::f32, {count, 1}), numbers),
                Tensor::from_reals(Type::get(DType::f32, {1, count}), numbers)});
}

TEST(SplitProducts, RefuseMachinesWithoutTheUnit) {
  const KernelBody body = body_of_all(product_of(40, 40, 40));
  Rng rng(1);
  std::optional<Schedule> schedule;
  while (!schedule) schedule = random_split(body, matrix_target(), rng);
  const Status status = check_schedule(body, *schedule, Target{});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().to_string().find("amx_bf16"), std::string::npos);
}

}  // namespace
}  // namespace hone
