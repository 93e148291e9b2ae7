#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/cuda/gpu_kernel.h"
#include "runtime/kernel_abi.h"

// A library with the functions of NVIDIA's driver, for tests. Memory of its GPUs is memory of the
// process, between pages that nobody may touch. Each GPU has a context, memory, streams and code of
// its own, and a call that takes those of another one is a fault. A kernel is known by the hash of
// its PTX. It runs a function that the test gives for it, such as the code of its TileProgram for
// the CPU. Streams run as late as they may, in an order drawn from a seed. Faults of the program
// are written down.

namespace hone::fake {

struct Gpu {
  int devices = 1;
  int version = 12040;
  int capability = 90;
  int sms = 132;
  int64_t memory = int64_t{1} << 30;
  int l2 = 50 << 20;
  uint64_t seed = 0;
  // The call of this number, counted from 1, fails with this code; 0: none. After a code of 700 or
  // more the context is lost, and all later calls fail with it.
  int64_t failing_call = 0;
  int failing_code = 0;
  int64_t tick = 1;  // microseconds: its clock tells multiples of them
  // After this many launches all others take twice as long.
  int64_t slow_after = std::numeric_limits<int64_t>::max();
  // A run of the compiler waits for half a second until this many are under way at once.
  int links_together = 1;
  bool refuses_conditions = false;  // a graph that has them is not instantiated
  bool refuses_cubins = false;      // until its compiler has run
  bool refuses_peers = false;       // copies from GPU to GPU
};

// The work of the library since it was set up.
struct Counts {
  int64_t calls = 0;
  int64_t launches = 0;    // of kernels, that have run
  int64_t links = 0;       // runs of the compiler
  int64_t most_links = 0;  // at once
  int64_t texts = 0;       // of PTX, that were loaded as they are
  // Bytes that were copied: from memory of the GPU to memory of the GPU, to it and from it.
  int64_t copied = 0, copied_to = 0, copied_from = 0;
  int64_t copied_to_peers = 0;  // from one GPU to another
  int64_t reached = 0;          // GPUs that others were let reach
  int64_t of_null_stream = 0;   // uses of it
  int64_t allocations = 0;
  int64_t graphs = 0;     // that were instantiated
  int64_t early = 0;      // launches of kernels that may begin before the one ahead has ended
  int64_t decisions = 0;  // about conditions of graphs, by the GPU
};

// The fate of a kernel, beside its results.
struct Fate {
  int fails = 0;                // the code that its launches end with; 0: they are good
  bool is_refused = false;      // by the driver's compiler
  int64_t* launches = nullptr;  // counts those that have run
};

// One function of a kernel (runtime/cuda/gpu_kernel.h).
struct Backing {
  PhaseFn function = nullptr;
  int buffers = 0;
  int symbols = 0;
  int64_t cpu_scratch_bytes = 0;     // that the function wants
  int64_t thread_scratch_bytes = 0;  // GpuPhase::scratch_bytes
  int64_t works = 1;                 // microseconds that a launch takes
  int64_t trips = 0;                 // each launch has all of these; 0: those that it says
  std::vector<GpuMap> maps = {};     // GpuPhase::maps; each launch is held against them
  Fate fate = {};
};

// The functions of the library beside those of the driver, by their names there.
using Reset = void (*)(const Gpu* gpu);  // "fake_cuda_reset": forgets kernels, faults and calls
// "fake_cuda_register". An empty PTX stands for each that is not registered, and a launch of one of
// these takes one to four times as long, as its hash says.
// False: the caller's Backing has other bytes, so it is not this one.
using Register = bool (*)(const char* ptx, const char* function, const Backing* backing,
                          int64_t bytes);
// "fake_cuda_fail": the call behind this number of good ones fails with this code
// (Gpu::failing_call).
using Fail = void (*)(int64_t good, int code);
using Count = int64_t (*)();  // "fake_cuda_calls"; "fake_cuda_live": what was not given back
// "fake_cuda_counts". False: the caller's Counts has other bytes.
using Counted = bool (*)(Counts* counts, int64_t bytes);
using Faults = const char* (*)();  // "fake_cuda_faults"; empty: there are none

}  // namespace hone::fake
