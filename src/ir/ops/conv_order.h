#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"

namespace hone {

// Which dims of a conv's operands and result are what. Spatial dims are in the order of their
// digits.
struct ConvOrder {
  int input_batch = 0;
  int input_feature = 1;
  std::vector<int> input_spatial;
  int kernel_output = 0;
  int kernel_input = 1;
  std::vector<int> kernel_spatial;
  int output_batch = 0;
  int output_feature = 1;
  std::vector<int> output_spatial;

  int spatial_rank() const { return static_cast<int>(input_spatial.size()); }
};

inline constexpr int kMaxSpatialRank = 10;  // one digit each

// "b01f_01io->b01f": b batch, f feature, i and o input and output features, digits spatial dims.
// An empty text is channels first, "bf01_oi01->bf01", with `spatial_rank` digits.
Result<ConvOrder> parse_conv_order(std::string_view text, int spatial_rank);

}  // namespace hone
