#include "lab/data/export_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/data/configured_graph.h"
#include "tests/base/says_testing.h"
#include "tests/lab/layout_testing.h"
#include "tests/learn/data_set_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ExportDataTest : public DataSetTest {
 protected:
  // With a column of hone for configurations.
  void write_layouts(const DataSet& set, std::string_view program, bool is_random) const {
    LayoutFile file = small_layouts();
    file.target = fingerprint(target_);
    file.program = program;
    file.layout.configs.names.push_back("layout_block_0");
    std::vector<float>& values = file.layout.configs.values;
    values.insert(values.begin() + tpu::kLayoutFeatures, 16);
    values.push_back(1);
    ASSERT_TRUE(make_folders(set.folder() + "/layout").ok());
    ASSERT_TRUE(write_npz(layout_path(set.folder(), program, is_random), arrays_of(file)).ok());
  }
  std::vector<ConfiguredGraph> graphs_in(std::string_view name) const {
    return load_graphs(path(name)).value();
  }
  std::vector<std::string> names_in(const std::string& folder) const {
    std::vector<std::string> names;
    const std::vector<std::filesystem::path> files = graph_files(folder).value();
    for (const std::filesystem::path& file : files)
      names.push_back(file.lexically_relative(folder).native());
    return names;
  }
};

TEST_F(ExportDataTest, WritesLayoutsOfASet) {
  const DataSet set = make();
  write_layouts(set, "zoo:a", true);
  write_layouts(set, "zoo:a", false);
  const Exported exported = export_data(set, path("out"), {}).value();
  EXPECT_EQ(exported.files, 2U);
  EXPECT_THAT(exported.lost, SizeIs(0));
  EXPECT_THAT(names_in(path("out")), ElementsAre("layout/hone/default/zoo_a-default.npz",
                                                 "layout/hone/random/zoo_a-random.npz"));
  const auto both = read_layout_file(path("out/layout/hone/random/zoo_a-random.npz")).value();
  EXPECT_EQ(both.program, "zoo:a");
  EXPECT_EQ(both.target, fingerprint(target_));
  EXPECT_THAT(both.layout.configs.names, SizeIs(tpu::kLayoutFeatures + 1));
}

TEST_F(ExportDataTest, KeepsOfLayoutsWhatIsPublished) {
  const DataSet set = make();
  write_layouts(set, "zoo:a", true);
  const DataExport options = {.published_only = true};
  const Exported exported = export_data(set, path("out"), options).value();
  EXPECT_THAT(exported.lost, ElementsAre("layout_block_0"));
  EXPECT_THAT(exported.lost_arrays, Contains("target"));
  const auto arrays = read_npz(path("out/layout/hone/random/zoo_a-random.npz")).value();
  std::vector<std::string> names;
  for (const NamedTensor& each : arrays) names.push_back(each.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("node_feat", "node_opcode", "edge_index",
                                                   "node_config_ids", "node_config_feat",
                                                   "config_runtime", "node_splits"));
  for (const NamedTensor& each : arrays) {
    if (each.name == "node_config_feat") EXPECT_EQ(each.tensor.type().to_string(), "f32[2, 1, 18]");
    if (each.name == "node_feat") EXPECT_EQ(each.tensor.type().to_string(), "f32[2, 140]");
    if (each.name == "config_runtime") EXPECT_EQ(each.tensor.type().to_string(), "i32[2]");
  }

  // Data that was exported by its own columns can be cut afterwards, in a folder or alone.
  ASSERT_TRUE(export_data(set, path("wide"), {}).ok());
  EXPECT_EQ(export_data(std::filesystem::path(path("wide")), path("cut"), options)->lost,
            exported.lost);
  EXPECT_THAT(names_in(path("cut")), ElementsAre("layout/hone/random/zoo_a-random.npz"));
  EXPECT_EQ(load_graphs(path("cut")).value(), load_graphs(path("out")).value());
  const std::filesystem::path one = path("wide/layout/hone/random/zoo_a-random.npz");
  EXPECT_EQ(export_data(one, path("one"), options)->files, 1U);
}

TEST_F(ExportDataTest, PutsLayoutsIntoTheFoldersOfASplit) {
  const DataSet set = make();
  for (const char* program : {"zoo:a", "zoo:b", "zoo:c", "zoo:d"})
    write_layouts(set, program, true);
  const ProgramSplit split = {{{{"zoo:a"}, {"zoo:b"}, {"zoo:c"}}}};
  EXPECT_EQ(export_data(set, path("out"), {.split = split})->files, 3U);
  EXPECT_THAT(names_in(path("out")), ElementsAre("layout/hone/random/test/zoo_c-random.npz",
                                                 "layout/hone/random/train/zoo_a-random.npz",
                                                 "layout/hone/random/valid/zoo_b-random.npz"));
  const ProgramSplit unknown = {{{{"zoo:e"}, {}, {}}}};
  EXPECT_THAT(export_data(set, path("no"), {.split = unknown}).error().to_string(),
              HasSubstr("zoo:e"));
}

TEST_F(ExportDataTest, KernelsSayOfWhichTargetAndProgramTheyAre) {
  DataSet set = make();
  fill(set, kernel(64), {"zoo:a", "zoo:b"});
  fill(set, kernel(32), {"zoo:b"});
  ASSERT_TRUE(export_data(set, path("out"), {}).ok());
  std::vector<std::string> programs;
  for (const ConfiguredGraph& each : graphs_in("out")) {
    programs.push_back(each.program);
    EXPECT_EQ(each.target, fingerprint(target_));
  }
  EXPECT_THAT(programs, testing::UnorderedElementsAre("zoo:a", "zoo:b"));

  // The kernel of both is tested, and is called by the program that it is tested for.
  const ProgramSplit split = {{{{"zoo:a"}, {}, {"zoo:b"}}}};
  ASSERT_TRUE(export_data(set, path("parts"), {.split = split}).ok());
  for (const ConfiguredGraph& each : graphs_in("parts")) EXPECT_EQ(each.program, "zoo:b");

  const DataExport options = {.published_only = true};
  EXPECT_THAT(export_data(set, path("tpu"), options)->lost_arrays,
              ElementsAre("program", "target"));
  for (const ConfiguredGraph& each : graphs_in("tpu")) EXPECT_EQ(each.target, 0U);
}

TEST_F(ExportDataTest, ReadsFoldersUpToADepth) {
  const DataSet set = make();
  write_layouts(set, "zoo:a", true);
  std::string deep = path("tree");
  for (int i = 0; i < kMaxFolderDepth; ++i) deep += "/d";
  ASSERT_TRUE(export_data(set, path("out"), {}).ok());
  ASSERT_TRUE(make_folders(deep).ok());
  std::filesystem::copy(path("out/layout/hone/random/zoo_a-random.npz"), deep);
  EXPECT_EQ(load_graphs(path("tree"))->size(), 1U);
  ASSERT_TRUE(make_folders(deep + "/d").ok());
  EXPECT_THAT(load_graphs(path("tree")).error().to_string(), HasSubstr("is deeper than 8"));
}

TEST_F(ExportDataTest, RefusesToWriteNothing) {
  const DataSet set = make();
  EXPECT_THAT(export_data(set, path("out"), {}).error().to_string(), says("export"));
  write_layouts(set, "zoo:a", true);
  EXPECT_THAT(export_data(set, path("out"), {.split = ProgramSplit()}).error().to_string(),
              says("split ... program"));
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

}  // namespace
}  // namespace hone::HONE_FILE
