#pragma once

#include "target/target.h"

#include <cstddef>
#include <vector>

// The loops that the probe times. Only loops that the instructions allow are handed out.

namespace hone {

// Repeats a loop of independent multiply-adds in registers, without memory.
struct PeakKernel {
  DType dtype;
  double operations;  // of one repetition
  void (*run)(int64_t repetitions);
};
// The fastest that there is for each type.
std::vector<PeakKernel> peak_kernels(Isa isa, ExtensionSet extensions);

// Reads the bytes once, in order; their number is a multiple of kReadStep.
using ReadKernel = void (*)(const std::byte* data, int64_t bytes);
inline constexpr int64_t kReadStep = 512;
ReadKernel read_kernel(Isa isa);

void pause_core();  // within a loop that waits for another core

}  // namespace hone
