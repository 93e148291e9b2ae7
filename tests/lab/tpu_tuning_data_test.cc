#include "lab/tpu/tuning_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lab/tpu/features.h"
#include "tests/base/says_testing.h"
#include "tests/lab/tpu_testing.h"

namespace hone::tpu::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Result<std::vector<TuningModule>> parse(const std::string& bytes) {
  return parse_tuning_data(std::as_bytes(std::span(bytes.data(), bytes.size())), "f.pb");
}
std::string failure(const std::string& bytes) {
  const auto modules = parse(bytes);
  return modules.ok() ? "" : modules.error().to_string();
}

// f32[2, 3] with the last dim first in memory.
std::string some_shape() {
  return number(2, 11) + packed(3, {2, 3}) + message(5, packed(1, {0, 1}));
}
std::string some_module() {
  const std::string parameter = message(2, "parameter") + message(3, some_shape()) + number(35, 7);
  const std::string negate = message(2, "negate") + message(3, some_shape()) + number(35, 8) +
                             number(36, 7);  // not packed
  return message(1, "m") + message(3, message(1, "c") + message(2, parameter) + message(2, negate) +
                                          number(5, 8) + number(6, 8));
}
std::string tile_run(std::initializer_list<uint64_t> output, uint64_t ns, bool is_default) {
  return message(3, message(1, message(1, packed(2, output))) + message(4, number(4, ns)) +
                        number(5, is_default ? 1 : 0));
}

TEST(TuningData, IsReadWithAndWithoutItsWrapper) {
  const std::string bare = message(1, some_module()) + number(2, 99) +
                           tile_run({1, 2}, 500, false) + tile_run({2, 3}, 400, true);
  for (const std::string& bytes : {bare, message(1, bare)}) {
    const std::vector<TuningModule> modules = parse(bytes).value();
    ASSERT_THAT(modules, SizeIs(1));
    EXPECT_EQ(modules[0].module.name, "m");
    EXPECT_EQ(modules[0].fingerprint, 99u);
    const HloComputation& computation = modules[0].module.computations.at(0);
    EXPECT_EQ(computation.root, 8);
    const HloInstruction& negate = computation.instructions.at(1);
    EXPECT_EQ(negate.opcode, "negate");
    EXPECT_THAT(negate.operands, ElementsAre(7));
    EXPECT_THAT(negate.shape.dims, ElementsAre(2, 3));
    EXPECT_THAT(negate.shape.minor_to_major, ElementsAre(0, 1));
    const std::vector<TuningRun>& runs = modules[0].runs;
    ASSERT_THAT(runs, SizeIs(2));
    EXPECT_THAT(runs[0].output, ElementsAre(1, 2));
    EXPECT_EQ(runs[0].nanoseconds, 500);
    EXPECT_FALSE(runs[0].is_default);
    EXPECT_TRUE(runs[1].is_default);
  }
  EXPECT_THAT(parse(message(1, bare) + message(1, bare)).value(), SizeIs(2));
  EXPECT_THAT(parse("").value(), SizeIs(0));
}

TEST(TuningData, RefusesBytesThatAreNone) {
  EXPECT_THAT(failure("\xff"), HasSubstr("cut off"));
  EXPECT_THAT(failure("\xff"), HasSubstr("f.pb"));
  EXPECT_THAT(failure(std::string(11, '\x80')), HasSubstr("more than 10 bytes"));
  EXPECT_THAT(failure(varint(1 << 3 | 2) + varint(100) + "abc"), says("100 bytes ... 3 left"));
  EXPECT_THAT(failure(varint(1 << 3 | 3)), HasSubstr("a group"));
  EXPECT_THAT(failure(number(0, 1)), HasSubstr("names field 0"));
  EXPECT_THAT(failure(number(1, 1)), says("field 1 at byte 0 ... message"));
  const std::string without = message(3, message(2, number(35, 7)));
  EXPECT_THAT(failure(message(1, message(1, without))), says("instruction ... opcode"));
}

TEST(TuningData, RunsWithAnErrorOrWithoutATimeDoNotCount) {
  const std::string data =
      message(1, some_module()) + tile_run({1, 1}, 1, false) + tile_run({2, 2}, 300, true) +
      message(
          3, message(1, message(1, packed(2, {9, 9}))) + number(3, 1) + message(4, number(4, 100)));
  const TuningModule module = parse(data).value().at(0);
  const TileGraph tile = tile_graph_of(module).value();
  EXPECT_THAT(tile.runtimes, ElementsAre(300));
  EXPECT_THAT(tile.normalizers, ElementsAre(300));
  TuningModule without = module;
  without.runs[1].is_default = false;
  EXPECT_THAT(tile_graph_of(without).error().to_string(), HasSubstr("no timed default run"));
}

// ---- What was measured --------------------------------------------------------------------------

