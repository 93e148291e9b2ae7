#include "learn/plan_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/file.h"
#include "tests/base/says_testing.h"
#include "tests/learn/plan_pairs_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

class PlanPairsTest : public testing::Test {
 protected:
  // How the arrays are refused with another one in place of theirs.
  std::string refused_with(std::string_view name, Tensor tensor) const {
    std::vector<NamedTensor> arrays = arrays_of(pairs_);
    for (NamedTensor& each : arrays)
      if (each.name == name) each.tensor = tensor;
    const Result<PlanPairs> read = plan_pairs_of(arrays);
    return read.ok() ? "" : read.error().to_string();
  }
  template <class T>
  static Tensor numbers(DType dtype, std::initializer_list<Dim> dims,
                        const std::vector<T>& values) {
    return Tensor::of(Type::get(dtype, dims), std::span<const T>(values));
  }

  const TempDir folder_ = TempDir::create(testing::TempDir()).value();
  const PlanPairs pairs_ = drawn_plans({.programs = 1, .plans = 2}, 1)[0];
};

TEST_F(PlanPairsTest, AreReadAsTheyWereWritten) {
  const std::filesystem::path file = plan_pairs_path(folder_.path(), "zoo:anet");
  EXPECT_EQ(file.filename(), "zoo_anet.npz");
  PlanPairs pairs = pairs_;
  for (PlanGraph& plan : pairs.plans) plan.seconds = 0.5;
  pairs.is_offered[1] = false;
  pairs.tried = {.seed = 3, .plans = 24, .has_tuned = true};
  ASSERT_TRUE(write_plan_pairs(file, pairs).ok());
  EXPECT_TRUE(read_plan_pairs(file).value() == pairs);
  EXPECT_EQ(read_all_plan_pairs(folder_.path()).value().size(), 1U);
}

TEST_F(PlanPairsTest, NamesAFolderWithoutPlans) {
  EXPECT_THAT(read_all_plan_pairs(folder_.path()).error().to_string(), says("no plans"));
}

TEST_F(PlanPairsTest, RefusesAPairThatIsThereTwice) {
  PlanPairs twice = pairs_;
  twice.pairs.push_back({.first = 1, .second = 0, .ratio = 0.1F});
  EXPECT_THAT(plan_pairs_of(arrays_of(twice)).error().to_string(), says("pair_index ... again"));
}

TEST_F(PlanPairsTest, RefusesDamageByName) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refused_with("none", {}), "");
  EXPECT_THAT(refused_with("pair_ratio", numbers<float>(DType::f32, {1}, {kNaN})),
              says("pair_ratio"));
  EXPECT_THAT(refused_with("pair_ratio", numbers<float>(DType::f32, {2}, {0, 0})),
              says("pair_ratio"));
  EXPECT_THAT(refused_with("pair_noise", numbers<float>(DType::f32, {1}, {-1})),
              says("pair_noise"));
  EXPECT_THAT(refused_with("pair_index", numbers<int64_t>(DType::i64, {1, 2}, {0, 2})),
              says("pair_index"));
  EXPECT_THAT(refused_with("plan_seconds", numbers<float>(DType::f32, {2}, {1, 0})),
              says("plan_seconds"));
  EXPECT_THAT(refused_with("plans", numbers<int64_t>(DType::i64, {1}, {int64_t{1} << 40})),
              says("plans"));
  EXPECT_THAT(refused_with("node_splits", numbers<int64_t>(DType::i64, {3}, {0, 16, 8})),
              says("node_splits"));
  EXPECT_THAT(refused_with("node_splits", numbers<int64_t>(DType::i64, {3}, {0, 0, 32})),
              says("edge ... leaves plan"));
  EXPECT_THAT(refused_with("threads", numbers<int64_t>(DType::i64, {1}, {-1})), says("threads"));
  EXPECT_THAT(refused_with("threads", numbers<int64_t>(DType::i64, {1}, {0})),
              says("threads ... outside of 1.."));
  EXPECT_THAT(refused_with("plans", numbers<int64_t>(DType::i64, {1}, {0})),
              says("plans ... outside of 1.."));
  EXPECT_THAT(
      refused_with("node_share", numbers<float>(DType::f32, {32}, std::vector<float>(32, 0.05F))),
      says("node_share ... 0.8 ... plan 0"));
  EXPECT_THAT(refused_with("pair_index", numbers<int64_t>(DType::i64, {1, 2}, {1, 1})),
              says("pair_index ... against itself"));
  EXPECT_THAT(refused_with("is_offered", numbers<int64_t>(DType::i64, {2}, {1, 2})),
              says("is_offered"));
  EXPECT_THAT(refused_with("tried", numbers<int64_t>(DType::i64, {3}, {1, 2, 2})), says("tried"));
  EXPECT_THAT(refused_with("feature_version", numbers<uint8_t>(DType::u8, {2}, {'4', '2'})),
              says("features of plans are of version"));
  EXPECT_THAT(refused_with("program", numbers<uint8_t>(DType::u8, {1}, {7})), says("program"));
}

}  // namespace
}  // namespace hone::HONE_FILE
