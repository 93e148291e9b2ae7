#pragma once

#include <memory>
#include <vector>

#include "compile/compilation.h"
#include "runtime/cuda/cuda_executable.h"

namespace hone {

// Loads code for the GPU of the options, those of the compilation. The graph's sizes are numbers.
// Inputs with these numbers lie on the GPU between runs (CudaLoadOptions::resident).
Result<std::shared_ptr<const CudaExecutable>> resident_code(Compilation& code,
                                                            std::vector<uint32_t> resident,
                                                            const CompileOptions& options);

}  // namespace hone
