#include <gtest/gtest.h>

#include <chrono>

#include "compile/native_engine.h"
#include "report/accuracy.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

// Compiles the graph and compares all outputs with the reference.
void check(const Graph& graph, std::span<const Tensor> inputs, const Target& target,
           std::optional<uint64_t> plan_seed = {}) {
  NativeEngine engine(target, {.plan_seed = plan_seed});
  const auto shared = std::make_shared<Graph>(graph);
  Result<std::vector<Tensor>> actual = engine.run(shared, inputs);
  ASSERT_TRUE(actual.ok()) << actual.error().to_string();
  auto reference = [&](Numerics numerics) {
    return evaluate(graph, inputs, {.numerics = numerics, .real_outputs_as_f64 = true}).value();
  };
  const std::vector<Tensor> wide = reference(Numerics::wide), fp32 = reference(Numerics::fp32);
  for (size_t i = 0; i < wide.size(); ++i) {
    Result<Accuracy> result = accuracy((*actual)[i], wide[i], fp32[i]);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    EXPECT_TRUE(result->passed()) << "output " << i << ": " << result->to_string();
  }
}

class NativeZoo : public testing::TestWithParam<std::string> {};

TEST_P(NativeZoo, IsAsAccurateAsFp32) {
  const Graph graph = build_zoo_model(GetParam(), {.size = ZooSize::tiny}).value();
  check(graph, random_inputs(graph, 1).value(), host_target().value());
}

// Other seeds every day.
uint64_t seed_of_today() {
  const auto today = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::days>(today).count());
}

TEST_P(NativeZoo, ComputesTheSameUnderRandomPlans) {
  const Graph graph = build_zoo_model(GetParam(), {.size = ZooSize::tiny}).value();
  const Target host = host_target().value();
  const Target target = restricted(host, std::min(host.isa, Isa::avx2));
  for (uint64_t seed : {2 * seed_of_today(), 2 * seed_of_today() + 1}) {
    SCOPED_TRACE(seed);
    check(graph, random_inputs(graph, 1).value(), target, seed);
  }
}

TEST(Native, RunsGiveTheSameBits) {
  const Graph graph = build_zoo_model("squeezenet", {.size = ZooSize::tiny}).value();
  const std::vector<Tensor> inputs = random_inputs(graph, 1).value();
  Compilation compilation(graph, host_target().value());
  const std::shared_ptr<const Executable> executable = compilation.executable().value();
  const std::vector<Tensor> first = executable->run(inputs).value();
  for (int run = 0; run < 20; ++run) {
    const std::vector<Tensor> again = executable->run(inputs).value();
    for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(again[i].same_bytes(first[i]));
  }
}

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, NativeZoo, testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone
