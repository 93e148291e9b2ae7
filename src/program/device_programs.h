#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"

namespace hone {

// The programs of several devices: one for all of them, or one for each.
struct DevicePrograms {
  std::vector<Program> programs;
  // The program of each device. None: the only program is for all devices, however many they are.
  std::vector<uint32_t> of_device = {};

  const Program& of(int32_t device) const {
    return programs[of_device.empty() ? 0 : of_device[static_cast<size_t>(device)]];
  }
  // The number of devices that it is for, if it says so.
  std::optional<int32_t> devices() const {
    if (of_device.empty()) return std::nullopt;
    return static_cast<int32_t>(of_device.size());
  }
};

// Proves what verify() proves of each program. Programs for single devices exchange messages with
// others only, and collectives and messages of theirs stand in no branch and no while loop.
Status verify(const DevicePrograms& programs);

// The programs one after another, each with the devices that run it: "program @first on 0, 2 {".
// A program for all devices is printed as it is alone. docs/formats/program-text.md has the rules.
std::string print(const DevicePrograms& programs, const PrintOptions& options = {});
// Each device from 0 on has one program.
Result<DevicePrograms> parse_device_programs(std::string_view text,
                                             const ParseOptions& options = {});

}  // namespace hone
