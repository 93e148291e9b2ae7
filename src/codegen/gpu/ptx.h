#pragma once

#include <string>

#include "base/error.h"
#include "codegen/mlir.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone::code {

// The text of a module of the llvm dialect for the GPUs that `kernel` names; the least capability
// is
// 80. The block_threads of its phases bound what a launch may ask for.
Result<std::string> ptx(mlir::ModuleOp module, const GpuKernel& kernel);

}  // namespace hone::code
