#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "front/hlo/hlo.h"
#include "ir/text.h"
#include "shard/partition.h"
#include "tests/shard/mesh_testing.h"
#include "tests/shard/shardy_testing.h"

// The programs of Shardy that run on several devices and compare the result with that of one. Here
// hone divides what they state, runs the parts in the reference, and compares with the whole.

namespace hone::HONE_FILE {
namespace {

using tested::replaced;
using tested::ShardyCase;

// Shardy spells out the exchanges of a change of division: "sdy.all_gather [...] %0 out_sharding=".
// The value is divided so from there on; hone finds the exchanges.
std::string without_exchanges(std::string text) {
  text = replaced(std::move(text), "sdy.constant", "stablehlo.constant");
  text = replaced(std::move(text), "sdy.reshard", "sdy.sharding_constraint");
  for (size_t at = text.find("sdy.all_"); at != text.npos; at = text.find("sdy.all_")) {
    const size_t value = text.find('%', at);
    const size_t end = text.find_first_of(" \n", value), sharding = text.find('<', end);
    text.replace(at, sharding - at,
                 fmt::format("sdy.sharding_constraint {} ", text.substr(value, end - value)));
  }
  return text;
}

bool divides_something(const Partition& made) {
  const auto is_divided = [](const ShardLayout& layout) {
    return std::ranges::any_of(layout.dims, [](const MeshParts& dim) { return !dim.empty(); });
  };
  return !made.messages.empty() || std::ranges::any_of(made.inputs, is_divided) ||
         std::ranges::any_of(made.outputs, is_divided);
}

TEST(ShardyPrograms, ComputeWhatOneDeviceDoes) {
  const std::optional<std::vector<ShardyCase>> cases = tested::shardy_programs();
  if (!cases) GTEST_SKIP() << "../shared/data/shardy is not here";
  // Refused by name: an op that hone does not have, and values that are on one device of several.
  const std::map<std::string, std::string> refused = {
      {"stablehlo_fft.parallel_fft", "stablehlo.fft"},
      {"single_device_switch.single_device_switch", "two meshes"}};
  int right = 0, with_parts = 0;
  std::set<std::string> by_hand, found;
  for (const ShardyCase& one : *cases) {
    const bool is_divided = one.program.find("sdy.sharding") != std::string::npos;
    const bool is_by_hand = one.program.find("sdy.manual_computation") != std::string::npos;
    if (!is_divided || is_by_hand) {
      // The programs that compare, and those of one device, state nothing.
      if (is_by_hand)
        by_hand.insert(one.name);
      else
        EXPECT_THAT(one.name, testing::ContainsRegex("\\.(main|sequential_.*)$"));
      continue;
    }
    Graph graph;
    const auto divided = [&]() -> Result<Partition> {
      graph = *single_graph(HONE_TRY(parse_hlo(without_exchanges(one.program), one.name)));
      return partition_graph(graph);
    };
    const Result<Partition> made = divided();
    if (const auto known = refused.find(one.name); known != refused.end()) {
      ASSERT_FALSE(made.ok()) << one.name;
      EXPECT_THAT(made.error().what(), testing::HasSubstr(known->second));
      found.insert(one.name);
      continue;
    }
    ASSERT_TRUE(made.ok()) << one.name << ": " << made.error().to_string();
    for (uint64_t seed = 1; seed <= 3; ++seed)
      EXPECT_EQ(tested::judge_mesh(graph, *made, seed), "") << one.name << print(made->graph);
    ++right;
    with_parts += divides_something(*made) ? 1 : 0;
  }
  EXPECT_EQ(right, 31);
  EXPECT_EQ(found.size(), refused.size());
  EXPECT_GT(with_parts, right / 2);
  // Their programs are those of one device already.
  EXPECT_THAT(by_hand,
              testing::ElementsAre("stablehlo_all_gather.manual_all_gather",
                                   "stablehlo_all_reduce.manual_all_reduce",
                                   "stablehlo_all_to_all.manual_all_to_all",
                                   "stablehlo_collective_permute.manual_collective_permute"));
}

}  // namespace
}  // namespace hone::HONE_FILE
