#include "lab/data/configured_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "lab/models/graph_network.h"
#include "learn/data_set.h"
#include "target/fingerprint.h"
#include "tests/base/says_testing.h"
#include "tests/lab/graph_testing.h"
#include "tests/lab/layout_testing.h"
#include "tests/lab/tpu_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

// 0 <- 1 <- ... <- 6, where 3 is configurable.
ConfiguredGraph chain() {
  ConfiguredGraph graph = {
      .program = "chain",
      .graph = {.nodes = {.names = {"size"}, .values = {}}, .opcodes = {}, .edges = {}},
      .config_nodes = {3},
      .configs = {.names = {"order"}, .values = {0, 1, 0, 2}},
      .times = {100, 200, 121, 300}};
  for (int32_t i = 0; i < 7; ++i) {
    graph.graph.opcodes.push_back(i + 1);
    graph.graph.nodes.values.push_back(static_cast<float>(10 * i));
    if (i > 0) graph.graph.edges.push_back({i, i - 1});
  }
  return graph;
}

TEST(ConfiguredGraph, KeepsConfigurableNodesAndTheirNeighbours) {
  const ConfiguredGraph small = compressed(chain(), 1);
  EXPECT_THAT(small.graph.opcodes, ElementsAre(0, 3, 4, 5, 0));
  EXPECT_THAT(small.graph.nodes.values, ElementsAre(5, 20, 30, 40, 55));
  EXPECT_THAT(small.config_nodes, ElementsAre(2));
  using Edge = std::array<int32_t, 2>;
  EXPECT_THAT(small.graph.edges, ElementsAre(Edge{1, 0}, Edge{2, 1}, Edge{3, 2}, Edge{4, 3}));
  EXPECT_EQ(small.times, chain().times);
  EXPECT_THAT(compressed(chain(), 0).graph.opcodes, ElementsAre(0, 4, 0));
  EXPECT_EQ(compressed(chain(), 9), chain());
  const ConfiguredGraph kernel = random_tiles(3, 1);
  EXPECT_EQ(compressed(kernel, 0), kernel);
}

TEST(ConfiguredGraph, MergesEqualConfigurations) {
  EXPECT_THAT(first_equals(chain()), ElementsAre(0, 1, 0, 3));
  const MergedConfigs once = merged(chain());
  EXPECT_THAT(once.graph.configs.values, ElementsAre(0, 1, 2));
  EXPECT_NEAR(once.graph.times[0], 110, 1e-9);
  EXPECT_NEAR(once.graph.times[1], 200, 1e-9);
  EXPECT_NEAR(once.noise, std::sqrt(2.0) * std::log(1.1), 1e-9);
  EXPECT_EQ(merged(once.graph).noise, 0);
}

TEST(ConfiguredGraph, ScalesByWhatItIsGivenAlone) {
  const ConfiguredGraph graph = random_layouts(30, 20, 3);
  const GraphScale scale = scale_of({&graph, 1});
  ASSERT_EQ(scale.nodes.size(), 2U);  // "same" is constant
  EXPECT_EQ(scale.nodes[1].column, 2);
  double sum = 0, squares = 0;
  const ScaledGraph its = scaled(graph, scale);
  for (size_t i = 0; i < its.nodes.size(); i += 2) {
    sum += static_cast<double>(its.nodes[i]);
    squares += static_cast<double>(its.nodes[i] * its.nodes[i]);
  }
  EXPECT_NEAR(sum, 0, 1e-3);
  EXPECT_NEAR(squares, 30, 1e-2);
  // A number, and whether it is 0, 1, 2 or 3.
  ASSERT_EQ(scale.configs.size(), 5U);
  EXPECT_EQ(scale.configs[3].of(2), 1);
  EXPECT_EQ(scale.configs[3].of(1), 0);
  EXPECT_EQ(its.sources.size(), 2 * graph.graph.edges.size());
}

TEST(ConfiguredGraph, ReadsMeasurementsOfTpus) {
  const auto tiles = tpu::measured_file("op_tuning_data.pb");
  HONE_NEED_MEASURED(tiles);
  const std::vector<ConfiguredGraph> kernels = load_graphs(tiles).value();
  EXPECT_EQ(kernels.size(), 15U);
  const std::vector<ConfiguredGraph> modules =
      load_graphs(tpu::measured_file("module_tuning_data_layout.pb")).value();
  ASSERT_EQ(modules.size(), 1U);
  EXPECT_EQ(modules[0].times.size(), 112U);
  EXPECT_EQ(merged(modules[0]).graph.times.size(), 91U);
  EXPECT_LT(merged(modules[0]).noise, 1e-4);
  EXPECT_LT(compressed(modules[0], 1).graph.opcodes.size(), 500U);
}

class LoadedLayouts : public testing::Test {
 protected:
  void write(std::string_view name, const LayoutFile& file) const {
    ASSERT_TRUE(write_npz(folder_.path() / name, arrays_of(file)).ok());
  }
  std::string said() const { return load_graphs(folder_.path()).error().to_string(); }
  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
};

