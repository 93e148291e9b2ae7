#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/safetensors.h"

// Files of the weights of one network: safetensors with known names and dims, a format and a
// checksum.

namespace hone {

using WeightShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

struct WeightsFormat {
  std::string_view name;     // of the format, with a version
  std::string_view what;     // "policy of placement", for errors
  std::string_view made_by;  // the command that makes such a file
  WeightShapes shapes;       // of the weights, in order
};

// The numbers of each weight, in the order of the format. An error says which weight is missing,
// unknown, of other dims or not a number.
Result<std::vector<std::vector<float>>> numbers_of(std::span<const NamedTensor> weights,
                                                   const WeightsFormat& format);
std::string checksum_of(std::span<const NamedTensor> weights);

// The file's entries, and its weights in order. Damaged files, and those of something else, are
// refused.
Result<Safetensors> parse_weights(std::span<const std::byte> file, std::string_view where,
                                  const WeightsFormat& format);
// Such a file.
Result<Safetensors> weights_file(std::span<const NamedTensor> weights, const WeightsFormat& format);

}  // namespace hone
