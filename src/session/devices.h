#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/batch_model.h"
#include "search/system_plan.h"
#include "session/native.h"
#include "session/sharding.h"
#include "target/system.h"

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
  AutoShardOptions search = {};             // where prices choose how
  // As many devices, and their links, which schedule what they exchange; null: sizes do. One that
  // the user has said also decides which products move while they compute.
  std::shared_ptr<const System> system = nullptr;
  bool is_system_said = false;
  GpuParts gpus = {};  // take_gpus()
};

// The system of a user, for these devices. Error: it has other devices, or CPUs of several sorts.
Status take_system(DeviceOptions& options, System system);
// Or a refusal: the devices of a text of programs are parts of CPUs.
Status check_has_no_gpu(const System& system);
// The devices of a system, where the user has but said how many: its GPUs are those of this machine
// in their order.
std::vector<std::string> names_of(const System& system);
// Opens the GPUs that the names name, by the driver of this library. The system of the options has
// them, too.
Status take_gpus(DeviceOptions& options, const std::string& library);
// Opens one. Its target is the system's, if that is given.
Result<std::shared_ptr<const GpuPart>> gpu_part(std::string_view name, const std::string& library,
                                                const Target* target = nullptr);

// "4" means as many parts of this machine. A list names each device: "cpu,cpu" are two parts, and
// "cuda:0,cpu" a GPU and a part. `label` is what the user wrote it for.
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

// The plan of a graph that is the best on the system, for CompileOptions::best_plan. The devices
// are of one sort, and the cost is of it; null: analytic. The face is told which products are
// divided.
Result<decltype(CompileOptions::best_plan)> best_plan_on(const System& system, const Graph& graph,
                                                         const SystemPlanOptions& options,
                                                         std::shared_ptr<const Cost> cost,
                                                         const Face& face);

// True if the model is for several devices: it exchanges data, or asks which device it runs on
// (compile/spmd_programs.h).
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

// For collectives of a model: "2 devices of 1 thread, which meet in collectives".
std::string meeting_text(int64_t devices, int64_t threads, int64_t cores);
std::string meeting_text(const ManyDevices& made, int64_t cores);

}  // namespace hone
