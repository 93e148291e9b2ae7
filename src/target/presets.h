#pragma once

#include <span>
#include <string_view>

#include "target/system.h"

// Systems that have a name: "ring:8". Their rates are plausible ones, not those of a machine.

namespace hone {

struct SystemPreset {
  std::string_view name;  // "ring"
  std::string_view form;  // "ring:N"
  std::string_view doc;
};
std::span<const SystemPreset> system_presets();

// True if the text begins like a preset: "NAME:".
bool is_preset(std::string_view text);
// Each device is this target; those of local:N are its parts.
Result<System> preset_system(std::string_view text, const Target& target);

// A part of the machine, one of n: its share of the cores, the memory and the caches. With more
// parts than cores each has one core, and they take turns.
Target part_of(const Target& target, int64_t parts);

}  // namespace hone