TEST_F(LoadedLayouts, KnowWhatTheirFilesKnow) {
  const LayoutFile file = small_layouts();
  write("a-default.npz", file);
  write("a-random.npz", file);
  const std::vector<ConfiguredGraph> graphs = load_graphs(folder_.path()).value();
  ASSERT_EQ(graphs.size(), 2U);
  EXPECT_EQ(graphs[0].sort, "default");
  EXPECT_EQ(graphs[1].sort, "random");
  for (const ConfiguredGraph& graph : graphs) {
    EXPECT_EQ(graph.program, "zoo:mlp,size=tiny");
    EXPECT_EQ(graph.target, 0x1234U);
    EXPECT_EQ(graph.besides, file.times);
    EXPECT_EQ(graph.planned, 100);
    EXPECT_EQ(graph.left_out, 0U);
  }
  const size_t second[] = {1};
  EXPECT_EQ(with_configs(graphs[0], second).besides.priced, std::vector{210.0F});
}

TEST_F(LoadedLayouts, AreThoseOfWhichEnoughWasMeasured) {
  LayoutFile file = small_layouts();
  file.times.known = {0.8F, 0.39F};
  write("a-random.npz", file);
  const ConfiguredGraph graph = load_graphs(folder_.path()).value()[0];
  EXPECT_EQ(graph.times, std::vector{100.0});
  EXPECT_EQ(graph.besides.priced, std::vector{90.0F});
  EXPECT_EQ(graph.left_out, 1U);
  file.times.known = {0, 0};  // prices alone
  write("a-random.npz", file);
  EXPECT_EQ(load_graphs(folder_.path()).value()[0].times.size(), 2U);
}

TEST_F(LoadedLayouts, AreOfOneTarget) {
  LayoutFile file = small_layouts();
  write("a.npz", file);
  file.target = 0;
  write("b.npz", file);
  EXPECT_THAT(said(), says("target one that nobody names ... 0x0000000000001234"));
  write("a.npz", file);
  EXPECT_EQ(load_graphs(folder_.path())->size(), 2U);
  file.times.whole = {1};
  write("b.npz", file);
  EXPECT_THAT(said(), HasSubstr("the array 'config_runtime_whole' is f32[1], not f32[2]"));
}

// Files of before do not name their target, but their set does.
TEST_F(LoadedLayouts, AreOfTheTargetOfTheirSet) {
  const Target target = host_target().value();
  ASSERT_TRUE(DataSet::make(folder_.path().native(), {.target = target}).ok());
  ASSERT_TRUE(make_folders((folder_.path() / "layout").native()).ok());
  LayoutFile file = small_layouts();
  file.target = 0;
  write("layout/a-random.npz", file);
  EXPECT_EQ(load_graphs(folder_.path()).value()[0].target, fingerprint(target));
  file.target = 0x1234;
  write("layout/a-random.npz", file);
  EXPECT_THAT(said(), says("target 0x0000000000001234"));
}

TEST_F(LoadedLayouts, SayOfWhichSortAnArrayIsMissing) {
  const auto said_of = [&](const std::function<void(std::vector<NamedTensor>&)>& change) {
    std::vector<NamedTensor> arrays = arrays_of(small_layouts());
    change(arrays);
    EXPECT_TRUE(write_npz(folder_.path() / "a.npz", arrays).ok());
    return said();
  };
  const auto erase = [](std::vector<NamedTensor>& arrays, std::string_view name) {
    std::erase_if(arrays, [&](const NamedTensor& each) { return each.name == name; });
  };
  EXPECT_THAT(said_of([&](auto& arrays) {
                erase(arrays, "node_config_feat");
                erase(arrays, "node_config_ids");
              }),
              says("'config_feat' ... 'node_config_feat'"));
  EXPECT_THAT(said_of([&](auto& arrays) { erase(arrays, "node_config_ids"); }),
              says("'node_config_ids' ... missing"));
  EXPECT_THAT(
      said_of([&](auto& arrays) {
        erase(arrays, "node_config_feat");
        erase(arrays, "node_config_ids");
        arrays.push_back({"config_runtime_normalizers", Tensor::zeros(Type::get(DType::i64, {2}))});
      }),
      HasSubstr("the array 'config_feat' is missing"));
  EXPECT_THAT(said_of([&](auto& arrays) {
                arrays.push_back({"config_feat", Tensor::zeros(Type::get(DType::f32, {2, 24}))});
              }),
              says("'config_feat' ... 'node_config_feat'"));
}

// Once.
TEST_F(LoadedLayouts, SayWhereAnErrorIs) {
  const std::filesystem::path path = folder_.path() / "a.npz";
  ASSERT_TRUE(write_file_atomic(path, "damaged").ok());
  EXPECT_EQ(load_graphs(path).error().where(), path.native());
  const std::filesystem::path modules = folder_.path() / "a.pb";
  ASSERT_TRUE(write_file_atomic(modules, "damaged").ok());
  EXPECT_EQ(load_graphs(modules).error().where(), modules.native());
}

TEST(ConfiguredGraph, RefusesWhatIsMixedOrMissing) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  EXPECT_THAT(load_graphs(folder.path()).error().to_string(), says(".npz files"));
  EXPECT_FALSE(are_graphs(folder.path() / "none"));
  tpu::LayoutGraph layout;
  EXPECT_THAT(configured(layout, "a").error().to_string(), HasSubstr("no configurable nodes"));
  layout.config_nodes = {4, 2, 4};
  EXPECT_THAT(configured(layout, "a").error().to_string(), HasSubstr("has the node 4 twice"));
  EXPECT_THAT(check_columns({.names = {"a", "b"}, .values = {}},
                            {.names = {"a", "c"}, .values = {}}, "nodes")
                  .error()
                  .to_string(),
              HasSubstr("column 1 of the nodes is 'c', not 'b'"));
}

}  // namespace
}  // namespace hone::HONE_FILE
