#include <filesystem>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/source.h"
#include "cli/writable.h"
#include "learn/memory_budget.h"
#include "learn/training_step.h"

namespace hone::cli {
namespace {

// For "step.hone": "step.state.npz".
std::string state_path(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".state.npz").string();
}

int64_t bytes_of(std::span<const NamedTensor> tensors) {
  int64_t bytes = 0;
  for (const NamedTensor& each : tensors) bytes += each.tensor.type().static_bytes();
  return bytes;
}

// Stores less, where that is asked for.
Status fit(TrainingStep& step, const MemoryBudget& budget, Console& console) {
  if (budget.kind == MemoryBudget::Kind::all) return {};
  constexpr uint32_t kLoss[] = {0};
  SmallerStep smaller = HONE_TRY(within_budget(step.graph, kLoss, budget, HONE_TRY(host_target()),
                                               {.cancel = &console.cancel()}));
  console.note("temporaries take {}; {} with everything stored; {} ops are computed again",
               format_bytes(smaller.bytes), format_bytes(smaller.bytes_all), smaller.nodes);
  step.graph = std::move(smaller.graph);
  return {};
}

}  // namespace

Status cmd_grad(const Arguments& arguments, Console& console) {
  if (!arguments.given("output"))
    return usage_error("'hone grad' needs --output").with_hint("-o step.hone, or -o -");
  const std::string path = arguments.text("output");
  StepOptions options;
  options.loss = arguments.text("loss");
  options.frozen = arguments.list("freeze");
  if (arguments.text("optimizer") != "none")
    options.optimizer = HONE_TRY(find_optimizer(arguments.text("optimizer")));
  const MemoryBudget budget = HONE_TRY(parse_memory_budget(arguments.text("memory")));
  if (path != "-") HONE_TRY(check_writable(state_path(path)));
  const ExportOptions onnx = HONE_TRY(onnx_options(arguments, path));
  const Graph model = HONE_TRY(given_graph(arguments.text("MODEL"), arguments, console));
  TrainingStep step = HONE_TRY(training_step(model, options));
  HONE_TRY(fit(step, budget, console));
  HONE_TRY(write_model(model_of(step.graph), path, console, onnx));
  if (path == "-") return {};
  HONE_TRY(write_npz(state_path(path), step.state));
  console.note("wrote {}: {} tensors, {}, with which a first step begins", state_path(path),
               step.state.size(), format_bytes(bytes_of(step.state)));
  return {};
}

}  // namespace hone::cli
