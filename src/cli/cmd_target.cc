#include "base/text.h"
#include "base/text_table.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/gpu.h"
#include "cli/machines.h"
#include "cli/source.h"
#include "cost/prices.h"
#include "session/devices.h"
#include "session/gpu.h"
#include "target/gpu_presets.h"
#include "target/probe.h"
#include "target/target.h"

namespace hone::cli {
namespace {

Isa level_of(const Arguments& arguments) {
  return arguments.given("isa") ? isa_from_name(arguments.text("isa")).value() : kIsas.back();
}

std::vector<std::string> gpu_row(std::string name, const Target& gpu) {
  std::vector<std::string> caches;
  for (const CacheLevel& cache : gpu.caches) caches.push_back(format_bytes(cache.bytes));
  return {std::move(name),
          fmt::format("sm_{}", gpu.gpu->capability),
          std::to_string(gpu.cores),
          join(caches, ", "),
          format_bytes(gpu.memory_bytes),
          gpu.cpu};
}

// The GPUs of this machine, and those that code can be made for on any machine.
void add_gpus(TextTable& table, Console& console) {
  const Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open(cuda_library());
  if (!driver.ok()) console.note("no GPU is listed: {}", driver.error().what());
  for (int i = 0; driver.ok() && i < (*driver)->devices(); ++i) {
    const auto device = CudaDevice::open(*driver, i);
    const Result<Target> gpu = device.ok() ? gpu_target(**device) : Result<Target>(device.error());
    if (gpu.ok())
      table.add_row(gpu_row(fmt::format("cuda:{}", i), *gpu));
    else
      console.note("cuda:{} is not listed: {}", i, gpu.error().what());
  }
  for (const GpuPreset& preset : gpu_presets())
    table.add_row(gpu_row(std::string(preset.name), *preset_gpu(preset.name)));
}

}  // namespace

Status cmd_target_show(const Arguments& arguments, Console& console) {
  Target target = HONE_TRY(load_target(arguments.text("FILE")));
  console.write(print(restricted(std::move(target), level_of(arguments))));
  return {};
}

Status cmd_target_list(const Arguments&, Console& console) {
  const Target host = HONE_TRY(host_target());
  TextTable table("llrlll", {"target", "level", "cores", "caches", "memory", "extensions"});
  for (auto isa = kIsas.rbegin(); isa != kIsas.rend(); ++isa) {
    if (*isa > host.isa) continue;
    const Target target = restricted(host, *isa);
    std::vector<std::string> caches;
    for (const CacheLevel& cache : target.caches) caches.push_back(format_bytes(cache.bytes));
    std::vector<std::string_view> extensions;
    for (Extension e : kExtensions)
      if (target.extensions.contains(e)) extensions.push_back(name(e));
    table.add_row({target.name, std::string(name(*isa)), std::to_string(target.cores),
                   join(caches, ", "), format_bytes(target.memory_bytes), join(extensions, ", ")});
  }
  add_gpus(table, console);
  console.write(table.to_string());
  return {};
}

Status cmd_target_prices(const Arguments& arguments, Console& console) {
  const Target target = restricted(
      HONE_TRY(load_target(arguments.text("FILE"))), level_of(arguments));
  if (target.gpu)
    return unsupported("the target '{}' is a GPU, whose prices have no coefficients", target.name)
        .with_hint("'hone train cost' learns prices of a GPU from a data set");
  return write_text(arguments.text("output"), print(Prices(), target.name), console);
}

Status cmd_target_probe(const Arguments& arguments, Console& console) {
  const std::string path = arguments.text("output");
  if (const std::optional<int> number = HONE_TRY(given_gpu(arguments))) {
    const Target gpu = HONE_TRY(probed_gpu(HONE_TRY(open_gpu(*number))));
    return write_text(path, print(gpu), console);
  }
  if (arguments.given("device")) HONE_TRY(parse_device(arguments.text("device"), "--device"));
  const std::unique_ptr<Progress> progress = console.progress();
  const Target target = HONE_TRY(probe_target({.seconds = arguments.real("seconds"),
                                               .isa = level_of(arguments),
                                               .progress = progress.get(),
                                               .cancel = &console.cancel()}));
  return write_text(path, print(target), console);
}

}  // namespace hone::cli
