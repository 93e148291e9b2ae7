#include "cost/shipped_model.h"

#include <gtest/gtest.h>

#include <set>

#include "cost/fast_model.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

KernelModel shipped() {
  const ShippedModel& file = shipped_model_file();
  return parse_kernel_model(file.file, file.name).value();
}

// Features that were changed need a model that is trained anew: docs/learned-prices.md.
TEST(ShippedModels, FitThisBuild) {
  const KernelModel model = shipped();
  ASSERT_TRUE(model.is_of_several());
  EXPECT_FALSE(model.programs.empty());
  std::vector<FastModel::Said> said(1);
  std::set<uint64_t> cores;
  for (const ModelTarget& each : model.processors.targets) {
    EXPECT_TRUE(cores.insert(each.core).second) << each.name << ": another has its core";
    EXPECT_GT(each.trust.reach, 0) << each.name;
    KernelModel its = model;
    its.members = each.members;
    FastModel(its).run(std::vector<Features>(1), said);
    EXPECT_TRUE(std::isfinite(said[0].mean)) << each.name;
  }
  EXPECT_LE(shipped_model_file().file.size(), size_t{2} << 20);
}

// A processor that it has learned from has networks of its own, which take no longer than those of
// a model of this one alone.
TEST(ShippedModels, KnowProcessorsByNetworksOfTheirOwn) {
  const KernelModel model = shipped();
  for (const ModelTarget& each : model.processors.targets) {
    EXPECT_GT(each.kernels, 30) << each.name;
    EXPECT_EQ(each.members.size(), 5U) << each.name;
    EXPECT_NE(each.members[0], model.members[0]) << each.name;
  }
}

TEST(ShippedModels, AreForAProcessorThatTheyHaveNotSeen) {
  Target target = parse_target(kSampleTarget, "t").value();
  target.cpu = "a processor that nobody has built";
  const KernelModel model = shipped_model_on(target).value();
  EXPECT_TRUE(check_is_for(model, target).ok());
  EXPECT_FALSE(model.knows_processor());
  EXPECT_TRUE(model.prices == Prices());
  Prices fitted;
  fitted.load = 1.5;
  EXPECT_TRUE(shipped_model_on(target, &fitted).value().prices == fitted);
}

}  // namespace
}  // namespace hone::HONE_FILE
