#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/gpu_map.h"
#include "runtime/script.h"

namespace hone {

// Goes through the script's instructions once. Work of the GPU comes to the stream. `bases` are
// addresses of Script::bases.
class CudaExecutable::Run {
 public:
  Run(const CudaExecutable& of, const RunOptions& options, cuda::Stream stream,
      std::span<const cuda::Address> bases)
      : of_(of),
        stream_(stream),
        bases_(bases),
        script_(*of.script_),
        call_(of.device_->call()),
        options_(options),
        trips_(script_.loops) {}

  Status execute();
  // While the stream is captured: the work becomes a graph, in which the GPU decides.
  Status record();

  // True if it differs from device to device.
  static bool is_exchange(Script::Instruction::Kind kind);

 private:
  using Instruction = Script::Instruction;

  Status go(size_t begin, size_t end);
  Result<size_t> record_condition(size_t at);
  Status work(const Instruction& now);
  Status exchange(const Instruction& now);
  Status exchange_directly(const Instruction& now, const Script::Collective& one);
  Status read(void* to, cuda::Address from, size_t bytes);
  Status write(cuda::Address to, const void* from, size_t bytes);
  Status waited(cuda::Code begun, std::string_view what);
  Status timed(const Instruction& now);
  std::string what(const Instruction& now) const;
  cuda::Address address(uint32_t i) const;
  Status launch(const Instruction& now);
  Status set_parameters(const GpuPhase& phase, uint64_t trips);
  Status launch_on_cpu(const Instruction& now);
  Status copy(const Instruction& now);
  Result<std::byte> byte_at(uint32_t pointer);

  const CudaExecutable& of_;
  cuda::Stream stream_;  // where work goes
  bool is_recorded_ = false;
  const std::span<const cuda::Address> bases_;
  const Script& script_;
  const cuda::Functions& call_;
  const RunOptions& options_;
  std::vector<int64_t> trips_;     // of each loop
  bool is_behind_kernel_ = false;  // the stream's last work of this run is one of the GPU
  bool is_in_block_ = false;       // of a condition that the GPU reads
  // The parameters of a launch, and where they stand.
  std::vector<uint64_t> words_;  // addresses, symbols, scratch
  std::vector<MapParameter> maps_;
  std::array<uint64_t, 2> trips_of_launch_ = {};  // begin, end
  std::vector<void*> parameters_;
};

}  // namespace hone
