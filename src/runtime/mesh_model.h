#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/many_devices.h"

// A model whose values the devices of a mesh divide, and which takes and gives whole tensors.

namespace hone {

// How the devices divide a tensor.
struct MeshPort {
  // A device has the place number / divisor % size.
  struct Part {
    int64_t divisor = 1;
    int64_t size = 1;
    bool operator==(const Part&) const = default;
  };

  image::Port whole = {};
  // For each dim the parts that divide it, the outermost first. All devices have parts of one size;
  // what the last ones have behind their elements is padding.
  std::vector<std::vector<Part>> dims = {};

  bool is_divided() const;
  Type part() const;  // that each device has
};

// How they divide all tensors: plain data, which a compiled file has, too. Inputs are those of the
// model, and behind them constants that are divided, too.
struct MeshDivision {
  struct Axis {
    std::string name;
    int64_t devices = 1;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes = {};  // the last one is the innermost
  std::vector<MeshPort> inputs = {};
  std::vector<MeshPort> outputs = {};

  int64_t devices() const;  // of all axes; at most BatchDivision::kMaxShares, if check() is ok
  std::string mesh_text() const;  // "x=2,y=4"
};

// True if parts are of the devices of the mesh, and each tensor has as many lists of them as dims.
// No dim has more parts than elements.
Status check(const MeshDivision& division);
// True if the ports of all devices together are those that the division cuts tensors for: along dim
// 0, one device behind the other (compile/spmd_programs.h).
Status check(const MeshDivision& division, std::span<const image::Port> inputs,
             std::span<const image::Port> outputs);

// The ports of all devices together. Inputs and outputs with a dim of -1 are the same for all.
std::vector<image::Port> ports_of_all(std::span<const MeshPort> ports, std::span<const int> dims,
                                      int64_t devices);

// The part of a device, and the tensor of the parts of all devices.
Tensor part_of(const Tensor& whole, const MeshPort& port, int64_t device);
Tensor whole_of(std::span<const Tensor> parts, const MeshPort& port);
// The parts of all devices, one behind the other along dim 0. A tensor without a dim is one for
// all. Padding is 0.
Tensor parts_of_all(const Tensor& whole, const MeshPort& port, int64_t devices);
// Back again. Devices that have the same part have the same elements; the first one counts.
Tensor whole_of_parts(const Tensor& parts, const MeshPort& port, int64_t devices);

class MeshModel final : public Runnable {
 public:
  // The devices run the program of the mesh. The last inputs of the division are the constants.
  static Result<std::shared_ptr<const MeshModel>> make(MeshDivision division,
                                                       std::span<const Tensor> constants,
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
  MeshModel(MeshDivision division, std::span<const Tensor> constants,
            std::shared_ptr<const ManyDevices> devices);
  Tensor given(const Tensor& whole, size_t input) const;

  const MeshDivision division_;
  const std::shared_ptr<const ManyDevices> devices_;
  std::vector<image::Port> inputs_, outputs_;
  std::vector<Tensor> constants_;  // as the devices take them
};

}  // namespace hone
