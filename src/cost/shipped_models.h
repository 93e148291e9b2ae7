#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "cost/kernel_model.h"

// Models that come with hone, of the processors that they were trained on: the files of
// src/cost/shipped. docs/learned-prices.md says how they are made.

namespace hone {

struct ShippedModel {
  std::string_view name;  // of the file: PROCESSOR-INSTRUCTIONS.model
  std::span<const std::byte> file;
};
std::span<const ShippedModel> shipped_models();

// The model by the name of its file without the ending; null: there is none.
const ShippedModel* find_shipped_model(std::string_view name);

// Models whose networks may be a start for those of the target: the one of its kind of core, else
// all of its level of instructions.
std::vector<ShippedModel> shipped_starts_for(const Target& target);

// The model of the target's kind of core, of which there may be any number; none: there is none.
// An error: the model does not fit this build, which is a fault of hone.
Result<std::optional<KernelModel>> shipped_model_of(const Target& target);

}  // namespace hone
