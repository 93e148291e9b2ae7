#include "lab/tpu/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zip.h>

#include <cmath>

#include "base/file.h"
#include "formats/npy.h"
#include "lab/tpu/features.h"
#include "tests/base/says_testing.h"

namespace hone::tpu::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Features features(std::span<const std::string> names, size_t rows, float first) {
  Features features{.names = {names.begin(), names.end()}, .values = {}};
  for (size_t i = 0; i < rows * names.size(); ++i)
    features.values.push_back(first + static_cast<float>(i));
  return features;
}

OpGraph some_graph() {
  return {.nodes = features(node_feature_names(), 3, 0),
          .opcodes = {63, 63, 2},
          .edges = {{2, 0}, {2, 1}}};
}
TileGraph some_tile() {
  return {.graph = some_graph(),
          .configs = features(tile_feature_names(), 2, 7),
          .runtimes = {900, 800},
          .normalizers = {900, 900}};
}
LayoutGraph some_layout() {
  return {.graph = some_graph(),
          .config_nodes = {2, 0},
          .configs = features(layout_feature_names(), 3 * 2, -1),
          .runtimes = {5, 6, 7},
          .splits = {0, 3}};
}

// The edit of one array, by name.
Tensor& array(std::vector<NamedTensor>& arrays, std::string_view name) {
  return std::ranges::find(arrays, name, &NamedTensor::name)->tensor;
}
std::string tile_failure(const std::function<void(std::vector<NamedTensor>&)>& edit) {
  std::vector<NamedTensor> arrays = arrays_of(some_tile());
  edit(arrays);
  const Result<TileGraph> tile = tile_graph_of(arrays);
  return tile.ok() ? "" : tile.error().to_string();
}
std::string layout_failure(const std::function<void(std::vector<NamedTensor>&)>& edit) {
  std::vector<NamedTensor> arrays = arrays_of(some_layout());
  edit(arrays);
  const Result<LayoutGraph> layout = layout_graph_of(arrays);
  return layout.ok() ? "" : layout.error().to_string();
}

TEST(TpuGraph, HasThePublishedNamesTypesAndAxes) {
  const auto types = [](const std::vector<NamedTensor>& arrays) {
    std::vector<std::string> texts;
    for (const NamedTensor& each : arrays)
      texts.push_back(each.name + " " + each.tensor.type().to_string());
    return texts;
  };
  EXPECT_THAT(types(arrays_of(some_tile())),
              ElementsAre("node_feat f32[3, 140]", "node_opcode i32[3]", "edge_index i32[2, 2]",
                          "config_feat f32[2, 24]", "config_runtime i64[2]",
                          "config_runtime_normalizers i64[2]"));
  EXPECT_THAT(types(arrays_of(some_layout())),
              ElementsAre("node_feat f32[3, 140]", "node_opcode i32[3]", "edge_index i32[2, 2]",
                          "node_config_ids i32[2]", "node_config_feat f32[3, 2, 18]",
                          "config_runtime i32[3]", "node_splits i64[2]"));
}

TEST(TpuGraph, IsReadBackAsItWasWritten) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "a.npz";
  ASSERT_TRUE(write_npz(path, arrays_of(some_tile())).ok());
  EXPECT_EQ(read_tile_npz(path).value(), some_tile());
  ASSERT_TRUE(write_npz(path, arrays_of(some_layout())).ok());
  EXPECT_EQ(read_layout_npz(path).value(), some_layout());
  EXPECT_THAT(read_tile_npz(path).error().to_string(), HasSubstr("a.npz"));

  TileGraph wide = some_tile();
  wide.graph.nodes.names.push_back("more");
  wide.graph.nodes.values.resize(3 * 141, 1);
  wide.configs.names.push_back("own");
  wide.configs.values.resize(2 * 25, 2);
  ASSERT_TRUE(write_npz(path, arrays_of(wide)).ok());
  EXPECT_EQ(read_tile_npz(path).value(), wide);
}

TEST(TpuGraph, WideLayoutsAreReadBack) {
  LayoutGraph wide = some_layout();
  wide.configs.names.push_back("own");
  wide.configs.values.resize(3 * 2 * 19, 2);
  EXPECT_EQ(layout_graph_of(arrays_of(wide)).value(), wide);
}

