#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/reference/evaluate.h"
#include "tests/base/says_testing.h"
#include "zoo/inputs.h"
#include "zoo/zoo.h"

namespace hone::HONE_FILE {

void PrintTo(const ZooEntry& entry, std::ostream* out) { *out << entry.name; }

namespace {

using tested::says;

// These hold for every model of the zoo, at its tiny size.
class ZooModel : public testing::TestWithParam<ZooEntry> {
 protected:
  static Graph build(ZooOptions options) {
    options.size = ZooSize::tiny;
    Result<Graph> graph = build_zoo_model(GetParam().name, options);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    return graph.ok() ? std::move(*graph) : Graph();
  }
  static std::vector<Tensor> run(const Graph& graph) {
    Result<std::vector<Tensor>> inputs = random_inputs(graph, 1);
    EXPECT_TRUE(inputs.ok()) << (inputs.ok() ? "" : inputs.error().to_string());
    if (!inputs.ok()) return {};
    Result<std::vector<Tensor>> outputs = evaluate(graph, *inputs);
    EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().to_string());
    return outputs.ok() ? std::move(*outputs) : std::vector<Tensor>();
  }
};

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments(const Tensor& tensor) {
  double n = static_cast<double>(tensor.elements()), sum = 0, squares = 0;
  for (int64_t i = 0; i < tensor.elements(); ++i) sum += tensor.real_at(i);
  for (int64_t i = 0; i < tensor.elements(); ++i)
    squares += std::pow(tensor.real_at(i) - sum / n, 2);
  return {sum / n, std::sqrt(squares / n)};
}

// Another head: all but the last layer is the same.
TEST_P(ZooModel, HasAsManyClassesAsAreAskedFor) {
  if (GetParam().tiny.classes == 0) return;
  const Graph graph = build({.classes = 7});
  const Type own = build({}).output_types()[0], type = graph.output_types()[0];
  EXPECT_EQ(type.dim(1).value(), 7);
  EXPECT_EQ(own.dim(1).value(), GetParam().tiny.classes);
  EXPECT_EQ(graph.node_count(), build({}).node_count());
}

TEST_P(ZooModel, GivesFiniteNumbersThatDiffer) {
  Graph graph = build({});
  EXPECT_TRUE(verify(graph).ok());
  std::vector<Tensor> outputs = run(graph);
  ASSERT_FALSE(outputs.empty());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_real(outputs[i].dtype())) continue;
    Moments m = moments(outputs[i]);
    SCOPED_TRACE(graph.label(graph.outputs()[i]));
    EXPECT_TRUE(std::isfinite(m.mean));
    EXPECT_GT(m.deviation, 1e-3);
    EXPECT_LT(m.deviation, GetParam().name == "yolo_v3" ? 1000 : 10);  // yolo's boxes are pixels
  }
}

TEST_P(ZooModel, DependsOnTheSeedAlone) {
  Graph graph = build({.seed = 5});
  EXPECT_EQ(structural_hash(graph), structural_hash(build({.seed = 5})));
  EXPECT_NE(structural_hash(graph), structural_hash(build({.seed = 6})));
  Tensor first = run(graph).at(0);
  EXPECT_TRUE(first.same_bytes(run(build({.seed = 5})).at(0)));
  EXPECT_FALSE(first.same_bytes(run(build({.seed = 6})).at(0)));
}

TEST_P(ZooModel, DependsOnEveryInput) {
  Graph graph = build({});
  std::vector<Tensor> inputs = *random_inputs(graph, 1), others = *random_inputs(graph, 2);
  std::vector<Tensor> outputs = *evaluate(graph, inputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<Tensor> changed = inputs;
    changed[i] = others[i];
    if (changed[i].same_bytes(inputs[i])) continue;  // a scalar or so, by chance
    std::vector<Tensor> results = *evaluate(graph, changed);
    double largest = 0;
    for (size_t o = 0; o < outputs.size(); ++o) {
      for (int64_t j = 0; is_real(outputs[o].dtype()) && j < outputs[o].elements(); ++j)
        largest = std::max(largest, std::abs(results[o].real_at(j) - outputs[o].real_at(j)));
    }
    EXPECT_GT(largest, 1e-3) << graph.label(graph.inputs()[i]);
  }
}

