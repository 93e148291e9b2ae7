#include "cli/devices.h"

#include "base/text.h"
#include "cli/compiled.h"
#include "cli/console.h"

namespace hone::cli {

Result<std::vector<std::string>> given_devices(const Arguments& arguments) {
  const bool is_one = arguments.given("device"), are_several = arguments.given("devices");
  if (is_one && are_several)
    return usage_error("--device is short for --devices with one device; only one can be given");
  if (is_one) return parse_device(arguments.text("device"), "--device");
  if (are_several) return parse_devices(arguments.text("devices"), "--devices");
  return std::vector<std::string>();
}

Result<std::optional<DeviceOptions>> device_options(const Arguments& arguments) {
  std::vector<std::string> names = HONE_TRY(given_devices(arguments));
  if (names.empty()) {
    if (arguments.given("batch")) return usage_error("--batch needs --devices");
    return std::optional<DeviceOptions>();
  }
  for (std::string_view other :
       {"plan", "plan-seed", "trace", "profile", "donate", "vs", "backend", "numerics"})
    if (std::ranges::any_of(arguments.command().options,
                            [&](const Option& option) { return option.name == other; }) &&
        arguments.given(other))
      return usage_error("--{} is of one device; it does not go with --devices", other);
  if (names_compiled(arguments))
    return unsupported("{} is compiled for one device, and has no graph to divide",
                       excerpt(arguments.text("MODEL")))
        .with_hint("name the model that it was made of");
  return std::optional(DeviceOptions{.names = std::move(names), .batch = arguments.list("batch")});
}

Result<DividedModel> divided_model(const Model& model, const RunInputs& inputs,
                                   const NativeOptions& options, const DeviceOptions& devices,
                                   Console& console) {
  DividedModel divided;
  divided.model =
      HONE_TRY(batch_model(model, options, devices, inputs.memory_left.native, console.face()));
  Result<std::shared_ptr<const ManyDevices>> made =
      divided.model->devices_for(types_of(inputs.tensors));
  if (!made.ok() && made.error().code() == ErrorCode::unsupported && devices.batch.empty())
    return std::move(made).error().with_hint(
        "without --devices it runs on one; --batch INPUT[:DIM] says which inputs have the batch");
  divided.devices = HONE_TRY(std::move(made));
  console.note("{}", division_text(*divided.model, *divided.devices, options.target.cores));
  return divided;
}

}  // namespace hone::cli
