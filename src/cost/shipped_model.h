#pragma once

#include <span>
#include <string_view>

#include "cost/kernel_model.h"

// The model that comes with hone, of all processors whose data it has learned from: the file of
// src/cost/shipped. docs/learned-prices.md says how it is made.

namespace hone {

struct ShippedModel {
  std::string_view name;
  std::span<const std::byte> file;
};
const ShippedModel& shipped_model_file();

// The model on a target (model_on()). An error: it does not fit this build, which is a fault of
// hone.
Result<KernelModel> shipped_model_on(const Target& target, const Prices* fitted = nullptr,
                                     const ShippedModel& file = shipped_model_file());
// The word for its networks where a file of a model may be named.
inline constexpr std::string_view kShippedModel = "shipped";

}  // namespace hone
