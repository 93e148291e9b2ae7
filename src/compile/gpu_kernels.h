#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/kernels.h"
#include "program/instantiate.h"
#include "program/program.h"
#include "runtime/cuda/gpu_kernel.h"

namespace hone {

// Code of kernels for a GPU. A kernel that has none is compiled for this machine's CPU.
struct GpuCode {
  std::vector<KernelCode> code;     // by kernel: without an object, if it is for the GPU
  std::vector<GpuKernel> gpu;       // by kernel: without phases, if it is for the CPU
  std::vector<std::string> on_cpu;  // by kernel: why it is for the CPU; empty: it is not
};

// Compiles the kernels of a program side by side for a target that is a GPU.
Result<GpuCode> compile_gpu_kernels(const Program& program, const Target& target, ThreadPool& pool,
                                    const KernelOptions& options);

inline constexpr std::string_view kGpuSymbol = "kernel";  // of compile_for_gpu()

// The program with the kernels as the GPU runs them: without vectors, and each trip a thread's. In
// one that is for the CPU a block is a thread.
Program as_on_gpu(Program program, std::span<const GpuKernel> kernels);

// The image of a program for these sizes; `on_gpu` is that of GpuCode, and empty for a CPU.
Result<Image> image_of(const Program& program, std::span<const GpuKernel> on_gpu,
                       const Bindings& sizes, std::span<const KernelCode> code);

}  // namespace hone
