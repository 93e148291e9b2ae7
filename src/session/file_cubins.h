#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "compile/honec.h"
#include "runtime/cuda/cubins.h"

// Machine code of GPUs for compiled files: who loads them has nothing to compile.

namespace hone {

// NVIDIA's assembler, ptxas.
struct PtxAssembler {
  std::string path;
  int64_t version = 0;  // of CUDA: 12090 is 12.9
};
// An error: it does not run, or does not say its version.
Result<PtxAssembler> ptx_assembler(const std::string& path);

// The driver makes them, of all that the device takes of the programs.
Result<std::vector<PtxCubin>> cubins_by(const CudaDevice& device,
                                        std::span<const HonecProgram> programs,
                                        const CubinStore& store);
// The assembler makes them, of all programs for GPUs. Files of its own come to the folder.
Result<std::vector<PtxCubin>> cubins_by(const PtxAssembler& assembler,
                                        std::span<const HonecProgram> programs,
                                        const std::filesystem::path& scratch);

}  // namespace hone
