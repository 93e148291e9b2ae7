#include <gtest/gtest.h>

#include "compile/compilation.h"
#include "ir/reference/evaluate.h"
#include "plan/random_plan.h"
#include "report/compare.h"
#include "zoo/random/random_graph.h"

// Random graphs under random plans, as native code, against the reference.

namespace hone {
namespace {

std::vector<Target> host_targets() {
  const Target host = host_target().value();
  std::vector<Target> targets;
  for (Isa isa : kIsas)
    if (isa <= host.isa) targets.push_back(restricted(host, isa));
  return targets;
}

void check(const Graph& graph, uint64_t seed, const Target& target, bool has_random_plan) {
  const std::vector<Tensor> inputs = random_graph_inputs(graph, seed);
  const std::vector<Tensor> expected =
      evaluate(graph, inputs, {.numerics = Numerics::rounded}).value();
  Compilation preparing(graph, target);
  const Graph prepared = *preparing.graph().value();
  CompileOptions options;
  if (has_random_plan) options.plan = random_plan(prepared, target, seed);
  Compilation compilation(graph, target, options);
  Result<std::shared_ptr<const Executable>> executable = compilation.executable();
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  Result<std::vector<Tensor>> actual = (*executable)->run(inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  for (size_t i = 0; i < expected.size(); ++i) {
    Result<Comparison> comparison =
        compare((*actual)[i], expected[i], default_tolerance(expected[i].dtype()));
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    ASSERT_TRUE(comparison->passed()) << "output " << i << ": " << comparison->to_string() << "\n"
                                      << print(graph) << print(*compilation.plan().value());
  }
}

void check_random(uint64_t first, uint64_t count) {
  const std::vector<Target> targets = host_targets();
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph =
        random_graph({.seed = seed, .max_steps = 10, .max_elements = 256, .continuous = true});
    check(graph, seed, targets[seed % targets.size()], seed % 4 != 0);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(NativeRandom, GraphsUnderRandomPlansComputeWhatTheReferenceDoes) { check_random(0, 30); }

TEST(NativeRandom, DISABLED_SweepGraphsAndPlans) { check_random(1'000'000, 2'000); }

}  // namespace
}  // namespace hone
