#include "worker/each_device.h"

#include <algorithm>
#include <cstddef>

#include "runtime/device_runs.h"
#include "session/program_text.h"

namespace hone {

EachDevice::EachDevice(std::vector<DeviceShare> devices) : devices_(std::move(devices)) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const auto add = [&](std::span<const image::Port> own, std::vector<image::Port>& all) {
      for (const image::Port& port : own)
        all.push_back({name_on(port.name, i, devices_.size()), port.type});
    };
    add(devices_[i].inputs(), inputs_);
    add(devices_[i].outputs(), outputs_);
  }
}

int64_t EachDevice::threads() const {
  int64_t most = 1;
  for (const DeviceShare& device : devices_) most = std::max(most, device.threads());
  return most;
}

Result<std::vector<Tensor>> EachDevice::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  if (times != nullptr || options.profile != nullptr || options.trace != nullptr)
    return unsupported("times of kernels, a profile and a trace are of one device; there are {}",
                       devices_.size());
  if (inputs.size() != inputs_.size())
    return bad_input("{} inputs are given, but {} are needed", inputs.size(), inputs_.size());
  std::vector<const void*> from;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != inputs_[i].type)
      return bad_input("input '{}' is {}, but {} is needed", inputs_[i].name,
                       inputs[i].type().to_string(), inputs_[i].type.to_string());
    from.push_back(inputs[i].as<uint64_t>().data());  // aligned for all element types
  }
  std::vector<Tensor> outputs;
  std::vector<void*> to;
  for (const image::Port& port : outputs_) {
    outputs.push_back(Tensor::zeros(port.type));
    to.push_back(outputs.back().mutable_bytes().data());
  }
  std::vector<size_t> first_input, first_output;
  size_t next_input = 0, next_output = 0;
  for (const DeviceShare& device : devices_) {
    first_input.push_back(next_input);
    first_output.push_back(next_output);
    next_input += device.inputs().size();
    next_output += device.outputs().size();
  }
  const std::unique_ptr<JobThreads> threads = HONE_TRY(JobThreads::make(devices_.size()));
  HONE_TRY(run_devices(
      devices_, *threads, nullptr, options,
      [&](size_t i, const RunOptions& own) {
        const DeviceShare& device = devices_[i];
        const std::span<const void* const> read =
            std::span(from).subspan(first_input[i], device.inputs().size());
        const std::span<void* const> written =
            std::span(to).subspan(first_output[i], device.outputs().size());
        return device.far ? device.far->run(read, written, own)
                          : device.code->run(read, written, own);
      }));
  return outputs;
}

}  // namespace hone
