#include <gtest/gtest.h>

#include "base/rng.h"
#include "codegen/kernels.h"
#include "ir/reference/evaluate.h"
#include "oracle/compare.h"
#include "plan/random_plan.h"
#include "program/lower/lower.h"
#include "rewrite/prepare.h"
#include "runtime/executable.h"
#include "zoo/random/random_graph.h"

// One compilation of a graph with symbols serves all sizes.

namespace hone::HONE_FILE {
namespace {

Bindings random_sizes(const Graph& graph, Rng& rng) {
  Bindings sizes;
  for (Symbol symbol : graph.symbols()) {
    const int64_t step = symbol.multiple_of();
    const int64_t low = (symbol.min() + step - 1) / step, high = symbol.max() / step;
    sizes.emplace(symbol.name(), step * rng.between(low, std::min(high, low + 2)));
  }
  return sizes;
}

void check_size(const Graph& graph, const Program& program, std::span<const KernelCode> code,
                Rng& rng) {
  const Bindings sizes = random_sizes(graph, rng);
  const Graph sized = specialize(graph, sizes).value();
  const std::vector<Tensor> inputs = random_graph_inputs(sized, rng.next());
  const std::vector<Tensor> expected =
      evaluate(sized, inputs, {.numerics = Numerics::rounded}).value();
  Result<Image> image = instantiate(program, sizes, code);
  ASSERT_TRUE(image.ok()) << image.error().to_string();
  Result<std::shared_ptr<const Executable>> executable = Executable::load(*image);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  Result<std::vector<Tensor>> actual = (*executable)->run(inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  for (size_t i = 0; i < expected.size(); ++i) {
    Result<Comparison> comparison =
        compare((*actual)[i], expected[i], default_tolerance(expected[i].dtype()));
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    ASSERT_TRUE(comparison->passed()) << "output " << i << ": " << comparison->to_string();
  }
}

void check_random(uint64_t first, uint64_t count) {
  const Target target = host_target().value();
  uint64_t lowered = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Graph graph = prepare(random_graph({.seed = seed,
                                              .max_steps = 10,
                                              .max_elements = 64,
                                              .symbolic = true,
                                              .continuous = true}))
                            .value();
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, print(graph)));
    Result<Program> program = lower(graph, random_plan(graph, target, seed), target);
    if (!program.ok()) {
      EXPECT_EQ(program.error().code(), ErrorCode::unsupported) << program.error().to_string();
      continue;
    }
    ++lowered;
    SCOPED_TRACE(print(*program).substr(0, 20'000));
    Result<std::vector<KernelCode>> code =
        compile_kernels(program->kernels, target, default_pool(), {});
    ASSERT_TRUE(code.ok()) << code.error().to_string();
    Rng rng(seed);
    for (int size = 0; size < 3; ++size) check_size(graph, *program, *code, rng);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(lowered, count / 2);
}

TEST(NativeSymbolic, OneCompilationServesAllSizes) { check_random(0, 6); }

TEST(NativeSymbolic, DISABLED_Sweep) { check_random(0, 1'000); }

}  // namespace
}  // namespace hone::HONE_FILE
