#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/team.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/cuda_arrays.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/gpu_image.h"
#include "runtime/runnable.h"
#include "tensor/memory_pool.h"
#include "transport/open_collectives.h"

namespace hone {

struct Script;
class CudaHostKernels;
class GraphConditions;

struct CudaLoadOptions {
  CubinStore cubins = {};
  std::shared_ptr<Team> team = nullptr;  // of kernels on the CPU; null: one of its own
  // Inputs that lie on the GPU between runs, in increasing order: run_beside() gets them. No memory
  // is allocated for them, nor for outputs that they are donated to.
  std::vector<uint32_t> resident = {};
  // The transport of its runs takes addresses of the GPU, too (gpu_moves.h).
  bool has_gpu_moves = false;
};

// A compiled graph on a GPU. Loading puts its constants there, and allocates all that a run needs;
// runs take turns. A graph of which each kernel has code for the GPU is one launch of a CUDA graph.
// Loops of known counts are unrolled in it, if they have no more than kMostSteps together. The GPU
// decides in branches and other loops, if its driver has conditional nodes. Otherwise the CPU
// decides as it goes, also where a driver has such nodes and refuses them. A CUDA graph has fixed
// addresses, so each set of resident inputs has its own; the last ones are kept.
//
// A message goes from where it lies to where it belongs, if the transport moves it so. Data
// of a collective crosses memory of the machine, which the CPU copies it to and from.
//
// An error of the driver says what hone did at that moment. Errors of kernels show when hone waits
// for them. A device that is lost stays so: every later run fails, too.
class CudaExecutable final : public Runnable {
 public:
  static constexpr int64_t kMostSteps = 4096;  // phases and copies of a CUDA graph

  // Limit: the GPU has too little free memory, which is known before kernels are compiled.
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

  // A run beside inputs that lie on the GPU (CudaLoadOptions::resident), in their order. `inputs`
  // are the others. An output lies in the array that is donated to it. The result has the rest.
  // After an error arrays have the contents that the run had come to; if it was cancelled before it
  // began, they are as they were.
  Result<std::vector<Tensor>> run_beside(std::span<const Tensor> inputs,
                                         std::span<const CudaArray> resident,
                                         const RunOptions& options = {}) const;

  // A run on memory of the machine, of the ports' sizes.
  Status run_between(std::span<const void* const> inputs, std::span<void* const> outputs,
                     const RunOptions& options = {}) const;

  // A run on arrays in memory of the GPU, of the ports' types, row by row. It is put into the
  // caller's stream behind what is there; null: the default stream. It has ended on return.
  // An output may be all of its donor. An error if an array has no address, or if an output
  // overlaps another array. Kernels use the arrays where they lie; what is not aligned to
  // CudaMemory::kAlignment is copied on the GPU. Who comes with the same addresses again, as a
  // decoder does, gets a CUDA graph.
  Status run_on_device(std::span<const cuda::Address> inputs,
                       std::span<const cuda::Address> outputs, cuda::Stream stream,
                       const RunOptions& options = {}) const;

  // Seconds of a run by the GPU's clock, the mean of some in a row, on the inputs of the last
  // run(). Work that `before` puts into the stream comes before the clock starts.
  Result<double> seconds(int64_t runs,
                         const std::function<Status(cuda::Stream)>& before = {}) const;

  // Indexed by output: its donor, the input in whose memory it may lie.
  std::span<const std::optional<uint32_t>> donors() const;

  const std::shared_ptr<const CudaDevice>& device() const { return device_; }
  bool is_one_graph() const { return is_one_graph_; }  // until the driver refuses it
  int64_t device_bytes() const;  // of all that it has allocated, constants with it

 private:
  // How a phase is launched.
  struct Grid {
    unsigned blocks = 0, threads = 0;
    int64_t scratch_bytes = 0;  // of all threads
  };
  // A phase of a kernel on the GPU.
  struct Phase {
    cuda::Function function = nullptr;
    GpuPhase phase;
    int64_t alignment = 1;  // of its buffers
    bool waits = false;     // by itself, for kernels before it
    Grid grid;
  };
  // Offsets in one piece of memory.
  struct MemoryLayout {
    std::vector<int64_t> bases;  // of Script::bases; 0 for constants, which lie elsewhere
    int64_t scratch = 0;
    int64_t bytes = 0;
  };
  // Memory of the machine that a collective or a message of the script reads and writes.
  struct Exchanged {
    AlignedBytes from, to;
    cuda::Address written = 0;  // where `to` belongs
  };
  class Run;
  using Addresses = std::vector<cuda::Address>;
  // The launch of a graph, for some addresses of Script::bases.
  struct BoundGraph {
    Addresses bases;
    cuda::GraphRun run = nullptr;
  };

