#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/batch_model.h"
#include "session/native.h"
#include "session/sharding.h"

// Models whose batch several devices divide.

namespace hone {

struct DeviceOptions {
  std::vector<std::string> names = {};  // of the devices
  std::vector<std::string> batch = {};  // inputs that have it (shard/batch_inputs.h)
  // Threads of each device, where the user says no number; 0: its share of the cores of this
  // machine, which `sharing` devices have; 0: all of them.
  int64_t threads = 0;
  int64_t sharing = 0;
  std::optional<ShardRequest> shards = {};  // values are divided, and not the batch alone
};

// "4" means as many parts of this machine. A list names each device: "cpu,cpu" are two parts.
// `label` is what the user wrote it for.
Result<std::vector<std::string>> parse_devices(std::string_view text, std::string_view label);

// The same for the name of one device.
Result<std::vector<std::string>> parse_device(std::string_view text, std::string_view label);

// Cores of each device, where the user says no number of threads; at least 1.
int64_t threads_per_device(const NativeOptions& options, const DeviceOptions& devices);

// A model of one graph, for all sizes that are open. The memory is that of all devices together.
// Plans are of one device: options that say one are refused.
Result<std::shared_ptr<const BatchModel>> batch_model(const Model& model,
                                                      const NativeOptions& options,
                                                      const DeviceOptions& devices,
                                                      int64_t memory_limit, const Face& face = {});

// True if the model is for several devices, for it has collectives (compile/spmd_programs.h).
bool has_collectives(const Model& model);
// Its code, for these sizes.
Result<DividedCode> collective_code(const Model& model, const Bindings& sizes,
                                    const NativeOptions& options, const DeviceOptions& devices,
                                    int64_t memory_limit, const Face& face = {});

// "3 devices of 1 thread, with 3, 3, 2 rows of the batch; they take turns on 2 cores".
std::string division_text(const BatchModel& model, const ManyDevices& made, int64_t cores);

// The same of a compiled file.
std::string division_text(const BatchDivision& division, int64_t threads, int64_t cores);

// For training: "2 devices of 1 thread, which share the samples of each batch".
std::string training_text(size_t devices, int64_t threads, int64_t cores);

}  // namespace hone
