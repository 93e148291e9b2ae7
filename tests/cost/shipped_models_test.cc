#include "cost/shipped_models.h"

#include <gtest/gtest.h>

#include <set>

#include "cost/fast_model.h"

namespace hone::HONE_FILE {
namespace {

// Features that were changed need models that are trained anew: docs/learned-prices.md.
TEST(ShippedModels, FitThisBuild) {
  size_t bytes = 0;
  std::set<uint64_t> cores;
  EXPECT_FALSE(shipped_models().empty());
  for (const ShippedModel& shipped : shipped_models()) {
    const Result<KernelModel> model = parse_kernel_model(shipped.file, shipped.name);
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    EXPECT_TRUE(cores.insert(model->core).second) << shipped.name << ": another has its core";
    EXPECT_FALSE(model->programs.empty());
    EXPECT_GT(model->reach, 0);
    std::vector<FastModel::Said> said(1);
    FastModel(*model).run(std::vector<Features>(1), said);
    EXPECT_TRUE(std::isfinite(said[0].mean));
    bytes += shipped.file.size();
  }
  EXPECT_LE(bytes, size_t{2} << 20);
}

TEST(ShippedModels, HaveNames) {
  for (const ShippedModel& shipped : shipped_models()) {
    const std::string_view name = shipped.name.substr(0, shipped.name.find(".model"));
    ASSERT_NE(find_shipped_model(name), nullptr) << name;
    EXPECT_EQ(find_shipped_model(name)->file.data(), shipped.file.data());
  }
  EXPECT_EQ(find_shipped_model("missing"), nullptr);
}

TEST(ShippedModels, OfAnUnknownCoreThereIsNone) {
  Target target;
  target.cpu = "a processor that nobody has built";
  const auto starts = [&] {
    std::set<std::string_view> names;
    for (const ShippedModel& start : shipped_starts_for(target)) names.insert(start.name);
    return names;
  };
  EXPECT_TRUE(starts().empty());
  target.isa = Isa::avx2;
  EXPECT_EQ(starts(), (std::set<std::string_view>{"zen3-avx2.model", "zen4-avx2.model"}));
  target.isa = Isa::avx512;
  EXPECT_EQ(starts(), (std::set<std::string_view>{"xeon-avx512.model", "zen4-avx512.model"}));
  const Result<std::optional<KernelModel>> model = shipped_model_of(target);
  ASSERT_TRUE(model.ok());
  EXPECT_FALSE(model->has_value());
}

}  // namespace
}  // namespace hone::HONE_FILE
