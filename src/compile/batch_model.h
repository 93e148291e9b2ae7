#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compile/divided_code.h"
#include "runtime/many_devices.h"

namespace hone {

struct BatchOptions {
  std::vector<std::string> devices;  // their names
  std::vector<std::string> inputs;   // with the batch (batch_inputs.h); empty: as it finds
  int64_t threads = 1;               // of each device
  std::shared_ptr<const System> system = nullptr;  // divided_code()
  GpuParts gpus = {};                              // divided_code()
};

// A graph whose batch is divided among devices of this machine (divided_code.h). Code is made for
// the sizes of inputs when they are first met. The code for the kMaxKept choices of sizes that were
// used last is kept. The devices share the constants.
class BatchModel final : public Runnable {
 public:
  static constexpr size_t kMaxKept = 64;

  // The options point to things, which outlive the model. Their memory limit is of all devices
  // together; their plan may say nothing.
  BatchModel(Graph graph, Target target, CompileOptions options, BatchOptions batch);

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override { return batch_.threads; }
  const Executable* single() const override { return nullptr; }
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;

  // For inputs of these types: the devices that have rows. An op that mixes the rows of the batch
  // is refused by name.
  Result<std::shared_ptr<const ManyDevices>> devices_for(std::span<const Type> types) const;
  // Their code, for devices that are not in this process.
  Result<DividedCode> code_for(std::span<const Type> types) const;
  size_t devices() const { return batch_.devices.size(); }

 private:
  struct Made {
    std::vector<Type> types;
    std::shared_ptr<const ManyDevices> devices;
  };

  Result<std::shared_ptr<const ManyDevices>> make(std::span<const Type> types) const;

  const Graph graph_;
  const Target target_;
  const CompileOptions options_;
  const BatchOptions batch_;
  std::vector<image::Port> inputs_;
  std::vector<image::Port> outputs_;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::list<Made> made_;
};

}  // namespace hone