TEST(TpuGraph, KeepsThePublishedColumnsAlone) {
  TileGraph wide = some_tile();
  wide.graph.nodes.names.push_back("more");
  wide.graph.nodes.values.clear();
  for (int i = 0; i < 3 * 141; ++i) wide.graph.nodes.values.push_back(static_cast<float>(i));
  EXPECT_THAT(keep_published(wide), ElementsAre("more"));
  EXPECT_EQ(wide.graph.nodes.names.size(), 140u);
  EXPECT_EQ(wide.graph.nodes.row(1)[0], 141);
  EXPECT_THAT(keep_published(wide), IsEmpty());
}

TEST(TpuGraph, RefusesArraysByName) {
  EXPECT_EQ(tile_failure([](auto&) {}), "");
  const auto without = [](std::string name) {
    return [name](std::vector<NamedTensor>& arrays) {
      std::erase_if(arrays, [&](const NamedTensor& each) { return each.name == name; });
    };
  };
  for (const char* name : {"node_feat", "node_opcode", "edge_index", "config_feat",
                           "config_runtime", "config_runtime_normalizers"})
    EXPECT_THAT(tile_failure(without(name)),
                HasSubstr(fmt::format("the array '{}' is missing", name)));
  for (const char* name : {"node_config_ids", "node_config_feat", "config_runtime"})
    EXPECT_THAT(layout_failure(without(name)),
                HasSubstr(fmt::format("the array '{}' is missing", name)));
  EXPECT_EQ(layout_failure(without("node_splits")), "");

  EXPECT_THAT(tile_failure([](auto& arrays) {
                array(arrays, "edge_index") = Tensor::zeros(Type::get(DType::i32, {2, 3}));
              }),
              says("'edge_index' ... i32[2, 3] ... [any, 2]"));
  EXPECT_THAT(tile_failure([](auto& arrays) {
                array(arrays, "node_opcode") = Tensor::zeros(Type::get(DType::i32, {4}));
              }),
              HasSubstr("its shape should be [3]"));
  EXPECT_THAT(tile_failure([](auto& arrays) {
                array(arrays, "node_feat") = Tensor::zeros(Type::get(DType::f64, {3, 140}));
              }),
              HasSubstr("the array 'node_feat' is f64, not f32"));
  EXPECT_THAT(tile_failure([](auto& arrays) {
                array(arrays, "config_feat") = Tensor::zeros(Type::get(DType::f32, {2, 25}));
              }),
              says("'config_feat' ... 25 columns ... 24 ... 'feature_version'"));
  EXPECT_THAT(layout_failure([](auto& arrays) {
                array(arrays, "node_config_feat") =
                    Tensor::zeros(Type::get(DType::f32, {3, 1, 18}));
              }),
              HasSubstr("its shape should be [3, 2, any]"));
}

TEST(TpuGraph, RefusesNumbersThatCannotBe) {
  const auto set = [](std::string name, DType dtype, Dims dims, std::vector<int64_t> numbers) {
    return [=](std::vector<NamedTensor>& arrays) {
      array(arrays, name) = Tensor::from_integers(Type::get(dtype, dims), numbers);
    };
  };
  EXPECT_THAT(tile_failure(set("config_runtime", DType::i64, {2}, {0, 5})),
              says("'config_runtime' ... 0 ns ... 0"));
  EXPECT_THAT(tile_failure(set("config_runtime_normalizers", DType::i64, {2}, {1, -5})),
              says("'config_runtime_normalizers' ... -5 ns ... 1"));
  EXPECT_THAT(tile_failure(set("edge_index", DType::i32, {1, 2}, {0, 3})),
              says("'edge_index' ... node 3 ... 3"));
  EXPECT_THAT(tile_failure(set("edge_index", DType::i32, {2, 2}, {2, 0, 1, 1})),
              says("'edge_index' ... edge ... node 1 ... itself"));
  EXPECT_THAT(tile_failure(set("node_opcode", DType::i32, {3}, {1, 2, 121})),
              says("'node_opcode' ... 121 at 2 ... 0 to 120"));
  EXPECT_THAT(layout_failure(set("node_config_ids", DType::i32, {2}, {0, 3})),
              says("'node_config_ids' ... node 3"));
  EXPECT_THAT(layout_failure(set("node_config_ids", DType::i64, {2}, {0, int64_t{1} << 40})),
              HasSubstr("out of range"));
  EXPECT_THAT(layout_failure(set("node_splits", DType::i64, {2}, {2, 1})),
              HasSubstr("'node_splits' has 1 at 1"));
  EXPECT_THAT(tile_failure([](auto& arrays) {
                array(arrays, "config_feat") = Tensor::from_reals(
                    Type::get(DType::f32, {2, 24}), std::vector<double>(48, std::nan("")));
              }),
              HasSubstr("the array 'config_feat' has nan in row 0"));
}

