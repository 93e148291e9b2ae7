#pragma once

#include <memory>
#include <vector>

#include "runtime/many_devices.h"

namespace hone {

// Devices that run programs of their own, on tensors of their own. Inputs and outputs are those of
// device 0, then those of device 1, and so on; their names are those of name_on()
// (session/program_text.h). One run at a time.
class EachDevice final : public Runnable {
 public:
  // Where devices exchange data: they do it themselves, as those of other processes, or in the
  // memory of this process.
  enum class Meeting : uint8_t { elsewhere, here };

  // The rows of the devices mean nothing.
  explicit EachDevice(std::vector<DeviceShare> devices, Meeting meeting = Meeting::elsewhere);

  std::span<const image::Port> inputs() const override { return inputs_; }
  std::span<const image::Port> outputs() const override { return outputs_; }
  int64_t threads() const override;  // of the device that has most
  const Executable* single() const override { return nullptr; }
  // Times of kernels, a profile and a trace are of one device: they are refused.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;
  // Runs for several inputs, and their outputs in this order. Each device goes on to the next input
  // when it is done with one, while others still compute that; devices that meet here do not. A
  // device is at most as many inputs ahead of the slowest as there are devices, so no more messages
  // of a channel are on their way. The first failure ends all runs, and its error says which input
  // it was.
  Result<std::vector<std::vector<Tensor>>> run_all(std::span<const std::vector<Tensor>> inputs,
                                                   const RunOptions& options = {}) const;

 private:
  struct Arrays;
  Result<Arrays> arrays_of(std::span<const Tensor> inputs) const;
  Status run_device(size_t device, Arrays& arrays, const RunOptions& options) const;

  const std::vector<DeviceShare> devices_;
  const Meeting meeting_;
  std::vector<image::Port> inputs_, outputs_;
  std::vector<size_t> first_input_, first_output_;  // of each device
};

}  // namespace hone
