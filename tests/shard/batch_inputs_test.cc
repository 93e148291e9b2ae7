#include "shard/batch_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using testing::ElementsAre;

const Graph& graph() {
  static const Graph parsed = *parse_graph(R"(
graph @g(%s: f32[], %x: f32[N, 8], %w: f32[8, 4], %mask: bool[N], %h: f32[1, N, 4])
    where N in 1..64 {
  return %s
}
)");
  return parsed;
}

std::vector<Type> types(int64_t n) {
  std::vector<Type> all;
  for (Type type : graph().input_types()) all.push_back(*type.bind({{"N", Dim(n)}}));
  return all;
}

TEST(BatchInputs, AreThoseWithTheSizeOfTheFirst) {
  const auto batch = batch_inputs(graph(), types(8));
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->rows, 8);
  EXPECT_THAT(batch->dims, ElementsAre(kWhole, 0, kWhole, 0, kWhole));
}

TEST(BatchInputs, AreThoseThatAreChosen) {
  const std::string chosen[] = {"mask", "h:1"};
  const auto batch = batch_inputs(graph(), types(6), chosen);
  ASSERT_TRUE(batch.ok()) << batch.error().to_string();
  EXPECT_EQ(batch->rows, 6);
  EXPECT_THAT(batch->dims, ElementsAre(kWhole, kWhole, kWhole, 0, 1));
}

TEST(BatchInputs, AreRefusedByName) {
  const auto with = [](const std::vector<std::string>& chosen) {
    return batch_inputs(graph(), types(6), chosen);
  };
  EXPECT_THAT(with({"y"}), refuses(ErrorCode::usage, "y ... mask"));
  EXPECT_THAT(with({"s"}), refuses(ErrorCode::usage, "s ... no dim 0"));
  EXPECT_THAT(with({"x:2"}), refuses(ErrorCode::usage, "x ... no dim 2"));
  EXPECT_THAT(with({"x:one"}), refuses(ErrorCode::usage, "one ... dim ... x"));
  EXPECT_THAT(with({"x", "w"}), refuses(ErrorCode::usage, "w ... 8 ... 6"));
  const Graph none = *parse_graph("graph @g(%s: f32[]) -> f32[] {\n  return %s\n}\n");
  EXPECT_THAT(batch_inputs(none, none.input_types()),
              refuses(ErrorCode::unsupported, "g ... batch"));
}

TEST(BatchShares, DifferByOneAtMost) {
  const auto counts = [](int64_t rows, int64_t devices) {
    std::vector<int64_t> all;
    for (const BatchShare& share : batch_shares(rows, devices)) all.push_back(share.count);
    return all;
  };
  EXPECT_THAT(counts(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(counts(2, 4), ElementsAre(1, 1));
  EXPECT_THAT(counts(0, 4), ElementsAre(0));
}

TEST(BatchShares, FollowSpeeds) {
  const auto counts = [](int64_t rows, const std::vector<double>& speeds) {
    std::vector<RowTimes> times;
    for (double speed : speeds) times.push_back({.row = 1 / speed});
    std::vector<int64_t> all;
    int64_t first = 0;
    for (const BatchShare& share : batch_shares(rows, times)) {
      EXPECT_EQ(share.first, first);
      first += share.count;
      all.push_back(share.count);
    }
    EXPECT_EQ(first, rows);
    return all;
  };
  EXPECT_THAT(counts(8, {3, 1}), ElementsAre(6, 2));
  EXPECT_THAT(counts(100, {1, 3, 6}), ElementsAre(10, 30, 60));
  EXPECT_THAT(counts(7, {1e9, 2e9}), ElementsAre(2, 5));
  EXPECT_THAT(counts(8, {1, 1e6}), ElementsAre(1, 7)) << "each has a row";
  EXPECT_THAT(counts(2, {1, 1, 5}), ElementsAre(1, 1)) << "the last one has none";
  EXPECT_THAT(counts(0, {2, 1}), ElementsAre(0));
  EXPECT_THAT(counts(int64_t{1} << 40, {1, 3}), ElementsAre(int64_t{1} << 38, int64_t{3} << 38));
}

TEST(BatchShares, CountWhatADeviceStartsWith) {
  const auto counts = [](int64_t rows, const std::vector<RowTimes>& times) {
    std::vector<int64_t> all;
    for (const BatchShare& share : batch_shares(rows, times)) all.push_back(share.count);
    return all;
  };
  EXPECT_THAT(counts(10, {{.start = 4, .row = 1}, {.start = 0, .row = 1}}), ElementsAre(3, 7));
  EXPECT_THAT(counts(10, {{.start = 50, .row = 0.01}, {.start = 0, .row = 1}}), ElementsAre(1, 9));
  EXPECT_THAT(counts(100, {{.start = 50, .row = 0.01}, {.start = 0, .row = 1}}),
              ElementsAre(50, 50));
}

}  // namespace
}  // namespace hone::HONE_FILE
