#include "base/hash.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/evaluation.h"
#include "cli/outputs.h"
#include "cli/source.h"
#include "report/summary.h"
#include "report/summary_text.h"
#include "zoo/inputs.h"

#include <chrono>

namespace hone::cli {
namespace {

// A real network, small enough that its first result is there in seconds.
constexpr std::string_view kModel = "zoo:squeezenet";

// Of the bits of all outputs: equal if nothing has changed.
uint64_t digest(std::span<const Tensor> tensors) {
  Hasher hasher;
  for (const Tensor& tensor : tensors) hasher.add(tensor.content_hash());
  return hasher.value();
}

}  // namespace

// What `hone` does without a command.
Status cmd_demo(const Arguments&, Console& console) {
  console.print("hone {}: {}\n\n", HONE_VERSION, console.styled(Style::bold, kModel));

  // Build and describe.
  const Graph graph = HONE_TRY(load_source(std::string(kModel), console));
  const GraphSummary summary = HONE_TRY(summarize(graph));
  console.print("{}\n", summary_text(summary));

  // Evaluate.
  const std::vector<Tensor> inputs = HONE_TRY(random_inputs(graph, 0));
  const auto start = std::chrono::steady_clock::now();
  const std::vector<Tensor> outputs =
      HONE_TRY(evaluate_with_progress(graph, inputs, {.numerics = Numerics::wide}, console));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;

  // Report.
  console.print("{}\n", outputs_table(output_names(graph), outputs));
  console.print("reference  {}, {} multiply-adds per second, seed 0, digest {:016x}\n\n",
                format_seconds(elapsed.count()), format_count(summary.macs / elapsed.count()),
                digest(outputs));
  console.write(
      "Next:\n"
      "  hone zoo list                     the built-in models\n"
      "  hone inspect zoo:resnet50         what is in one\n"
      "  hone run zoo:bert_base,size=tiny  run one\n"
      "  hone help                         all commands\n");
  return {};
}

}  // namespace hone::cli