TEST_P(ZooModel, NamesItsInputsAndOutputs) {
  Graph graph = build({});
  for (ValueId v : graph.inputs()) EXPECT_NE(graph.name(v), "");
  for (ValueId v : graph.outputs()) EXPECT_NE(graph.name(v), "");
}

TEST_P(ZooModel, WithASymbolForTheBatchIsTheSameModel) {
  Graph symbolic = build({.symbolic_batch = true});
  EXPECT_FALSE(symbolic.is_static());
  Result<Graph> bound = specialize(symbolic, {{"N", 3}});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  EXPECT_EQ(structural_hash(*bound), structural_hash(build({.batch = 3})));
}

TEST_P(ZooModel, WithASymbolForTheLengthIsTheSameModel) {
  if (GetParam().tiny.length == 0) {
    Result<Graph> graph = build_zoo_model(GetParam().name, {.symbolic_length = true});
    ASSERT_FALSE(graph.ok());
    EXPECT_EQ(graph.error().what(), fmt::format("model '{}' has no length", GetParam().name));
    return;
  }
  Graph symbolic = build({.symbolic_batch = true, .symbolic_length = true});
  Result<Graph> bound = specialize(symbolic, {{"N", 3}, {"T", 5}});
  ASSERT_TRUE(bound.ok()) << bound.error().to_string();
  EXPECT_EQ(structural_hash(*bound), structural_hash(build({.batch = 3, .length = 5})));
}

TEST_P(ZooModel, BuildsInFullSizeWithoutItsWeights) {
  Result<Graph> graph = build_zoo_model(GetParam().name, {});
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  structural_hash(*graph);
  for (NodeId n : graph->nodes())
    if (graph->opcode(n) == Opcode::constant && graph->constant(n).elements() > 10000) {
      EXPECT_FALSE(graph->constant(n).is_materialized()) << graph->describe(n);
    }
}

INSTANTIATE_TEST_SUITE_P(All, ZooModel,
                         testing::ValuesIn(zoo_entries().begin(), zoo_entries().end()),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Errors -------------------------------------------------------------------------------------

std::string error_of(std::string_view name, const ZooOptions& options) {
  Result<Graph> graph = build_zoo_model(name, options);
  return graph.ok() ? "" : graph.error().to_string();
}

TEST(Zoo, RefusesWhatAModelDoesNotHave) {
  EXPECT_EQ(error_of("resnet81", {}),
            "error: there is no model 'resnet81' in the zoo\nhint: did you mean 'resnet18'?");
  EXPECT_EQ(error_of("mlp", {.image = 32}), "error: model 'mlp' has no image size");
  EXPECT_EQ(error_of("bert_base", {.length = 513}), "error: length 513 is outside of 1 to 512");
  EXPECT_EQ(error_of("bert_base", {.batch = 0}), "error: batch 0 is outside of 1 to 1024");
  EXPECT_THAT(error_of("vgg16", {.unroll = true}), says("model 'vgg16' ... recurrent"));
  EXPECT_EQ(error_of("lstm", {.classes = 5}), "error: model 'lstm' has no number of classes");
  EXPECT_EQ(error_of("resnet18", {.classes = 0}),
            "error: number of classes 0 is outside of 1 to 65536");
  EXPECT_THAT(error_of("lstm", {.symbolic_length = true, .unroll = true}), says("symbolic length"));
}

TEST(Zoo, RefusesAnImageThatIsTooSmall) {
  for (std::string_view name : {"alexnet", "inception_v3", "unet"})
    EXPECT_NE(error_of(name, {.image = 7}), "") << name;
  EXPECT_THAT(error_of("vit_b16", {.image = 7}), says("f32[1, 3, 7, 7] ... image"));
}

}  // namespace
}  // namespace hone::HONE_FILE
