#pragma once

#include <string_view>

#include "base/error.h"
#include "program/tiles/tiles.h"
#include "runtime/cuda/gpu_kernel.h"

// Compiles TilePrograms to PTX, by way of MLIR and LLVM's NVPTX. It needs neither a GPU nor a
// driver. Other folders include this header alone.

namespace hone {

// PTX of the kernel, for GPUs of this capability and later ones. Verified programs only; `symbol`
// is the prefix of the names of functions.
Result<GpuKernel> compile_for_gpu(const TileProgram& program, int64_t capability,
                                  std::string_view symbol);

}  // namespace hone
