#include "session/known_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "cost/analytic.h"
#include "cost/gpu_cost.h"
#include "cost/learned_cost.h"
#include "cost/model_file.h"
#include "target/gpu_presets.h"
#include "target/presets.h"
#include "tests/cost/kernel_model_testing.h"
#include "tests/cost/plan_model_testing.h"
#include "tests/target/target_testing.h"

namespace hone::HONE_FILE {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

Target target() { return parse_target(kSampleTarget, "t").value(); }

class KnownPricesTest : public testing::Test {
 protected:
  KnownPricesTest() { fs::remove_all(folder_); }
  ~KnownPricesTest() override { fs::remove_all(folder_); }

  std::shared_ptr<const Cost> cost() {
    lines_.clear();
    return KnownPrices(folder_, false).cost(target(), [&](std::string_view line) {
      lines_.emplace_back(line);
    });
  }
  void keep_model(const Target& of) {
    const std::string file = KnownPrices(folder_, false).model_file(target()).value();
    ASSERT_TRUE(write_kernel_model(file, random_model(of, 1)).ok());
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / "hone_known_prices_test";
  std::vector<std::string> lines_;
};

TEST_F(KnownPricesTest, AnEmptyFolderSaysNothing) {
  EXPECT_EQ(cost(), nullptr);
  EXPECT_THAT(lines_, IsEmpty());
}

TEST_F(KnownPricesTest, NoFolderKeepsNothing) {
  const KnownPrices none(std::nullopt, false);
  EXPECT_EQ(none.cost(target(), [](std::string_view) {}), nullptr);
  EXPECT_EQ(none.check_keeps(target()).error().code(), ErrorCode::usage);
  EXPECT_EQ(none.model_file(target()).error().code(), ErrorCode::usage);
}

TEST_F(KnownPricesTest, FittedPricesCountUntilTheyAreDropped) {
  const KnownPrices known(folder_, false);
  Prices prices;
  prices.trip = 5;
  ASSERT_TRUE(known.keep(target(), prices).ok());
  ASSERT_NE(cost(), nullptr);
  EXPECT_EQ(cost()->version(), AnalyticCost(target(), prices).version());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("prices fitted to this target, ")));
  ASSERT_TRUE(known.drop_fitted(target()).ok());
  EXPECT_EQ(cost(), nullptr);
}

TEST_F(KnownPricesTest, AModelCountsBesideFittedPrices) {
  const KnownPrices known(folder_, false);
  Prices prices;
  prices.trip = 5;
  ASSERT_TRUE(known.keep(target(), prices).ok());
  keep_model(target());
  const std::shared_ptr<const Cost> both = cost();
  ASSERT_EQ(both->learned(), both.get());
  EXPECT_EQ(both->baseline()->version(), AnalyticCost(target(), prices).version());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("prices fitted"), StartsWith("prices learned")));
}

// A model of whole plans counts beside the prices that it has learned by.
TEST_F(KnownPricesTest, AModelOfPlansCountsIfItGains) {
  const KnownPrices known(folder_, false);
  ASSERT_TRUE(known.check_keeps(target()).ok());
  keep_model(target());
  const std::shared_ptr<const Cost> alone = cost();
  EXPECT_EQ(alone->learned()->plans(), nullptr);
  const std::string file = known.plans_file(target()).value();
  PlanModel model = plan_model_by(target(), *alone, 0, 1);
  ASSERT_TRUE(write_plan_model(file, model).ok());
  const std::shared_ptr<const Cost> both = cost();
  ASSERT_NE(both->learned()->plans(), nullptr);
  EXPECT_TRUE(*both->learned()->plans() == model);
  EXPECT_NE(both->version(), alone->version());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("prices learned"), HasSubstr("ranks the best few")));

  model.lead = kNoPlanLead;  // no choice of it gained
  ASSERT_TRUE(write_plan_model(file, model).ok());
  EXPECT_EQ(cost()->version(), alone->version());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("prices learned")));

  model.prices = 1;
  ASSERT_TRUE(write_plan_model(file, model).ok());
  EXPECT_EQ(cost()->version(), alone->version());
  EXPECT_THAT(lines_[1], StartsWith("the model of plans is not used: "));
  EXPECT_THAT(lines_[1], HasSubstr("other prices"));
  ASSERT_TRUE(write_file_atomic(file, "no model").ok());
  EXPECT_EQ(cost()->version(), alone->version());
  EXPECT_THAT(lines_[1], HasSubstr(file));
}

// One that comes with hone, and was adapted here, may be of another number of cores.
TEST_F(KnownPricesTest, AModelThatIsKeptIsOfTheTarget) {
  Target other = target();
  other.cores = 3;
  ASSERT_TRUE(KnownPrices(folder_, false).keep(target(), random_model(other, 1)).ok());
  const std::shared_ptr<const Cost> kept = cost();
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->learned(), kept.get());
  EXPECT_EQ(kept->learned()->model().members, random_model(other, 1).members);
}

// A model of several that has not learned from the processor takes what was measured there.
TEST_F(KnownPricesTest, AModelOfSeveralProcessorsTakesFittedPrices) {
  const std::string file = (folder_ / "all.model").native();
  const KnownPrices known(folder_, false);
  Prices prices;
  prices.trip = 5;
  ASSERT_TRUE(known.keep(target(), prices).ok());
  ASSERT_TRUE(write_kernel_model(file, random_model_of_several(target(), 1)).ok());
  const auto by = [&] {
    return known
        .cost_by(file, target(), std::make_shared<AnalyticCost>(target()), [](std::string_view) {})
        .value();
  };
  EXPECT_EQ(by()->learned()->model().prices, prices);
  ASSERT_TRUE(known.drop_fitted(target()).ok());
  EXPECT_EQ(by()->learned()->model().prices, random_model_of_several(target(), 1).prices);
}

