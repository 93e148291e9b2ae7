#include "cli/machines.h"

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "target/gpu_presets.h"
#include "target/presets.h"

namespace hone::cli {

Result<std::optional<Target>> named_gpu(const std::string& text) {
  std::optional<Target> gpu = preset_gpu(text);
  std::error_code failed;
  if (gpu || !text.starts_with("sm_") || std::filesystem::exists(text, failed)) return gpu;
  std::vector<std::string> names;
  for (const GpuPreset& preset : gpu_presets()) names.emplace_back(preset.name);
  return usage_error("there is no GPU '{}'", excerpt(text))
      .with_hint(
          fmt::format("{} have names; later GPUs run the code of earlier ones", join(names, ", ")));
}

Result<Target> load_target(const std::string& file) {
  if (file.empty() || file == "host") return host_target();
  if (const std::optional<Target> gpu = HONE_TRY(named_gpu(file))) return *gpu;
  return parse_target(HONE_TRY(read_file(file, kMaxTargetText)), file);
}

Result<System> load_system(const std::string& text, const std::string& target_file) {
  if (!is_preset(text)) {
    if (!target_file.empty())
      return usage_error("the devices of the file '{}' have targets of their own", text)
          .with_hint("--target is for presets such as ring:8");
    return parse_system(HONE_TRY(read_file(text, kMaxSystemText)), text);
  }
  Result<System> system = preset_system(text, HONE_TRY(load_target(target_file)));
  if (system.ok()) return system;
  // The fault stands on the command line, not in a file.
  const Error& error = system.error();
  return usage_error("{}", error.what()).with_hint(error.hint());
}

}  // namespace hone::cli
