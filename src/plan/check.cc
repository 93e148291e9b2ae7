#include "plan/collectives.h"
#include "plan/edit.h"

// Edits decide what is legal; here is what a complete plan must not leave open.

namespace hone {
namespace {

Status check_frame_complete(const FrameEditor& frame) {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  const auto none = [&](std::string_view decision, ValueId v) {
    return bad_input("there is none").within(fmt::format("{} {}", decision, graph.label(v)));
  };
  for (const Step& step : planned.steps)
    if (step.name.empty())
      return bad_input("{} is not in a group, and not a view", label(graph, step)).within("fuse");
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    if (planned.has_layout(ValueId{i}) && !planned.said_layout[i])
      return none("layout", ValueId{i});
  for (const Step& step : planned.steps)
    if (!step.is_kernel && exchanges_data(graph.op(step.nodes[0])) &&
        !planned.collective.contains(step.nodes[0].index))
      return none("collective", graph.result(step.nodes[0]));
  std::vector<bool> stands(planned.steps.size());
  for (uint32_t s : planned.order) stands[s] = true;
  for (size_t s = 0; s < stands.size(); ++s)
    if (!stands[s])
      return bad_input("{} is missing", label(graph, planned.steps[s])).within("order");
  const uint32_t placed = graph.is_static() ? static_cast<uint32_t>(graph.value_count()) : 0;
  for (uint32_t i = 0; i < placed; ++i)
    if (planned.home[i] == Home::temporary && planned.offset[i] == kNoOffset)
      return none("offset", ValueId{i});
  for (const auto& [key, inner] : frame.regions()) {
    Status good = inner->is_said() ? check_frame_complete(*inner) : bad_input("it has no plan");
    if (!good.ok()) return std::move(good).error().within("region %" + key);
  }
  return {};
}

// Beside its header.
bool is_empty(const Plan& plan) {
  Plan header;
  header.graph = plan.graph;
  header.graph_hash = plan.graph_hash;
  header.target = plan.target;
  header.threads = plan.threads;
  return plan == header;
}

}  // namespace

Status check_graph(const Plan& plan, const Graph& graph) {
  const uint64_t hash = hash_without_weights(graph);
  if (plan.graph_hash == hash) return {};
  return bad_input("the plan is for another graph: its hash is 0x{:016x}, '@{}' has 0x{:016x}",
                   plan.graph_hash, graph.name(), hash);
}

Status check_target(const Plan& plan, const Target& target) {
  if (plan.target == target.name) return {};
  return bad_input("the plan is for the target '{}', not for '{}'", plan.target, target.name);
}

Status check(const Plan& plan, const Graph& graph, const Target& target) {
  if (is_empty(plan)) return check_header(plan, graph, target);
  HONE_TRY(PlanEditor::open(graph, plan, target));
  return {};
}

Status check_complete(const Plan& plan, const Graph& graph, const Target& target) {
  if (plan.graph_hash == 0) HONE_TRY(check_graph(plan, graph));
  HONE_TRY(check_target(plan, target));
  if (!plan.threads) return bad_input("there is none").within("threads");
  const std::unique_ptr<PlanEditor> editor = HONE_TRY(PlanEditor::open(graph, plan, target));
  HONE_TRY(check_frame_complete(editor->main()));
  for (const auto& [hash, kernel] : editor->kernels().by_hash)
    if (!plan.schedule.contains(hash))
      return bad_input("@{} has none", kernel.first->planned().steps[kernel.second].name)
          .within(fmt::format("schedule 0x{:016x}", hash));
  return {};
}

}  // namespace hone
