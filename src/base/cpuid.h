#pragma once

#include <array>
#include <cstdint>

#if defined(__x86_64__)

#include <cpuid.h>

// Reads what the processor says about itself.

namespace hone::cpu {

enum Register : uint8_t { eax, ebx, ecx, edx };
using Registers = std::array<uint32_t, 4>;

// Zeros for a leaf that the processor does not have.
inline Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r = {};
  if (__get_cpuid_max(leaf & 0x80000000, nullptr) < leaf) return r;
  __cpuid_count(leaf, subleaf, r[eax], r[ebx], r[ecx], r[edx]);
  return r;
}

}  // namespace hone::cpu

#endif
