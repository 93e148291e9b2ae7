#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/team.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/gpu_image.h"
#include "runtime/runnable.h"

namespace hone {

struct Script;
class CudaHostKernels;
class MemoryPool;

struct CudaLoadOptions {
  CubinStore cubins = {};
  std::shared_ptr<Team> team = nullptr;  // of kernels on the CPU; null: one of its own
};

// A compiled graph on a GPU. Loading puts its constants there, and allocates all that a run needs;
// runs take turns. A graph without control flow, of which each kernel has code for the GPU, is one
// launch of a CUDA graph. Otherwise the CPU decides as it goes.
//
// An error of the driver says what hone did at that moment. Errors of kernels show when hone waits
// for them. A device that is lost stays so: every later run fails, too.
class CudaExecutable final : public Runnable {
 public:
  // Limit: the GPU has too little free memory, which is known before the first allocation.
  static Result<std::shared_ptr<const CudaExecutable>> load(
      const GpuImage& image, std::shared_ptr<const CudaDevice> device,
      const CudaLoadOptions& options = {});
  ~CudaExecutable() override;  // not while it runs

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override;
  const Executable* single() const override { return nullptr; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

  // A run on arrays in memory of the GPU, of the ports' types, row by row. It is put into the
  // caller's stream behind what is there; null: the default stream. It has ended on return.
  // Outputs overlap neither inputs nor each other. Kernels use the arrays where they lie; what is
  // not aligned to CudaMemory::kAlignment is copied on the GPU.
  Status run_on_device(std::span<const cuda::Address> inputs,
                       std::span<const cuda::Address> outputs, cuda::Stream stream,
                       const RunOptions& options = {}) const;

  // Seconds of a run by the GPU's clock, the mean of some in a row, on the inputs of the last
  // run(). Work that `before` puts into the stream comes before the clock starts.
  Result<double> seconds(int64_t runs,
                         const std::function<Status(cuda::Stream)>& before = {}) const;

  const std::shared_ptr<const CudaDevice>& device() const { return device_; }
  bool is_one_graph() const { return graph_ != nullptr; }
  int64_t device_bytes() const;  // of all that it has allocated, constants with it

 private:
  // A phase of a kernel on the GPU.
  struct Phase {
    cuda::Function function = nullptr;
    GpuPhase phase;
    int64_t alignment = 1;  // of its buffers
    unsigned blocks = 0;
  };
  class Run;

  CudaExecutable();
  Status set_up(const GpuImage& image, const CudaLoadOptions& options);
  Status check_kernels(const GpuImage& image) const;
  Status check_script() const;
  Status load_code(const GpuImage& image, const CubinStore& store);
  Status check_alignment() const;
  Status allocate(const GpuImage& image);
  Status make_graph();
  Status check_inputs(std::span<const Tensor> inputs) const;
  Result<std::vector<Tensor>> run_once(std::span<const Tensor> inputs,
                                       const RunOptions& options) const;
  Status run_in_place(std::span<const cuda::Address> inputs, std::span<const cuda::Address> outputs,
                      cuda::Stream stream, const RunOptions& options) const;
  Status start_and_wait(std::span<const Tensor> inputs, std::span<Tensor> outputs,
                        const RunOptions& options) const;
  Status start(const RunOptions& options) const;
  Result<double> seconds_of(const std::function<Status()>& work, cuda::Stream stream,
                            std::string_view what) const;

  std::string place_;  // for errors
  std::shared_ptr<const CudaDevice> device_;
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  std::unique_ptr<const Script> script_;
  std::vector<std::unique_ptr<CudaModule>> modules_;
  std::vector<Phase> phases_;  // of Script::phases; those on the CPU have no function
  std::vector<std::shared_ptr<const CudaMemory>> constants_;
  std::unique_ptr<CudaMemory> memory_;  // the arena, inputs, outputs and scratch
  std::vector<cuda::Address> bases_;    // of Script::bases
  cuda::Address scratch_ = 0;
  std::unique_ptr<CudaHostKernels> host_;
  cuda::Stream stream_ = nullptr;
  cuda::Event events_[2] = {};
  cuda::GraphRun graph_ = nullptr;
  std::shared_ptr<MemoryPool> output_memory_;

  mutable std::mutex mutex_;  // a run has it
  mutable bool has_inputs_ = false;
};

}  // namespace hone
