#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/cubins.h"
#include "runtime/cuda/gpu_kernel.h"
#include "runtime/division.h"
#include "runtime/executable.h"
#include "runtime/far_code.h"

namespace hone {

class Transport;

// An input or an output of all devices together.
struct DividedPort {
  image::Port port;
  // The dim along which each device has its own rows: a multiple of the rows of the batch, side by
  // side. -1: each device takes or gives all of it.
  int dim = -1;
};

// The ports with their dims, as a BatchDivision lists them.
std::vector<DividedPort> divided_ports(std::span<const image::Port> ports,
                                       std::span<const int> dims);

// A device with its rows of the batch, and the code that computes them.
struct DeviceShare {
  std::string name;  // "cpu 0", for errors
  int64_t first = 0;
  int64_t count = 0;
  std::shared_ptr<const Executable> code;
  std::shared_ptr<const FarCode> far = nullptr;  // in place of the code: elsewhere

  std::span<const image::Port> inputs() const { return far ? far->inputs() : code->inputs(); }
  std::span<const image::Port> outputs() const { return far ? far->outputs() : code->outputs(); }
  int64_t threads() const { return far ? far->threads() : code->threads(); }
};

// Seconds of a device, in one run or several.
struct DeviceTimes {
  double computing = 0;  // its code runs; of another process: with the way there and back
  double moving = 0;     // it copies rows that do not lie side by side
  double waiting = 0;    // for the other devices, after it is done
};

struct LoadDivided {
  // The names of the devices, for errors; those that are missing are "device N".
  std::vector<std::string> names = {};
  int64_t threads = 1;                                 // of each device
  int64_t memory_limit = INT64_MAX;                    // LoadOptions, of all devices together
  std::optional<Instructions> machine = std::nullopt;  // LoadOptions
  // The GPUs by device; null, or none: it is a part of this machine's CPU.
  std::vector<std::shared_ptr<const CudaDevice>> gpus = {};
  // Code of kernels for GPUs by image (GpuImage). Empty, or none: it is for CPUs.
  std::vector<std::vector<GpuKernel>> gpu_kernels = {};
  CubinStore cubins = {};  // CudaLoadOptions

  std::string name_of(size_t device) const;
};

// A device of this machine with the code of the image of this number, for its memory's share of
// `devices`. It has no rows yet.
Result<DeviceShare> load_here(size_t device, size_t devices, std::span<const Image> images,
                              size_t image, const LoadDivided& options);

// The transport by which these devices of this process meet.
Result<std::unique_ptr<Transport>> transport_of(std::span<const DeviceShare> devices);

// One graph, of whose batch each device computes some rows. It takes and gives whole tensors. Each
// device runs on a thread of its own, and its code on a team of its own. The threads live as long
// as the model. Inputs are not copied, and outputs are written where they belong, if the rows of a
// device are one piece of memory. Where devices add something up, they exchange it (all_reduce).
//
// If the run of a device fails, the others end, too. The error names the device. A forked child
// must not run it.
class ManyDevices final : public Runnable {
 public:
  // The shares are of a batch of `rows` rows, in order, and have all of them. An error if the code
  // of a device is for other types.
  static Result<std::shared_ptr<const ManyDevices>> make(std::vector<DividedPort> inputs,
                                                         std::vector<DividedPort> outputs,
                                                         int64_t rows,
                                                         std::vector<DeviceShare> devices);
  // The ports of all devices together have static types. The images are those of the division.
  static Result<std::shared_ptr<const ManyDevices>> load(const BatchDivision& division,
                                                         std::span<const image::Port> inputs,
                                                         std::span<const image::Port> outputs,
                                                         std::span<const Image> images,
                                                         const LoadDivided& options);
  ~ManyDevices() override;  // not while it runs

  std::span<const image::Port> inputs() const override { return input_ports_; }
  std::span<const image::Port> outputs() const override { return output_ports_; }
  int64_t threads() const override { return devices_.front().threads(); }  // of each device
  const Executable* single() const override { return nullptr; }
  std::span<const DeviceShare> devices() const { return devices_; }

  // A profile and a trace are of one device: they are refused.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options = {},
                                  std::vector<UnitTimes>* times = nullptr) const override;
  // Adds to the times, one per device.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs, const RunOptions& options,
                                  std::span<DeviceTimes> times) const;

 private:
  // Where the rows of a device lie in a whole tensor: `pieces` pieces of `bits` bits each.
  struct Rows {
    int64_t pieces = 1;
    int64_t begin = 0;   // bits
    int64_t stride = 0;  // bits
    int64_t bits = 0;
    bool is_one_piece() const { return pieces == 1 && begin % 8 == 0 && bits % 8 == 0; }
  };
  class Device;
  class Run;
  struct Meeting;  // the threads of a run, and what they exchange data by

  ManyDevices();
  Status check() const;
  Result<std::unique_ptr<Meeting>> meeting() const;
  Rows rows_of(const DividedPort& port, const DeviceShare& device) const;

  std::vector<DividedPort> inputs_;
  std::vector<DividedPort> outputs_;
  std::vector<image::Port> input_ports_;
  std::vector<image::Port> output_ports_;
  int64_t rows_ = 1;
  std::vector<DeviceShare> devices_;
  std::shared_ptr<MemoryPool> output_memory_;

  // A run has it if code of devices is far: that has one run at a time. Two runs at once, each with
  // one of two devices, would wait for each other in their exchanges.
  mutable std::mutex turn_;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::vector<std::unique_ptr<Meeting>> idle_;
};

}  // namespace hone
