#pragma once

#include <optional>

#include "cli/arguments.h"
#include "session/devices.h"

// --devices, --device and --batch, which all commands that run models take.

namespace hone::cli {

class Console;

// The names of the devices; none, if the command line says none. --device names a single one.
Result<std::vector<std::string>> given_devices(const Arguments& arguments);

// The same with the inputs that have the batch. None, if no devices are given. Options that are of
// one device alone are refused, and so is a compiled model.
Result<std::optional<DeviceOptions>> device_options(const Arguments& arguments);

// The model on these devices, with its code for these inputs. The user is told who has how many
// rows.
struct DividedModel {
  std::shared_ptr<const BatchModel> model;
  std::shared_ptr<const ManyDevices> devices;  // for the inputs
};
Result<DividedModel> divided_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options, const DeviceOptions& devices,
                                   Console& console);

}  // namespace hone::cli
