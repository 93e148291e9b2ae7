#include "cost/shipped_models.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/subprocess.h"
#include "cost/learned_cost.h"
#include "learn/models/train_kernel_model.h"
#include "tests/base/share_testing.h"

namespace hone::HONE_FILE {
namespace {

struct Shipped {
  std::string_view model, set;
};
constexpr Shipped kShipped[] = {{"xeon-avx512", "xeon.set"},
                                {"zen3-avx2", "zen3.set"},
                                {"zen4-avx512", "avx512.set"},
                                {"zen4-avx2", "avx2.set"}};

// The committed data that shipped models have learned from. If features, the formula or the
// networks are computed in another way than by the hone that trained, models need training anew
// (docs/learned-prices.md).
TEST(ShippedModels, PriceTheirDataAsWhenTheyWereTrained) {
  HONE_ONE_RUN_OF(5);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  for (const std::string archive : {"xeon.tar.xz", "zen3.tar.xz", "zen4.tar.xz"}) {
    const ProcessResult unpacked =
        run_process("/bin/sh", {"-c", "cd \"$0\" && cmake -E tar xf \"$1\"", folder.path().native(),
                                HONE_TEST_DIR "/../data/" + archive})
            .value();
    ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
  }
  EXPECT_EQ(shipped_models().size(), std::size(kShipped));
  for (const Shipped& each : kShipped) {
    const ShippedModel* shipped = find_shipped_model(each.model);
    ASSERT_NE(shipped, nullptr) << each.model;
    const auto model = std::make_shared<const KernelModel>(
        parse_kernel_model(shipped->file, shipped->name).value());
    const KernelData data = load_kernel_data((folder.path() / each.set).native()).value();
    ASSERT_EQ(data.kernels.size(), model->priced.size()) << each.model;
    ASSERT_TRUE(check_is_for(*model, data.target).ok()) << each.model;
    const LearnedCost cost(data.target, model);
    for (size_t k = 0; k < data.kernels.size(); ++k) {
      if (!tested::in_share(k, 6)) continue;
      EXPECT_NEAR(mean_log_price(data.kernels[k].timed, cost, data.threads), model->priced[k], 1e-4)
          << each.model << ", kernel " << k;
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
