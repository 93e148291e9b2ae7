#include "tune/similar_kernels.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "ir/text.h"
#include "kernel/kernel_body.h"
#include "kernel/kernel_text.h"
#include "kernel/schedule_text.h"
#include "target/fingerprint.h"
#include "tests/program/random_kernels.h"
#include "tests/target/target_testing.h"
#include "tune/kernel_meter.h"

namespace hone::HONE_FILE {
namespace {

KernelFacts product(int64_t rows, int64_t columns) {
  const Graph graph =
      parse_graph(fmt::format(
                      R"(graph @g(%x: f32[{}, 32], %w: f32[32, {}]) -> f32[{}, {}] {{
  %y = dot %x, %w {{lhs_contract = [1], rhs_contract = [0]}}
  return %y
}})",
                      rows, columns, rows, columns))
          .value();
  return KernelFacts(body_of_all(graph));
}

Schedule tiles(int64_t rows) {
  Schedule gemm = plain_nest(2);
  gemm.lanes = {{1, 8}};
  gemm.unroll = {{0, rows}};
  gemm.own = GemmFields();
  return gemm;
}

class SimilarKernelsTest : public testing::Test {
 protected:
  void measure(const KernelFacts& facts, const Schedule& schedule, double seconds,
               const std::string& conditions = MeterConditions{}.text()) {
    const uint64_t hash = kernel_hash(facts.body);
    const Record record = {.kind = "kernel",
                           .subject = hash,
                           .choice = print(schedule),
                           .code = ++code_,
                           .target = fingerprint(target_),
                           .conditions = conditions,
                           .seconds = std::vector<double>(9, seconds),
                           .version = "test"};
    const KnownText text = {"kernel", hash, print(facts.body)};
    ASSERT_TRUE(log_->add({&record, 1}, {&text, 1}).ok());
  }
  std::vector<Schedule> similar_to(const KernelFacts& facts, size_t most) const {
    return SimilarKernels::of(*log_, target_, 1).value().of(facts, most);
  }

  const Target target_ = parse_target(kSampleTarget, "t").value();
  const TempDir folder_ = TempDir::create(std::filesystem::temp_directory_path()).value();
  const std::unique_ptr<Log> log_ = Log::open((folder_.path() / "log.db").native()).value();
  uint64_t code_ = 0;
};

TEST_F(SimilarKernelsTest, TheFastestOfTheNearestKernelComesFirst) {
  measure(product(64, 64), tiles(4), 2e-3);
  measure(product(64, 64), tiles(6), 1e-3);
  measure(product(128, 64), tiles(2), 1e-3);
  const std::vector<Schedule> near = similar_to(product(80, 64), 5);
  ASSERT_EQ(near.size(), 2U);
  EXPECT_TRUE(near[0] == tiles(6));
  EXPECT_TRUE(near[1] == tiles(2));
  EXPECT_EQ(similar_to(product(80, 64), 1).size(), 1U);
}

TEST_F(SimilarKernelsTest, TilesTakeNoMoreThanTheirDims) {
  measure(product(64, 64), tiles(6), 1e-3);
  EXPECT_EQ(fitted_to(tiles(6), product(4, 64)).unroll[0].count, 4);
  for (const Schedule& each : similar_to(product(4, 64), 1))
    EXPECT_TRUE(check_schedule(product(4, 64).body, each, target_).ok());
}

TEST_F(SimilarKernelsTest, OthersSayNothing) {
  measure(product(64, 64), tiles(6), 1e-3, MeterConditions{.threads = 2}.text());
  EXPECT_TRUE(similar_to(product(64, 64), 1).empty());
  const Graph sum = parse_graph(R"(graph @g(%x: f32[64, 64]) -> f32[64, 64] {
  %y = add %x, %x
  return %y
})")
                        .value();
  measure(product(64, 64), tiles(6), 1e-3);
  EXPECT_TRUE(similar_to(KernelFacts(body_of_all(sum)), 1).empty());
  EXPECT_EQ(similar_to(product(64, 64), 1).size(), 1U);
}

}  // namespace
}  // namespace hone::HONE_FILE
