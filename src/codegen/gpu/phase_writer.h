#pragma once

#include <span>

#include "codegen/mlir.h"
#include "program/tiles/tiles.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone::code {

// Adds the kernel to an empty module: a function per phase, with the parameters that gpu_kernel.h
// names. The program is in its form for threads without vectors (simt_form).
void emit_gpu_kernel(mlir::ModuleOp module, const TileProgram& program,
                     std::span<const GpuPhase> phases, bool has_aligned_buffers);

// The parameters of each of its functions, but for maps.
int64_t parameter_words(const TileProgram& program);

// The scratch memory of a thread in bytes, a multiple of 64. Unsupported if it may be too large.
Result<int64_t> gpu_scratch_bytes(const TileProgram& program);

// The most scratch that a thread has in memory of its own (.local). A larger one lies in the memory
// that the caller gives.
inline constexpr int64_t kMostLocalBytes = 4096;

}  // namespace hone::code
