#include "prove/sorted_runs.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace hone::HONE_FILE {
namespace {

struct Pair {
  uint64_t key, place;
  auto operator<=>(const Pair&) const = default;
};

std::vector<Pair> random_pairs(size_t count) {
  Rng rng(1);
  std::vector<Pair> pairs;
  for (size_t i = 0; i < count; ++i) pairs.push_back({rng.below(50), i});
  return pairs;
}

std::vector<Pair> sorted_by(SortedRuns<Pair>& runs, std::span<const Pair> given) {
  for (const Pair& each : given) EXPECT_TRUE(runs.add(each).ok());
  std::vector<Pair> taken;
  EXPECT_TRUE(runs.merge([&](const Pair& each) {
                    taken.push_back(each);
                    return Status();
                  })
                  .ok());
  return taken;
}

TEST(SortedRuns, MergeWhatMemoryDoesNotHold) {
  const std::vector<Pair> given = random_pairs(5000);
  std::vector<Pair> wanted = given;
  std::ranges::sort(wanted);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  for (size_t held : {64, 100, 2500, 5000, 100'000}) {
    SortedRuns<Pair> runs(held * sizeof(Pair), folder.path());
    EXPECT_EQ(sorted_by(runs, given), wanted) << held;
    EXPECT_EQ(runs.size(), 0u);
    EXPECT_EQ(sorted_by(runs, given), wanted) << held;  // again
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(SortedRuns, WriteNothingThatMemoryHolds) {
  SortedRuns<Pair> runs(1000 * sizeof(Pair), "");
  for (const Pair& each : random_pairs(1000)) ASSERT_TRUE(runs.add(each).ok());
  EXPECT_EQ(runs.spilled(), 0u);
  const Status over = runs.add({1, 1});
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code(), ErrorCode::limit);
}

TEST(SortedRuns, SayWhereNoFileCanBe) {
  SortedRuns<Pair> runs(0, "/none/at/all");
  Status status;
  for (size_t i = 0; status.ok() && i < 100; ++i) status = runs.add({i, i});
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().to_string().find("/none/at/all"), std::string::npos);
}

TEST(SortedRuns, PassErrorsOn) {
  SortedRuns<Pair> runs(0, "");
  ASSERT_TRUE(runs.add({1, 1}).ok());
  EXPECT_FALSE(runs.merge([](const Pair&) -> Status { return bad_input("no"); }).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
