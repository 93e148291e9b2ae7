#include "report/sharding_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "shard/shard_plan.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;

constexpr std::string_view kFour = R"(
graph @g(%a: f32[4], %b: f32[4], %c: f32[4], %d: f32[8]) -> f32[4] {
  %y = add %a, %b
  return %y
})";

// Values and exchanges by name.
template <class T, class Name>
std::vector<std::string> names_of(const std::vector<T>& all, const Name& name) {
  std::vector<std::string> names;
  for (const T& one : all) names.push_back(one.*name);
  return names;
}

ShardingPicture picture(size_t most) {
  Partition partition;
  partition.mesh = parse_mesh("x=2").value();
  for (const char* value : {"%a", "%b", "%c"})
    partition.messages.push_back(
        {{.kind = ReshardKind::all_gather, .axes = {}, .bytes = 8}, value, "output 0"});
  partition.messages.push_back(
      {{.kind = ReshardKind::slice, .axes = {}, .bytes = 0}, "%d", "output 0"});
  partition.messages.push_back(
      {{.kind = ReshardKind::all_gather, .axes = {}, .bytes = 16}, "%d", "output 0"});
  partition.whole = {{"%a", "one"}, {"%b", "two"}, {"%c", "three"}};
  const Graph graph = parse_graph(kFour).value();
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    partition.values.push_back({.layout = {.dims = {{}}}, .part = graph.type({i})});
  return sharding_picture(graph, partition, false, most);
}

TEST(ShardingPicture, HasAllRowsThatThereIsRoomFor) {
  const ShardingPicture made = picture(5);
  EXPECT_THAT(names_of(made.values, &ShardingPicture::Value::name),
              ElementsAre("%a", "%b", "%c", "%d", "%y"));
  EXPECT_THAT(names_of(made.exchanges, &ShardMessage::value), ElementsAre("%a", "%b", "%c", "%d"));
  EXPECT_EQ(made.left_out_values + made.left_out_exchanges + made.left_out_whole, 0u);
  EXPECT_EQ(made.received, 40);
}

// Equal sizes at the bound: no row more, and none less.
TEST(ShardingPicture, KeepsTheLargestAndCountsTheOthers) {
  const ShardingPicture two = picture(2);
  EXPECT_THAT(names_of(two.values, &ShardingPicture::Value::name), ElementsAre("%a", "%d"));
  EXPECT_EQ(two.left_out_values, 3u);
  EXPECT_THAT(names_of(two.exchanges, &ShardMessage::value), ElementsAre("%a", "%d"));
  EXPECT_EQ(two.left_out_exchanges, 2u);
  EXPECT_THAT(names_of(two.whole, &WholeNode::node), ElementsAre("%a", "%b"));
  EXPECT_EQ(two.left_out_whole, 1u);
  EXPECT_EQ(two.received, 40);
  const ShardingPicture none = picture(0);
  EXPECT_TRUE(none.values.empty());
  EXPECT_EQ(none.left_out_values, 5u);
}

// The propagation divides no result of the product: the program has summands of 16 bits as f32.
TEST(ShardingPicture, SaysWhatTheProgramHolds) {
  const Graph graph =
      parse_graph(
          "graph @g(%x: bf16[8, 6] on @m [-, x], %w: bf16[6, 4] on @m [x, -]) -> bf16[8, 4] "
          "mesh @m = [x = 2] {\n"
          "  %y = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}\n"
          "  return %y\n"
          "}\n")
          .value();
  const ShardingPicture made = sharding_picture(graph, partition_graph(graph).value(), false);
  ASSERT_EQ(made.values.size(), 3u);
  EXPECT_EQ(made.values[0].divided, "[-, x]");
  EXPECT_EQ(made.values[2].divided, "[-, -] partial sum [x]");
  EXPECT_EQ(made.values[2].part, 8 * 4 * 4);
}

}  // namespace
}  // namespace hone::HONE_FILE
