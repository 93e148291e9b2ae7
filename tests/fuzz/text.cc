#include <cstdint>
#include <cstdlib>

#include "ir/model_text.h"
#include "ir/reference/evaluate.h"
#include "ir/summary.h"
#include "rewrite/passes.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

namespace {

// The steps that every command takes with a graph that it read: describe, transform, evaluate.
void use(const hone::Graph& graph) {
  constexpr size_t kMaxNodes = 64;
  if (graph.node_count() > kMaxNodes) return;
  (void)hone::summarize(graph);
  hone::Result<hone::Graph> bound = hone::specialize(graph, hone::smallest_bindings(graph, {}));
  if (!bound.ok()) return;
  std::vector<hone::Pass> passes = hone::parse_passes("cse,expand,dce").value();
  (void)hone::run_passes(*bound, passes);

  hone::Result<hone::GraphSummary> summary = hone::summarize(*bound);
  if (!summary.ok() || summary->flops > 1e6 || summary->peak_elements > 1 << 20) return;
  std::vector<hone::Tensor> inputs;
  for (hone::Type type : bound->input_types()) inputs.push_back(hone::Tensor::zeros(type));
  (void)hone::evaluate(*bound, inputs, {.max_bytes = 1 << 26, .max_iterations = 100});
}

}  // namespace

// Parsing never crashes; what verifies prints as a text that means the same, and can be used.
HONE_FUZZ(text) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  hone::Result<hone::Model> model = hone::parse_model(text);
  if (!model.ok() || !hone::verify(*model).ok()) return;
  std::string printed = hone::print(*model).value();
  hone::Result<hone::Model> again = hone::parse_model(printed);
  HONE_CHECK(again.ok(), "{}\n{}", again.error().to_string(), printed);
  HONE_CHECK(hone::verify(*again).ok(), "{}", printed);
  const std::string reprinted = hone::print(*again).value();
  HONE_CHECK(reprinted == printed, "{}\nis not\n{}", reprinted, printed);
  for (const hone::Graph* graph : hone::graphs_of(*model)) use(*graph);
}

}  // namespace hone::HONE_FILE
