#include "worker/each_device.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

#include "runtime/device_runs.h"
#include "session/program_text.h"
#include "transport/transport.h"

namespace hone {
namespace {

// Lets no device be more than a number of runs ahead of the slowest.
class Window {
 public:
  explicit Window(size_t devices) : done_(devices) {}

  // Until the device may begin run `number`.
  Status wait(size_t number, const CancelToken* cancel) {
    constexpr auto kLook = std::chrono::milliseconds(10);
    std::unique_lock lock(mutex_);
    while (number >= *std::ranges::min_element(done_) + done_.size()) {
      if (cancel != nullptr) HONE_TRY(cancel->check());
      moved_.wait_for(lock, kLook);
    }
    return {};
  }
  void advance(size_t device) {
    const std::scoped_lock lock(mutex_);
    ++done_[device];
    moved_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<size_t> done_;  // runs, by device
};

}  // namespace

// The memory of a run.
struct EachDevice::Arrays {
  std::vector<const void*> from;
  std::vector<Tensor> outputs;
  std::vector<void*> to;
};

EachDevice::EachDevice(std::vector<DeviceShare> devices, Meeting meeting)
    : devices_(std::move(devices)), meeting_(meeting) {
  for (size_t i = 0; i < devices_.size(); ++i) {
    first_input_.push_back(inputs_.size());
    first_output_.push_back(outputs_.size());
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

Result<EachDevice::Arrays> EachDevice::arrays_of(std::span<const Tensor> inputs) const {
  if (inputs.size() != inputs_.size())
    return bad_input("{} inputs are given, but {} are needed", inputs.size(), inputs_.size());
  Arrays arrays;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].type() != inputs_[i].type)
      return bad_input("input '{}' is {}, but {} is needed", inputs_[i].name,
                       inputs[i].type().to_string(), inputs_[i].type.to_string());
    arrays.from.push_back(inputs[i].as<uint64_t>().data());  // aligned for all element types
  }
  for (const image::Port& port : outputs_) {
    arrays.outputs.push_back(Tensor::zeros(port.type));
    arrays.to.push_back(arrays.outputs.back().mutable_bytes().data());
  }
  return arrays;
}

Status EachDevice::run_device(size_t device, Arrays& arrays, const RunOptions& options) const {
  const DeviceShare& share = devices_[device];
  const std::span<const void* const> read =
      std::span(arrays.from).subspan(first_input_[device], share.inputs().size());
  const std::span<void* const> written =
      std::span(arrays.to).subspan(first_output_[device], share.outputs().size());
  return share.far ? share.far->run(read, written, options)
                   : share.code->run(read, written, options);
}

Result<std::vector<Tensor>> EachDevice::run(std::span<const Tensor> inputs,
                                            const RunOptions& options,
                                            std::vector<UnitTimes>* times) const {
  if (times != nullptr || options.profile != nullptr || options.trace != nullptr)
    return unsupported("times of kernels, a profile and a trace are of one device; there are {}",
                       devices_.size());
  Arrays arrays = HONE_TRY(arrays_of(inputs));
  const std::unique_ptr<JobThreads> threads = HONE_TRY(JobThreads::make(devices_.size()));
  std::unique_ptr<Transport> transport;
  const bool meet_here = meeting_ == Meeting::here && devices_.size() > 1;
  if (meet_here) transport = HONE_TRY(transport_of(devices_));
  HONE_TRY(run_devices(
      devices_, *threads, transport.get(), options,
      [&](size_t i, const RunOptions& own) { return run_device(i, arrays, own); }));
  return std::move(arrays.outputs);
}

Result<std::vector<std::vector<Tensor>>> EachDevice::run_all(
    std::span<const std::vector<Tensor>> inputs, const RunOptions& options) const {
  if (options.profile != nullptr || options.trace != nullptr)
    return unsupported("a profile and a trace are of one device; there are {}", devices_.size());
  std::vector<std::vector<Tensor>> outputs;
  if (meeting_ == Meeting::here) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      Result<std::vector<Tensor>> made = run(inputs[k], options, nullptr);
      if (!made.ok()) return std::move(made).error().within(fmt::format("run {}", k + 1));
      outputs.push_back(*std::move(made));
    }
    return outputs;
  }
  std::vector<Arrays> arrays;
  for (size_t k = 0; k < inputs.size(); ++k) {
    Result<Arrays> made = arrays_of(inputs[k]);
    if (!made.ok()) return std::move(made).error().within(fmt::format("run {}", k + 1));
    arrays.push_back(*std::move(made));
  }
  Window window(devices_.size());
  const std::unique_ptr<JobThreads> threads = HONE_TRY(JobThreads::make(devices_.size()));
  HONE_TRY(run_devices(
      devices_, *threads, nullptr, options,
      [&](size_t i, const RunOptions& own) -> Status {
        for (size_t k = 0; k < arrays.size(); ++k) {
          HONE_TRY(window.wait(k, own.cancel));
          Status ran = run_device(i, arrays[k], own);
          if (!ran.ok()) return std::move(ran).error().within(fmt::format("run {}", k + 1));
          window.advance(i);
        }
        return {};
      }));
  for (Arrays& one : arrays) outputs.push_back(std::move(one.outputs));
  return outputs;
}

}  // namespace hone
