#pragma once

#include <string_view>

#include "base/error.h"
#include "codegen/codegen.h"
#include "program/tiles/tiles.h"
#include "runtime/cuda/gpu_kernel.h"

// Compiles TilePrograms to PTX, by way of MLIR and LLVM's NVPTX. It needs neither a GPU nor a
// driver. Other folders include this header alone.

namespace hone {

inline constexpr int64_t kGpuBufferAlignment = 16;  // bytes: what an access takes at most

// PTX of the kernel, for GPUs of this capability and later ones; if warpgroups multiply, for it
// alone. Verified programs only; `symbol` is the prefix of the names of functions. Trips are those
// of the phases of simt_form(program) (program/tiles/simt.h), of which trips_of() tells how many
// there are. Buffers begin at a multiple of 16 bytes; else at any element. Then no access is wider,
// and copies of pieces and boxes are refused. Code for sm_90 waits for kernels before it
// (program/tiles/waiting.h). Unsupported: a kernel that a CPU alone can run.
Result<GpuKernel> compile_for_gpu(const TileProgram& program, int64_t capability,
                                  std::string_view symbol, bool has_aligned_buffers = true);

// The second oracle, which needs no GPU: an object for a CPU. Its functions are PhaseFns by the
// names of the kernel's phases, with the same trips. They need the scratch_layout() of
// serial_form(simt_form(program)) (program/tiles/serial.h).
Result<std::string> compile_like_gpu(const TileProgram& program, const Target& cpu,
                                     std::string_view symbol);

}  // namespace hone
