#include "cli/gpu.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "cli/compiled.h"
#include "cli/console.h"
#include "cli/prices.h"
#include "session/gpu_prices.h"

namespace hone::cli {

namespace {

Status check_gpu_command(const Arguments& arguments, std::string_view option) {
  constexpr std::string_view kCommands[] = {"run",     "check",    "bench",       "compile",
                                            "explain", "report",   "conformance", "train",
                                            "tune",    "generate", "quantize"};
  constexpr std::string_view kMore[] = {"conformance-case", "target probe", "dataset build"};
  const std::string_view command = arguments.command().name;
  if (std::ranges::find(kCommands, command) == std::end(kCommands) &&
      std::ranges::find(kMore, command) == std::end(kMore))
    return usage_error("--{}: 'hone {}' does not run on a GPU; {} do", option, command,
                       join(kCommands, ", "));
  // A compiled file has code for CPUs, too, which these two are about.
  const bool has_cpu = command == "compile";
  for (std::string_view other :
       {"target", "isa", "threads", "batch", "hosts", "transport", "shard", "mesh", "pipeline",
        "system", "donate", "vs", "backend", "numerics"}) {
    const bool fits =
        (other == "backend" && arguments.given(other) && arguments.text("backend") == "native") ||
        (has_cpu && (other == "isa" || other == "threads")) ||
        (other == "system" && command == "generate");  // what a model is told first
    if (arguments.given(other) && !fits)
      return usage_error("--{} does not go with a GPU, which --{} names", other, option);
  }
  return {};
}

// Null: 'hone train cost' has kept none.
Result<std::shared_ptr<const Cost>> kept_cost(const Target& target) {
  const Result<std::string> file = user_prices().model_file(target);
  std::error_code failed;
  if (!file.ok() || !std::filesystem::exists(*file, failed)) return std::shared_ptr<const Cost>();
  return learned_gpu_cost(*file, target);
}

}  // namespace

Result<std::optional<int>> given_gpu(const Arguments& arguments) {
  for (std::string_view option : {"device", "devices"}) {
    if (!arguments.given(option)) continue;
    const std::optional<int> number =
        HONE_TRY(named_gpu_number(arguments.text(option), fmt::format("--{}", option)));
    if (!number) continue;
    HONE_TRY(check_gpu_command(arguments, option));
    return number;
  }
  return std::optional<int>();
}

Status check_gpus_among(std::span<const std::string> devices, const Arguments& arguments) {
  const auto gpu = std::ranges::find_if(
      devices, [](const std::string& name) { return name.starts_with("cuda"); });
  if (gpu == devices.end()) return {};
  constexpr std::string_view kCommands[] = {"run", "check", "bench"};
  if (std::ranges::find(kCommands, arguments.command().name) == std::end(kCommands))
    return usage_error("--devices: 'hone {}' takes one GPU, or CPUs, and '{}' is among {} devices",
                       arguments.command().name, *gpu, devices.size())
        .with_hint("'hone run', 'hone check' and 'hone bench' divide a model among CPUs and GPUs");
  for (std::string_view other : {"hosts", "transport"})
    if (arguments.given(other))
      return usage_error("--{} is of processes, and '{}' of this one", other, *gpu)
          .with_hint("without it all devices are of this process");
  if (names_compiled(arguments))
    return unsupported("a compiled file runs on one GPU, or on CPUs")
        .with_hint("name the model that it was made of");
  return {};
}

std::string cuda_library() {
  const char* const named = std::getenv("HONE_CUDA_LIBRARY");
  return named != nullptr && *named != '\0' ? named : std::string(kCudaLibrary);
}

Result<std::shared_ptr<const CudaDevice>> open_gpu(int number) {
  return open_cuda_device(cuda_library(), number);
}

Result<std::shared_ptr<const Cost>> cost_of_gpu(const Arguments& arguments, const Target& target,
                                                Console& console) {
  for (std::string_view option : {"prices", "sure"})
    if (arguments.given(option))
      return usage_error("--{} is about prices of CPUs, and the target is a GPU", option);
  const std::string word = arguments.given("cost") ? arguments.text("cost") : "";
  if (word == "measured")
    return usage_error("--cost measured takes times of CPUs, and the target is a GPU");
  if (word == "analytic") return std::shared_ptr<const Cost>();
  if (!word.empty() && word != "learned") return learned_gpu_cost(word, target);
  if (word.empty()) return kept_cost_of_gpu(target, console);
  std::shared_ptr<const Cost> cost = HONE_TRY(kept_cost(target));
  if (cost != nullptr) return cost;
  return bad_input("there is no learned price of the target '{}'", target.name)
      .with_hint("'hone train cost' makes one, and its file can be named");
}

std::shared_ptr<const Cost> kept_cost_of_gpu(const Target& target, Console& console) {
  Result<std::shared_ptr<const Cost>> cost = kept_cost(target);
  if (cost.ok()) return *std::move(cost);
  console.note("learned prices are not used: {}", cost.error().to_string());
  return nullptr;
}

}  // namespace hone::cli
