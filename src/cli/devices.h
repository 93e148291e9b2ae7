#pragma once

#include <optional>

#include "cli/arguments.h"
#include "session/mesh_code.h"
#include "session/source.h"

// --devices, --device, --batch, --mesh and --shard, which all commands that run models take.

namespace hone::cli {

class Console;
struct Processes;

// The names of the devices; none, if the command line says none. --device names a single one.
Result<std::vector<std::string>> given_devices(const Arguments& arguments);

// Options that are of one device alone are refused, and so is a compiled model, if --devices,
// --hosts or --transport say that there are several.
Status check_devices(const Arguments& arguments);
// None, if no devices are given. Their exchanges are planned for --system, else for own_system().
Result<std::optional<DeviceOptions>> device_options(const Arguments& arguments,
                                                    const Processes& processes, Console& console);
// This machine as that number of devices, with its measured links (KnownPrices::system).
Result<System> own_system(int64_t devices, Console& console);

// As given_inputs(); of a model with collectives, those of all devices (compile/spmd_programs.h).
Result<RunInputs> inputs_on(const std::optional<DeviceOptions>& devices, const Source& source,
                            const Arguments& arguments, Engine engine, Console& console);

// The model on these devices, with its code for these inputs. The user is told who has how many
// rows.
struct DividedModel {
  std::shared_ptr<const BatchModel> model = nullptr;  // null: more than its batch is divided
  std::shared_ptr<const ManyDevices> devices = nullptr;
  std::shared_ptr<const Runnable> runnable = nullptr;  // takes the inputs
  std::vector<Tensor> parts = {};                      // what the devices take for them
};
// Code for values of a graph that devices of a mesh divide, within these bytes, by the prices that
// hone knows of the system.
Result<MeshCode> mesh_code_on(const Processes& processes, const Graph& graph,
                              const ShardRequest& request, const NativeOptions& options,
                              const DeviceOptions& devices, int64_t memory,
                              const Arguments& arguments, Console& console);
Result<DividedModel> divided_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options, const DeviceOptions& devices,
                                   const Processes& processes, const Arguments& arguments,
                                   Console& console);

}  // namespace hone::cli
