#include <gtest/gtest.h>

#include "compile/native_engine.h"
#include "report/accuracy.h"
#include "zoo/inputs.h"
#include "zoo/random/random_graph.h"
#include "zoo/zoo.h"

namespace hone {
namespace {

// Compiles the graph and compares all outputs with the reference.
void check(const Graph& graph, std::span<const Tensor> inputs, const Target& target) {
  NativeEngine engine(target);
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

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, NativeZoo, testing::ValuesIn(zoo_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace hone
