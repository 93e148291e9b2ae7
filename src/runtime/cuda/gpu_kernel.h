#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

// The code of a kernel for a GPU: what codegen/gpu writes, what files keep, and what the runtime
// loads. It names no type of a driver.
//
// A kernel has one function per phase, as it has for a CPU (runtime/kernel_abi.h). The parameters
// of a function are 64-bit words. First come the device addresses of the buffers of the TileProgram
// that is_passed() names, then the values of its symbols. Then come the address of the scratch of
// all threads, the maps of the phase, and the trips `begin` and `end`. A map has kMapBytes and is
// passed by value; all else are words.
//
// A block takes the trips begin + b, begin + b + B, ... for block b of B, or its threads do: thread
// t of T threads of all blocks takes begin + t, begin + t + T, ... So every grid gives the right
// answer, and `begin` and `end` are those of a PhaseFn.

namespace hone {

enum class TripOf : uint8_t { thread, block };

// How the engine that copies boxes sees a buffer (the driver's tensor map). Elements outside of the
// buffer are zeros. A box lies in memory of the block row by row, swizzled (TileBuffer::swizzled).
struct GpuMap {
  int64_t buffer = 0;  // its place among the parameters
  DType dtype = DType::f32;
  std::vector<int64_t> dims = {};  // row-major
  std::vector<int64_t> box = {};   // elements of it along each dim
  bool operator==(const GpuMap&) const = default;
};
inline constexpr int64_t kMapBytes = 128, kMapAlignment = 64;

struct GpuPhase {
  std::string symbol;
  TripOf trip_of = TripOf::thread;
  int64_t block_threads = 0;  // at most 1,024
  int64_t shared_bytes = 0;   // of a block, asked for at the launch
  int64_t scratch_bytes = 0;  // of each thread, a multiple of 64; 0: none
  std::vector<GpuMap> maps = {};
  bool operator==(const GpuPhase&) const = default;
};

struct GpuKernel {
  std::string ptx;
  int64_t capability = 0;  // the least that it runs on
  bool is_exact = false;   // and the only one
  int64_t alignment = 1;   // bytes: each buffer begins at a multiple, a power of 2
  std::vector<GpuPhase> phases;
  bool operator==(const GpuKernel&) const = default;
};

// True if a phase waits for what kernels before it wrote: its text says so. Then the runtime may
// start it before these have ended.
inline constexpr std::string_view kWaitsForKernels = "griddepcontrol.wait";
inline bool waits_for_kernels(const GpuKernel& kernel, const GpuPhase& phase) {
  constexpr std::string_view kEntry = ".entry ";
  const std::string_view ptx = kernel.ptx;
  const size_t begin = ptx.find(std::string(kEntry) + phase.symbol + "(");
  const std::string_view text =
      begin == std::string_view::npos ? "" : ptx.substr(begin + kEntry.size());
  return text.substr(0, text.find(kEntry)).find(kWaitsForKernels) != std::string_view::npos;
}

inline bool runs_on(const GpuKernel& kernel, int64_t capability) {
  return kernel.is_exact ? kernel.capability == capability : kernel.capability <= capability;
}

}  // namespace hone
