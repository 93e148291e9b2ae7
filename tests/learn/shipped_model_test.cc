#include "cost/shipped_model.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/subprocess.h"
#include "cost/learned_cost.h"
#include "learn/models/train_kernel_model.h"
#include "tests/base/share_testing.h"

namespace hone::HONE_FILE {
namespace {

// In the order in which the model has learned from them.
constexpr std::string_view kSets[] = {"avx512.set",        "avx2.set",        "zen3.set",
                                      "xeon.set",          "zen5-avx512.set", "zen5-avx2.set",
                                      "zen5-x86-64-v2.set"};

// The committed data that the shipped model has learned from. If features, the formula or the
// networks are computed in another way than by the hone that trained, it needs training anew
// (docs/learned-prices.md).
TEST(ShippedModels, PriceTheirDataAsWhenTheyWereTrained) {
  HONE_ONE_RUN_OF(5);
  const TempDir folder = TempDir::create(testing::TempDir()).value();
  for (const std::string archive : {"zen4.tar.xz", "zen3.tar.xz", "xeon.tar.xz", "zen5.tar.xz"}) {
    const ProcessResult unpacked =
        run_process("/bin/sh", {"-c", "cd \"$0\" && cmake -E tar xf \"$1\"", folder.path().native(),
                                HONE_TEST_DIR "/../data/" + archive})
            .value();
    ASSERT_EQ(unpacked.exit_code, 0) << unpacked.err;
  }
  const ShippedModel& file = shipped_model_file();
  const KernelModel shipped = parse_kernel_model(file.file, file.name).value();
  ASSERT_EQ(shipped.processors.targets.size(), std::size(kSets));
  size_t at = 0;
  for (size_t s = 0; s < std::size(kSets); ++s) {
    const KernelData data = load_kernel_data((folder.path() / kSets[s]).native()).value();
    EXPECT_EQ(shipped.find_target(data.target), &shipped.processors.targets[s]) << kSets[s];
    ASSERT_EQ(std::ssize(data.kernels), shipped.processors.targets[s].kernels) << kSets[s];
    // A few kernels are not enough to know a processor by.
    EXPECT_EQ(shipped_model_on(data.target, nullptr)->knows_processor(), data.kernels.size() >= 100)
        << kSets[s];
    const LearnedCost cost(
        data.target, std::make_shared<const KernelModel>(model_on(shipped, data.target).value()));
    for (size_t k = 0; k < data.kernels.size(); ++k, ++at) {
      if (!tested::in_share(k, 6)) continue;
      EXPECT_NEAR(mean_log_price(data.kernels[k].timed, cost, data.threads), shipped.priced[at],
                  1e-4)
          << kSets[s] << ", kernel " << k;
    }
  }
}

}  // namespace
}  // namespace hone::HONE_FILE
