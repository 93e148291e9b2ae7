#include "bench/prices/xgboost.h"

// In place of xgboost.cc where XGBoost is not installed.

namespace hone::bench {

Status check_xgboost() {
  return unsupported(
      "XGBoost is not installed; on Debian: apt-get install libxgboost-dev, then cmake --preset "
      "release");
}

Result<TreeResiduals> train_xgboost(std::span<const DescribedKernel> /*kernels*/,
                                    const XgboostOptions& /*options*/) {
  return check_xgboost().error();
}

}  // namespace hone::bench
