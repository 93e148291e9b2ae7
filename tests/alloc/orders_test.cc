#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "alloc/generate.h"
#include "alloc/plan_memory.h"
#include "base/rng.h"

// The order of a problem's rows is chance. It changes neither what is found nor how long that
// takes.

namespace hone::HONE_FILE {
namespace {

MemoryProblem in_another_order(const MemoryProblem& problem, uint64_t seed) {
  std::vector<uint32_t> order(problem.buffers.size()), place(order.size());
  std::iota(order.begin(), order.end(), 0U);
  Rng rng(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  MemoryProblem result = {.buffers = {}, .capacity = problem.capacity};
  for (uint32_t i : order) {
    result.buffers.push_back(problem.buffers[i]);
    if (auto& alias = result.buffers.back().alias) alias->of = place[alias->of];
  }
  return result;
}

// Buffers that are alike may change places with each other.
using Row = std::tuple<uint32_t, int64_t, int64_t, int64_t, int64_t, int64_t>;
std::vector<Row> rows(const MemoryProblem& problem, const MemoryPlan& plan) {
  std::vector<Row> rows;
  for (size_t i = 0; i < plan.offsets.size(); ++i) {
    const MemoryBuffer& b = problem.buffers[i];
    rows.emplace_back(b.space, b.begin, b.end, b.size, b.alignment, plan.offsets[i]);
  }
  std::ranges::sort(rows);
  return rows;
}

void expect_no_order_matters(const MemoryProblem& problem, const MemoryOptions& options) {
  const MemoryPlan plan = plan_memory(problem, options).value();
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const MemoryProblem other = in_another_order(problem, seed);
    const MemoryPlan same = plan_memory(other, options).value();
    EXPECT_EQ(same.verdict, plan.verdict);
    EXPECT_EQ(same.counts.nodes, plan.counts.nodes);
    EXPECT_EQ(same.counts.restarts, plan.counts.restarts);
    EXPECT_EQ(rows(other, same), rows(problem, plan));
  }
}

MemoryTechniques searched() {
  MemoryTechniques techniques;
  techniques.greedy = techniques.improve = false;
  return techniques;
}

TEST(MemoryOrders, OfRowsChangeNothingThatIsFound) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const MemoryProblem problem = guillotine({.buffers = 120}, rng);
    expect_no_order_matters(problem, {.nodes = 20'000});
    expect_no_order_matters(problem, {.nodes = 20'000, .techniques = searched()});
    expect_no_order_matters(problem, {.minimize = true, .nodes = 20'000});
  }
}

// Aliases, alignments, gaps and spaces; also where steps end before an answer.
TEST(MemoryOrders, OfRowsChangeNothingForBuffersOfAllKinds) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    MemoryProblem problem = guillotine({.buffers = 60}, rng);
    for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
      MemoryBuffer& buffer = problem.buffers[i];
      buffer.space = static_cast<uint32_t>(rng.below(2));
      if (rng.chance(0.2)) buffer.alignment = 4;
      if (rng.chance(0.2) && buffer.end - buffer.begin > 2)
        buffer.gaps = {{.begin = buffer.begin + 1, .end = buffer.end - 1}};
      if (i == 0 || !rng.chance(0.1)) continue;
      const auto of = static_cast<uint32_t>(rng.below(i));
      buffer.alias = {of, 0};
      buffer.space = problem.buffers[of].space;
    }
    problem.capacity.clear();
    expect_no_order_matters(problem, {.minimize = true, .nodes = 5'000});
  }
}

// One order of this problem takes more than twice the steps of several that are each given up soon.
TEST(MemoryOrders, OthersAreTriedWhereOneTakesLong) {
  Rng rng(256);
  MemoryProblem problem = guillotine({.buffers = rng.between(60, 130)}, rng);
  const double missing = rng.uniform(0, 0.15);
  std::erase_if(problem.buffers, [&](const MemoryBuffer&) { return rng.chance(missing); });
  MemoryTechniques one_order = searched();
  one_order.orders = false;
  const MemoryPlan one = plan_memory(problem, {.nodes = 100'000, .techniques = one_order}).value();
  const MemoryPlan several =
      plan_memory(problem, {.nodes = 100'000, .techniques = searched()}).value();
  EXPECT_EQ(several.verdict, MemoryVerdict::placed);
  EXPECT_GT(several.counts.restarts, 0);
  EXPECT_LT(2 * several.counts.nodes, one.counts.nodes);
}

}  // namespace
}  // namespace hone::HONE_FILE