  CudaExecutable();
  Status set_up(const GpuImage& image, const CudaLoadOptions& options);
  Status check_kernels(const GpuImage& image) const;
  void find_residents(std::span<const uint32_t> resident);
  bool fits_a_graph() const;
  static Grid grid_of(const GpuPhase& phase, int64_t trips);
  void plan_launches(const GpuImage& image);
  Result<MemoryLayout> lay_out(const GpuImage& image) const;
  bool is_elsewhere(size_t base) const;
  std::string what_would_fit(int64_t bytes, int64_t free) const;
  Status load_code(const GpuImage& image, const CubinStore& store);
  Result<std::unique_ptr<CudaModule>> load_module(const std::string& cubin, const PtxText& ptx,
                                                  const CubinStore& store) const;
  Status check_alignment() const;
  Status check_maps() const;
  Status allocate(const GpuImage& image, const MemoryLayout& layout);
  Status make_conditions(const CubinStore& store);
  // Null: the CPU decides from now on, since the driver refuses conditions.
  Result<cuda::GraphRun> graph_of(const Addresses& bases) const;
  Result<cuda::GraphRun> made_graph(const Addresses& bases) const;
  Status check_inputs(std::span<const Tensor> inputs) const;
  Status check_resident(std::span<const CudaArray> resident) const;
  Addresses bases_beside(std::span<const CudaArray> resident) const;
  Result<std::vector<Tensor>> run_once(std::span<const Tensor> inputs, const Addresses& bases,
                                       const RunOptions& options) const;
  Status check_arrays(std::span<const cuda::Address> inputs,
                      std::span<const cuda::Address> outputs) const;
  Status run_in_place(std::span<const cuda::Address> inputs, std::span<const cuda::Address> outputs,
                      cuda::Stream stream, const RunOptions& options) const;
  Status copied_run(std::span<const void* const> inputs, std::span<void* const> outputs,
                    const Addresses& bases, const RunOptions& options) const;
  Status start_and_wait(std::span<const void* const> inputs, std::span<void* const> outputs,
                        const Addresses& bases, const RunOptions& options) const;
  Status start(const Addresses& bases, cuda::Stream stream, const RunOptions& options) const;
  Status wait(cuda::Stream stream, const RunOptions& options) const;
  Result<double> seconds_of(const std::function<Status()>& work, cuda::Stream stream,
                            std::string_view what) const;

  std::string place_;  // for errors
  std::shared_ptr<const CudaDevice> device_;
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;
  std::vector<uint32_t> residents_;  // inputs
  // Indexed by input, then by output: the resident that it is, or lies in.
  std::vector<std::optional<size_t>> resident_of_;
  std::unique_ptr<const Script> script_;
  std::vector<std::unique_ptr<CudaModule>> modules_;
  std::vector<Phase> phases_;  // of Script::phases; those on the CPU have no function
  std::vector<std::shared_ptr<const CudaMemory>> constants_;
  std::unique_ptr<CudaMemory> memory_;  // the arena, inputs, outputs and scratch
  Addresses bases_;                     // of Script::bases; 0: a resident's
  cuda::Address scratch_ = 0;
  std::unique_ptr<CudaHostKernels> host_;
  cuda::Stream stream_ = nullptr;
  cuda::Event events_[2] = {};
  std::unique_ptr<GraphConditions> conditions_;  // of graphs; null: they have none
  mutable std::atomic<bool> is_one_graph_ = false;
  std::shared_ptr<MemoryPool> output_memory_;

  mutable std::mutex mutex_;              // a run has it
  mutable std::list<BoundGraph> graphs_;  // the last used ones, the last one first
  mutable Addresses last_bases_;          // of run_on_device()
  mutable OpenCollectives collectives_;
  mutable std::vector<Exchanged> exchanged_;  // by collective of the script
  bool has_gpu_moves_ = false;
  mutable bool has_inputs_ = false;
};

}  // namespace hone
