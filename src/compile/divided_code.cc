#include "compile/divided_code.h"

#include <map>
#include <utility>

#include "cost/system_timeline.h"
#include "plan/planned.h"
#include "rewrite/passes.h"
#include "shard/batch_part.h"

namespace hone {

namespace {

// Whatever exchanges data, in the order of the graph.
void keep_order(const Graph& graph, Plan& plan) {
  std::vector<std::string> order;
  for (NodeId n : graph.nodes())
    if (has_effect(graph, n)) order.push_back(step_name(graph, n));
  if (order.size() > 1) plan.order = std::move(order);
  for (const RegionRef& region : regions_of(graph)) {
    Plan inner;
    keep_order(*region.graph, inner);
    if (inner != Plan()) plan.region[region.key] = std::move(inner);
  }
}

Status add_code(BatchPart part, const Target& target, CompileOptions options, const System* system,
                DividedCode& made) {
  Graph graph = std::move(part.graph);
  if (part.has_sums) {
    graph = HONE_TRY(name_values(graph));
    keep_order(graph, options.plan);
    if (system != nullptr) HONE_TRY(add_best_schedules(graph, *system, options.plan));
    options.drops_unfit = true;  // passes may have moved a loop; the order is checked below
  }
  Compilation compilation(std::move(graph), target, std::move(options));
  made.images.push_back(*HONE_TRY(compilation.image()));
  made.plans.push_back(print(*HONE_TRY(compilation.plan())));
  made.prices = compilation.cost().name();
  return {};
}

}  // namespace

std::vector<image::Port> ports_of(const Graph& graph, std::span<const ValueId> values,
                                  std::string_view kind) {
  std::vector<image::Port> all;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string_view name = graph.name(values[i]);
    all.push_back(
        {name.empty() ? fmt::format("{}{}", kind, i) : std::string(name), graph.type(values[i])});
  }
  return all;
}

Result<DividedCode> divided_code(const Graph& whole, const BatchInputs& batch, int64_t devices,
                                 const Target& target, const CompileOptions& options,
                                 const System* system) {
  DividedCode made = {.division = {.rows = batch.rows},
                      .inputs = ports_of(whole, whole.inputs(), "input"),
                      .outputs = ports_of(whole, whole.outputs(), "output")};
  made.division.inputs.assign(made.inputs.size(), kWhole);
  made.division.outputs.assign(made.outputs.size(), kWhole);
  const std::vector<BatchShare> shares = batch_shares(batch.rows, devices);
  if (system != nullptr && system->device_count() != std::ssize(shares)) system = nullptr;
  const auto add = [&](const BatchShare& share, uint32_t code) {
    made.division.shares.push_back({share.first, share.count, code});
  };
  if (shares.size() == 1) {
    HONE_TRY(add_code({.graph = whole}, target, options, nullptr, made));
    add(shares[0], 0);
    return made;
  }
  std::map<int64_t, uint32_t> known;  // by rows, where the place does not matter
  for (const BatchShare& share : shares) {
    if (const auto found = known.find(share.count); found != known.end()) {
      add(share, found->second);
      continue;
    }
    BatchPart part = HONE_TRY(batch_part(whole, batch.dims, share));
    made.division.inputs = part.inputs;
    made.division.outputs = part.outputs;
    const auto code = static_cast<uint32_t>(made.images.size());
    if (!part.depends_on_first) known.emplace(share.count, code);
    HONE_TRY(add_code(std::move(part), target, options, system, made));
    add(share, code);
  }
  return made;
}

}  // namespace hone
