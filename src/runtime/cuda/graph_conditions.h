#pragma once

#include <functional>
#include <memory>

#include "runtime/cuda/cubins.h"

namespace hone {

// Branches and loops of CUDA graphs whose conditions the GPU reads. They are put into the graph
// that a stream captures, behind what is there; work that comes to the stream comes behind them.
class GraphConditions {
 public:
  // Puts the work of a block into the stream.
  using Record = std::function<Status(cuda::Stream)>;

  // The driver has conditional nodes. The kernel that decides is one for all models on the GPU.
  static Result<std::unique_ptr<GraphConditions>> make(std::shared_ptr<const CudaDevice> device,
                                                       const CubinStore& store);
  GraphConditions(const GraphConditions&) = delete;

  // `then` if the byte at the address is not 0, else `otherwise`.
  Status branch(cuda::Stream stream, cuda::Address byte, const Record& then,
                const Record& otherwise) const;
  // `body`, as long as the byte is not 0 before it.
  Status loop(cuda::Stream stream, cuda::Address byte, const Record& body) const;

  // Waits for the stream, in which a graph is under way. Its loops end with the trip they are in.
  Status end_loops(cuda::Stream stream) const;

 private:
  explicit GraphConditions(std::shared_ptr<const CudaDevice> device) : device_(std::move(device)) {}
  Result<cuda::Condition> new_condition(cuda::Stream stream) const;
  Status decide(cuda::Stream stream, cuda::Address byte, cuda::Condition condition,
                bool opposite) const;
  Result<cuda::Graph> add_node(cuda::Stream stream, cuda::Condition condition, int kind) const;
  Status fill(cuda::Graph graph, const Record& work) const;
  Status write_stop(int32_t value) const;

  const std::shared_ptr<const CudaDevice> device_;
  std::shared_ptr<const CudaModule> module_;
  cuda::Function decide_ = nullptr;
  std::unique_ptr<CudaMemory> stop_;
};

}  // namespace hone
