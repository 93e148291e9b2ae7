#pragma once

#include <cstdint>
#include <vector>

#include "base/instructions.h"

// Tells which instructions code needs, and how code asks a processor for them.

namespace hone {

// The needs of code whose parts need `a` and `b`.
Instructions both(const Instructions& a, const Instructions& b);

// A bit of CPUID: register 0 is eax, 1 ebx, 2 ecx, 3 edx.
struct CpuBit {
  uint32_t leaf = 0;
  uint32_t subleaf = 0;
  int where = 0;
  int bit = 0;
};
// The questions that host_instructions() asks a processor and its operating system, for code that
// has to ask by itself.
struct CpuNeeds {
  std::vector<CpuBit> bits;
  uint64_t saved_registers = 0;  // bits of XCR0
  bool tiles = false;            // Linux is asked for them
};
CpuNeeds cpu_needs(const Instructions& instructions);

}  // namespace hone
