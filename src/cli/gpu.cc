#include "cli/gpu.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "cli/compiled.h"

namespace hone::cli {

namespace {

constexpr std::string_view kGpuName = "cuda";

bool has_option(const Arguments& arguments, std::string_view name) {
  const auto is_it = [&](const Option& option) { return option.name == name; };
  return std::ranges::any_of(arguments.command().options, is_it) && arguments.given(name);
}

Status check_gpu_command(const Arguments& arguments, std::string_view option) {
  constexpr std::string_view kCommands[] = {"run", "check", "bench", "target probe"};
  if (std::ranges::find(kCommands, arguments.command().name) == std::end(kCommands))
    return usage_error("--{}: 'hone {}' does not run on a GPU; {} do", option,
                       arguments.command().name, join(kCommands, ", "));
  for (std::string_view other : {"target", "isa", "threads", "batch", "hosts", "transport", "shard",
                                 "mesh", "donate", "flush-denormals", "vs", "backend", "numerics"})
    if (has_option(arguments, other))
      return usage_error("--{} does not go with a GPU, which --{} names", other, option);
  if (arguments.command().name == "target probe") return {};
  if (names_compiled(arguments))
    return unsupported("{} is compiled for CPUs", excerpt(arguments.text("MODEL")))
        .with_hint("name the model that it was made of");
  return {};
}

}  // namespace

Result<std::optional<int>> given_gpu(const Arguments& arguments) {
  for (std::string_view option : {"device", "devices"}) {
    if (!has_option(arguments, option)) continue;
    const std::string& text = arguments.text(option);
    const std::vector<std::string_view> names = split(text, ',');
    const auto is_gpu = [](std::string_view name) { return trim(name).starts_with(kGpuName); };
    if (std::ranges::none_of(names, is_gpu)) continue;
    if (names.size() > 1)
      return usage_error("--{} {}: a GPU runs a model alone", option, excerpt(text))
          .with_hint("name one device, such as cuda:0");
    std::string_view rest = trim(names[0]);
    consume_prefix(rest, kGpuName);
    int64_t number = 0;
    if (!rest.empty()) {
      const bool has_colon = consume_prefix(rest, ":");
      const Result<int64_t> read = parse_int(rest);
      if (!has_colon || !read.ok() || *read < 0 || *read > INT32_MAX)
        return usage_error("--{}: there is no device '{}'", option, excerpt(text))
            .with_hint("GPUs are cuda:0, cuda:1, ...; cuda is the first one");
      number = *read;
    }
    HONE_TRY(check_gpu_command(arguments, option));
    return std::optional(static_cast<int>(number));
  }
  return std::optional<int>();
}

std::string cuda_library() {
  const char* const named = std::getenv("HONE_CUDA_LIBRARY");
  return named != nullptr && *named != '\0' ? named : std::string(kCudaLibrary);
}

Result<std::shared_ptr<const CudaDevice>> open_gpu(int number) {
  return open_cuda_device(cuda_library(), number);
}

Status refuse_prices_of_cpu(const Arguments& arguments) {
  for (std::string_view option : {"prices", "cost", "sure"})
    if (has_option(arguments, option))
      return usage_error("--{} is about prices of CPUs, and the target is a GPU", option);
  return {};
}

}  // namespace hone::cli
