#pragma once

#include <memory>
#include <vector>

#include "runtime/many_devices.h"
#include "session/sharding.h"

// A model whose values devices divide, which takes and gives whole tensors.

namespace hone {

// The parts of all devices, one behind the other along dim 0, as the program of a device has them
// (compile/spmd_programs.h). A tensor without a dim is one for all. Padding is 0.
Tensor parts_of_all(const Tensor& whole, const ShardLayout& layout, const Mesh& mesh);
// Back again. Devices that have the same part have the same elements; the first one counts.
Tensor whole_of_parts(const Tensor& parts, Type whole, const ShardLayout& layout, const Mesh& mesh);

class MeshModel final : public Runnable {
 public:
  // `devices` run the partition of the model; names and types are those of the graph that was
  // divided.
  MeshModel(const Graph& graph, const ShardedModel& model,
            std::shared_ptr<const ManyDevices> devices);

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return devices_->threads(); }
  const Executable* single() const override { return nullptr; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

  // The inputs as the devices take them, with the constants of the model.
  std::vector<Tensor> parts(std::span<const Tensor> inputs) const;

 private:
  Tensor given(const Tensor& whole, size_t input) const;

  const MeshRef mesh_;
  const std::vector<ShardLayout> input_layouts_, output_layouts_;
  const std::shared_ptr<const ManyDevices> devices_;
  std::vector<image::Port> inputs_, outputs_;
  std::vector<Tensor> constants_;  // as the devices take them
};

// The inputs of a partition that differ from device to device, by name.
std::vector<std::string> divided_inputs(const Partition& partition);

}  // namespace hone
