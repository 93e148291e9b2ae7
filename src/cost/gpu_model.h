#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cost/gpu_block_price.h"

namespace hone {

// The demands of a kernel on a GPU, as logarithms to base 2 of 1 + x. The first is 1: what all
// have.
inline constexpr std::string_view kGpuFeatures[] = {"one", "blocks", "warps", "shared", "bytes"};
using GpuFeatures = std::array<double, std::size(kGpuFeatures)>;
// Blocks of the grid, warps and bytes of memory of a block, and bytes of all arrays.
GpuFeatures gpu_features(const KernelFacts& facts, const Schedule& schedule);

// A price of kernels that was learned from times of a GPU, as plain data. It scales each term of
// the analytic price. For each algorithm, factors of features say the logarithm of what that is
// still to be multiplied by. Training makes it (learn/fit_gpu_model.h), and a file keeps it.
//
//   gpu price on "sm_90" of 40 kernels by formulas 6
//   launch = 1.1
//   ...
//   block_tiles = 0.2 0 -0.01 0.3 0
struct GpuModel {
  std::string target;
  int64_t kernels = 0;  // that it has learned from
  GpuTimes scales = {1, 1, 1, 1, 1};
  std::map<std::string, GpuFeatures, std::less<>> factors = {};  // by algorithm

  double seconds(const GpuTimes& analytic, const GpuFeatures& features, Algorithm algorithm) const;
  // The scaled terms are to be multiplied by it.
  double factor(const GpuFeatures& features, Algorithm algorithm) const;
  bool operator==(const GpuModel&) const = default;
};

inline constexpr int64_t kMaxGpuModelText = 1 << 16;
inline constexpr double kMaxGpuScale = 1e3;

std::string print(const GpuModel& model);
// An error says the line. The model is of this target.
Result<GpuModel> parse_gpu_model(std::string_view text, std::string_view target,
                                 std::string_view file);

}  // namespace hone