// As in the published files.
TEST(TpuGraph, TakesSplitsThatAreOneRow) {
  const auto with_dims = [](Dims dims) {
    return [dims](std::vector<NamedTensor>& arrays) {
      array(arrays, "node_splits") = Tensor::zeros(Type::get(DType::i64, dims));
    };
  };
  EXPECT_EQ(layout_failure(with_dims({1, 2})), "");
  EXPECT_THAT(layout_failure(with_dims({2, 1})), HasSubstr("its shape should be [1, any]"));
  EXPECT_THAT(layout_failure(with_dims({1, 1, 2})), HasSubstr("its shape should be [any]"));
  std::vector<NamedTensor> arrays = arrays_of(some_layout());
  array(arrays, "node_splits") =
      Tensor::from_integers(Type::get(DType::i64, {1, 2}), std::vector<int64_t>{0, 3});
  EXPECT_EQ(layout_graph_of(arrays).value(), some_layout());
}

TEST(TpuGraph, RefusesFeaturesOfAnotherVersion) {
  TileGraph wide = some_tile();
  wide.configs.names.push_back("own");
  wide.configs.values.resize(2 * 25, 2);
  const std::vector<NamedTensor> good = arrays_of(wide);
  std::vector<NamedTensor> other = good;
  array(other, "feature_version") =
      Tensor::from_integers(Type::get(DType::i64, {1}), std::vector<int64_t>{2});
  EXPECT_THAT(tile_graph_of(other).error().to_string(), says("features ... version 2 ... 1"));
  other = good;
  array(other, "config_feat_names") = array(other, "node_feat_names");
  EXPECT_THAT(tile_graph_of(other).error().to_string(),
              says("'config_feat_names' ... 140 names ... 25 columns"));
}

// They are refused by their headers: nothing is made of the numbers.
TEST(TpuGraph, RefusesArraysThatAreTooLarge) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "a.npz";
  const auto said = [&](std::string_view name, Type type) {
    std::vector<NamedTensor> arrays = arrays_of(some_layout());
    array(arrays, name) = Tensor::zeros(type);
    EXPECT_TRUE(write_npz(path, arrays).ok());
    const Result<std::vector<NamedTensor>> read = read_arrays(path);
    return read.ok() ? "" : read.error().to_string();
  };
  EXPECT_EQ(said("node_splits", Type::get(DType::u8, {1, 2})), "");
  EXPECT_THAT(said("node_config_ids", Type::get(DType::u8, {4})),
              says("'node_config_ids' ... 4 nodes ... 3"));
  EXPECT_THAT(said("node_config_ids", Type::get(DType::u8, {kMaxNodes + 1})),
              says("u8[1048577] ... axis 0 ... 1048576"));
  EXPECT_THAT(said("node_splits", Type::get(DType::u8, {kMaxConfigs + 1})),
              says("u8[4194305] ... 4194304"));
  EXPECT_THAT(said("node_feat", Type::get(DType::u8, {3, kMaxColumns + 1})),
              says("u8[3, 4097] ... axis 1 ... 4096"));
  EXPECT_THAT(read_layout_npz(path).error().to_string(), HasSubstr("member 'node_feat.npy'"));
}

TEST(TpuGraph, RefusesSmallFilesOfLargeArrays) {
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  const auto path = folder.path() / "a.npz";
  ASSERT_TRUE(write_npz(path, arrays_of(some_layout())).ok());
  const Tensor zeros = Tensor::zeros(Type::get(DType::f32, {300000, 140}));
  const NpyImage image = npy_image(zeros);
  std::string npy = image.header;
  npy.append(reinterpret_cast<const char*>(image.data.data()), image.data.size());
  zip_t* archive = zip_open(path.c_str(), 0, nullptr);
  ASSERT_NE(archive, nullptr);
  zip_source_t* source = zip_source_buffer(archive, npy.data(), npy.size(), 0);
  const zip_int64_t at = zip_file_add(archive, "node_feat.npy", source, ZIP_FL_OVERWRITE);
  ASSERT_EQ(zip_set_file_compression(archive, static_cast<zip_uint64_t>(at), ZIP_CM_DEFLATE, 9), 0);
  ASSERT_EQ(zip_close(archive), 0);
  ASSERT_LT(std::filesystem::file_size(path), 1U << 20);
  EXPECT_THAT(read_arrays(path).error().to_string(), HasSubstr("more than 64.0 MiB and 400 times"));
}

}  // namespace
}  // namespace hone::tpu::HONE_FILE
