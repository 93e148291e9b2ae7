#pragma once

#include <span>
#include <string>

#include "base/error.h"
#include "codegen/mlir.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone::code {

// The text of a module of the llvm dialect for GPUs of this capability, which is 80 at least. The
// phases' block_threads bound what a launch may ask for.
Result<std::string> ptx(mlir::ModuleOp module, int64_t capability,
                        std::span<const GpuPhase> phases);

}  // namespace hone::code
