#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/device_programs.h"
#include "target/system.h"

namespace hone {

// The memory that a device needs to run its program, in bytes. If several devices run it, it is
// that of the device that needs most.
struct DeviceMemory {
  struct Value {
    std::string name;  // "weight %w"
    int64_t bytes = 0;
  };

  int64_t weights = 0;   // constants, equal ones once
  int64_t ports = 0;     // inputs and outputs
  int64_t arena = 0;     // temporaries, and what kernels have for each thread
  int64_t messages = 0;  // what collectives keep for themselves, and bytes that come early
  std::vector<Value> largest = {};  // a few

  int64_t total() const;  // INT64_MAX at most
};

// The program is verified and of static sizes.
Result<DeviceMemory> device_memory(const Program& program, int32_t devices);

// Proves that the memory of each device of the system suffices. An error says how much is missing,
// and which values are the largest.
Status check_memory(const DevicePrograms& programs, const System& system);

}  // namespace hone