TEST(TuningData, ReadsTheMeasuredKernels) {
  const auto path = measured_file("op_tuning_data.pb");
  HONE_NEED_MEASURED(path);
  const std::vector<TuningModule> modules = read_tuning_data(path).value();
  std::vector<size_t> runs, timed, nodes, edges;
  size_t all = 0;
  for (const TuningModule& module : modules) {
    const TileGraph tile = tile_graph_of(module).value();
    EXPECT_TRUE(check(tile).ok());
    runs.push_back(module.runs.size());
    timed.push_back(tile.runtimes.size());
    nodes.push_back(tile.graph.opcodes.size());
    edges.push_back(tile.graph.edges.size());
    all += tile.runtimes.size();
    EXPECT_EQ(std::ranges::count(tile.graph.opcodes, 0), 0);
  }
  EXPECT_THAT(runs, ElementsAre(61, 581, 16, 16, 16, 23, 10, 11, 5, 3, 3, 2, 3, 2, 2));
  EXPECT_THAT(timed, ElementsAre(61, 579, 16, 16, 16, 23, 10, 11, 5, 3, 3, 2, 3, 2, 2));
  EXPECT_EQ(all, 752u);
  EXPECT_THAT(nodes, ElementsAre(20, 31, 52, 56, 30, 21, 2, 2, 7, 44, 13, 10, 2, 2, 2));
  EXPECT_THAT(edges, ElementsAre(19, 32, 51, 58, 30, 20, 1, 1, 6, 49, 12, 9, 1, 1, 1));
  // The first run of the first kernel is the default: output bounds [2, 26].
  const TileGraph first = tile_graph_of(modules[0]).value();
  EXPECT_EQ(first.runtimes[0], 57188);
  EXPECT_EQ(first.normalizers[1], 57188);
  const std::vector<float> row(first.configs.row(0).begin(), first.configs.row(0).end());
  EXPECT_THAT(row, ElementsAre(0, 0, 0, 0, 0, 0, 0, 0,      // kernel
                               2, 26, 4, 2, 0, 0, 34, 416,  // output
                               0, 0, 0, 0, 0, 0, 0, 0));    // input
}

TEST(TuningData, ReadsTheMeasuredLayouts) {
  const auto path = measured_file("module_tuning_data_layout.pb");
  HONE_NEED_MEASURED(path);
  const std::vector<TuningModule> modules = read_tuning_data(path).value();
  ASSERT_THAT(modules, SizeIs(1));
  EXPECT_EQ(modules[0].module.computations.size(), 143u);
  EXPECT_EQ(modules[0].runs.size(), 122u);
  const LayoutGraph layout = layout_graph_of(modules[0]).value();
  EXPECT_TRUE(check(layout).ok());
  EXPECT_EQ(layout.graph.opcodes.size(), 3163u);
  EXPECT_EQ(layout.graph.edges.size(), 5112u);
  EXPECT_EQ(layout.runtimes.size(), 112u);
  EXPECT_EQ(std::ranges::min(layout.runtimes), 910876401);
  EXPECT_EQ(std::ranges::max(layout.runtimes), 925642328);
  EXPECT_EQ(layout.splits.front(), 0);
  EXPECT_EQ(layout.splits.back(), 3163);
  EXPECT_EQ(layout.splits.size(), 8u);
  // Positions over all computations, not ids: those are convolutions and reshapes.
  int64_t convs = 0, reshapes = 0;
  for (int32_t node : layout.config_nodes) {
    const int32_t opcode = layout.graph.opcodes[static_cast<size_t>(node)];
    convs += opcode == opcode_number("convolution");
    reshapes += opcode == opcode_number("reshape");
  }
  EXPECT_EQ(convs, 53);
  EXPECT_EQ(reshapes, 9);
  const size_t width = layout.configs.names.size() * layout.config_nodes.size();
  std::set<std::vector<float>> different;
  for (size_t i = 0; i < layout.runtimes.size(); ++i) {
    const auto begin = layout.configs.values.begin() + static_cast<std::ptrdiff_t>(i * width);
    different.emplace(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  EXPECT_EQ(different.size(), 91u);
}

// A conv of bf16[2, 96, 96, 96, 32] by a window of 3 in three dims: all columns by hand.
TEST(TuningData, FeaturesOfAMeasuredConvAreThePublishedOnes) {
  const auto path = measured_file("module_tuning_data_layout.pb");
  HONE_NEED_MEASURED(path);
  const OpGraph graph = op_graph_of(read_tuning_data(path).value().at(0).module).value();
  EXPECT_EQ(graph.opcodes[660], 26);
  std::vector<float> row(140, 0);
  const auto set = [&](size_t at, std::initializer_list<float> values) {
    std::ranges::copy(values, row.begin() + static_cast<std::ptrdiff_t>(at));
  };
  set(15, {1});                                    // bf16
  set(21, {2, 96, 96, 96, 32, 0, 322, 56623104});  // dims
  set(37, {3, 3, 3, 0, 0, 0, 9, 27});              // window
  for (size_t at : {45, 53, 61, 69, 77}) set(at, {1, 1, 1, 0, 0, 0, 3, 1});
  set(92, {3});                                                   // not reversed
  set(94, {4, 1, 2, 3});                                          // input feature, input spatial
  set(99, {3, 4, 0, 1, 2});                                       // kernel
  set(106, {4, 1, 1});                                            // output feature, groups
  for (size_t at : {112, 116, 120, 124, 128, 132}) set(at, {1});  // products of nothing
  set(134, {4, 3, 2, 1, 0, 0});
  const std::span<const float> columns = graph.nodes.row(660);
  EXPECT_EQ(std::vector<float>(columns.begin(), columns.end()), row);
}

// Before they take memory: parts of few bytes are large once they are read.
TEST(TuningData, RefusesMoreThanItsLimits) {
  std::string modules;
  for (size_t i = 0; i <= kMaxModules; ++i) modules += message(1, number(2, 1));
  EXPECT_THAT(failure(modules), HasSubstr("there are more than 65536 modules"));
  std::string instructions;
  for (int i = 0; i < 100000; ++i) instructions += message(2, message(2, "a"));
  EXPECT_THAT(failure(message(1, message(3, instructions)) + number(2, 99)),
              says("parts ... size"));
}

}  // namespace
}  // namespace hone::tpu::HONE_FILE
