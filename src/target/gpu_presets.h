#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "target/target.h"

// GPUs that have a name: code and prices for them are made on any machine. Their rates are those of
// one card of the sort, from its data sheet and from measurements of such cards.

namespace hone {

struct GpuPreset {
  std::string_view name;  // "sm_90"
  std::string_view card;  // whose rates they are
};
std::span<const GpuPreset> gpu_presets();

// None: no preset has this name.
std::optional<Target> preset_gpu(std::string_view name);
// A GPU of this capability whose SMs do as much in a cycle as those of the preset that is most like
// it. `clock`: in Hz; 0: that of the preset.
Target gpu_like_preset(int64_t capability, double clock = 0);

}  // namespace hone
