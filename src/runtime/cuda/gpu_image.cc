#include "runtime/cuda/gpu_image.h"

#include <bit>

#include "runtime/cuda/device.h"
#include "runtime/kernel_abi.h"

namespace hone {

namespace {

constexpr int64_t kMaxBlockThreads = 1024;

}  // namespace

Status check_block(const GpuPhase& phase, int64_t most_shared) {
  if (phase.shared_bytes > most_shared)
    return unsupported("a block of it has {} bytes of shared memory, and the GPU has {} for one",
                       phase.shared_bytes, most_shared)
        .with_hint(kCpuRunsIt);
  if (phase.block_threads >= 1 && phase.block_threads <= kMaxBlockThreads &&
      phase.shared_bytes >= 0 && phase.scratch_bytes >= 0 &&
      phase.scratch_bytes % kBufferAlignment == 0 && phase.scratch_bytes <= kMaxGpuScratch)
    return {};
  return bad_input(
      "blocks of {} threads with {} bytes of shared memory, and {} of scratch a thread, do not fit "
      "the GPU",
      phase.block_threads, phase.shared_bytes, phase.scratch_bytes);
}

Status check_code(const GpuKernel& kernel) {
  if (kernel.ptx.empty()) return bad_input("its PTX is empty");
  if (const size_t zero = kernel.ptx.find('\0'); zero != std::string::npos)
    return bad_input("its PTX ends at byte {} of {}, which is 0", zero, kernel.ptx.size());
  if (kernel.alignment < 1 || kernel.alignment > CudaMemory::kAlignment ||
      !std::has_single_bit(static_cast<uint64_t>(kernel.alignment)))
    return bad_input(
               "its buffers have to begin at multiples of {} bytes; of a power of 2 up to {} "
               "they can",
               kernel.alignment, CudaMemory::kAlignment)
        .with_hint("'hone compile' makes the file again");
  for (const GpuPhase& phase : kernel.phases)
    if (phase.symbol.find('\0') != std::string::npos)
      return bad_input("the name of a function has a byte that is 0");
  return {};
}

}  // namespace hone