// A file in the place of the model that comes with hone.
class ShippedPricesTest : public KnownPricesTest {
 protected:
  std::shared_ptr<const Cost> cost_with(const KernelModel& model, const Target& on) {
    const std::string file = (folder_ / "shipped.model").native();
    EXPECT_TRUE(KnownPrices(folder_, true).check_keeps(target()).ok());
    EXPECT_TRUE(write_kernel_model(file, model).ok());
    bytes_ = read_file(file, kMaxModelBytes).value();
    const ShippedModel shipped = {"shipped.model", std::as_bytes(std::span(bytes_))};
    return KnownPrices(folder_, true, kUsualSureness, shipped).cost(on, [](std::string_view) {});
  }

 private:
  std::string bytes_;
};

TEST_F(ShippedPricesTest, CommonNetworksCountWhereTheirChoicesGained) {
  KernelModel model = random_model_of_several(target(), 1);
  const std::shared_ptr<const Cost> gaining = cost_with(model, target());
  ASSERT_NE(gaining, nullptr);
  EXPECT_EQ(gaining->learned(), gaining.get());
  model.lead = kNoLead;  // no choice of theirs gained on processors that they had not seen
  EXPECT_EQ(cost_with(model, target()), nullptr);
  Target second = target();  // which has networks of its own
  second.cpu = "second";
  model.processors.targets[1].kernels = 100;
  model.kernels.resize(100);
  model.priced.resize(100);
  EXPECT_NE(cost_with(model, second), nullptr);
  model.processors.fitted.lead = 0.05;  // by coefficients of the machine they did
  ASSERT_TRUE(KnownPrices(folder_, true).keep(target(), Prices()).ok());
  EXPECT_EQ(cost_with(model, target())->learned()->model().lead, 0.05);
}

TEST_F(ShippedPricesTest, NoModelOfCpusPricesAGpu) {
  const Target gpu = *preset_gpu("sm_90");
  const KernelModel model = random_model_of_several(target(), 1);
  ASSERT_NE(cost_with(model, target()), nullptr);
  EXPECT_EQ(cost_with(model, gpu), nullptr);
  // Nor does one that somebody names.
  const std::string file = (folder_ / "shipped.model").native();
  const auto by = [&](const std::string& word) {
    return KnownPrices(folder_, true).cost_by(word, gpu, analytic_cost(gpu), [](std::string_view) {
    });
  };
  EXPECT_THAT(by(file).error().to_string(), HasSubstr("is a GPU"));
  EXPECT_THAT(by("learned").error().to_string(), HasSubstr("no model of the target"));
  // Nor does one that lies where that of the GPU would.
  const KnownPrices known(folder_, true);
  const std::string misplaced = known.model_file(gpu).value();
  ASSERT_TRUE(write_kernel_model(misplaced, random_model(target(), 1)).ok());
  EXPECT_THAT(known.model(gpu).error().to_string(), HasSubstr("is a GPU"));
  EXPECT_EQ(known.cost(gpu, [](std::string_view) {}), nullptr);
  // Nor do coefficients of CPUs.
  ASSERT_TRUE(known.keep(gpu, Prices()).ok());
  EXPECT_EQ(known.cost(gpu, [](std::string_view) {}), nullptr);
}

// They were measured between two devices, and are those of any number.
TEST_F(KnownPricesTest, LinksThatWereKeptAreThoseOfThisMachine) {
  const KnownPrices known(folder_, false);
  const auto system = [&](int64_t devices) {
    lines_.clear();
    return known
        .system(devices, target(), [&](std::string_view line) { lines_.emplace_back(line); })
        .value();
  };
  EXPECT_EQ(system(3), preset_system("local:3", target()).value());
  EXPECT_THAT(lines_, IsEmpty());

  System measured = preset_system("local:2", target()).value();
  measured.links[0].latency = 0.25;
  ASSERT_TRUE(known.keep_links(target(), measured).ok());
  EXPECT_EQ(system(3).device_count(), 3);
  EXPECT_EQ(system(3).links, measured.links);
  EXPECT_EQ(system(1).links, measured.links);
  EXPECT_THAT(lines_, ElementsAre(StartsWith("links measured on this machine, ")));

  // Links that do not join three devices, and a file that is none.
  measured.links = {{.name = "cable", .over = "", .from = 0, .to = 1, .bytes_per_second = 1e9}};
  ASSERT_TRUE(known.keep_links(target(), measured).ok());
  EXPECT_EQ(system(3), preset_system("local:3", target()).value());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("measured links are not used: ")));
  ASSERT_TRUE(write_file_atomic(known.links_file(target()).value(), "no system").ok());
  EXPECT_EQ(system(2), preset_system("local:2", target()).value());
  EXPECT_THAT(lines_, ElementsAre(StartsWith("measured links are not used: ")));
}

TEST_F(KnownPricesTest, WhatCannotBeUsedIsToldAndLeftOut) {
  ASSERT_TRUE(KnownPrices(folder_, false).check_keeps(target()).ok());
  Target other = target();
  other.cpu = "another one";
  keep_model(other);
  EXPECT_EQ(cost(), nullptr);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("learned prices are not used: ")));
  EXPECT_FALSE(KnownPrices(folder_, true).model(target()).ok());
}

}  // namespace
}  // namespace hone::HONE_FILE
