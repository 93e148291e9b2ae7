#include "planner/frame.h"

#include <algorithm>

#include "ir/op_facts.h"
#include "plan/value_names.h"
#include "planner/order.h"
#include "target/estimate.h"

namespace hone {

Result<PlanningFrame> PlanningFrame::open(const Graph& source, Plan& plan, Plan& whole,
                                          const Choosers& choosers) {
  return PlanningFrame(source, plan, whole, choosers, HONE_TRY(hone::planned(plan, source)));
}

PlanningFrame::PlanningFrame(const Graph& source, Plan& plan, Plan& whole, const Choosers& choosers,
                             PlannedGraph planned)
    : source_(source),
      graph_(planned.graph),
      users_(*graph_),
      plan_(plan),
      whole_(whole),
      choosers_(choosers),
      planned_(std::move(planned)) {
  for (const Step& step : planned_.steps) said_.insert(step.name);
  freedom_ = open_decisions();
}

FusionFreedom PlanningFrame::open_decisions() const {
  FusionFreedom freedom;
  // Images between convs may have their channels in blocks of a vector.
  freedom.block = static_cast<int64_t>(vector_bytes(choosers_.usual.target().isa) / 4);
  freedom.is_free.assign(graph_->node_count(), false);
  freedom.may_be_view.assign(graph_->node_count(), false);
  freedom.has_memory.assign(graph_->value_count(), false);
  for (uint32_t i = 0; i < graph_->value_count(); ++i)
    freedom.has_memory[i] = plan_.layout.contains(name(ValueId{i})) ||
                            plan_.offset.contains(name(ValueId{i})) ||
                            plan_.copy.contains(name(ValueId{i}));
  for (const Step& step : planned_.steps) {
    if (!step.name.empty()) continue;
    const NodeId n = step.nodes[0];
    freedom.is_free[n.index] = true;
    const std::span<const ValueId> operands = graph_->operands(n);
    const bool is_on = joins_operands(graph_->opcode(n)) ? on().concat_views : on().views;
    freedom.may_be_view[n.index] = is_on && !plan_.view.contains(name(graph_->result(n))) &&
                                   !freedom.has_memory[graph_->result(n).index] &&
                                   !operands.empty() && !operands[0].is_none() &&
                                   !plan_.layout.contains(name(operands[0]));
  }
  // Views leave alone what changes in place, and what a concat joins in memory.
  const auto keep = [&](NodeId n) {
    for (ValueId v : graph_->operands(n))
      if (!v.is_none()) freedom.may_be_view[graph_->producer(v).index] = false;
  };
  for (const Step& step : planned_.steps) {
    if (!step.in_place) continue;
    keep(step.nodes[0]);
    for (ValueId v : {step.reads[0], step.writes[0]}) freedom.has_memory[v.index] = true;
  }
  for (NodeId n : planned_.concat)
    if (n != NodeId{}) keep(n);
  for (uint32_t i = 0; i < graph_->value_count(); ++i)
    if (planned_.concat[i] != NodeId{}) freedom.has_memory[i] = true;
  return freedom;
}

// ---- Edits --------------------------------------------------------------------------------------

FrameEditor& PlanningFrame::edited() {
  if (editor_ == nullptr)
    editor_ = PlanEditor::over(planned_, choosers_.usual.target(), choosers_.usual.threads());
  return editor_->main();
}

PlanCost PlanningFrame::price(ScheduleChooser& chooser) {
  const auto choose = [&chooser](const auto& facts, int64_t /*threads*/) -> Result<PricedSchedule> {
    return *HONE_TRY(chooser.choose(facts));
  };
  return {edited().whole(), chooser.cost(), chooser.known(), choose};
}

Fusion PlanningFrame::edited_groups() {
  Fusion edited;
  for (const Step& step : this->edited().planned().steps)
    if (!said_.contains(step.name)) edited.groups.push_back(step.nodes);
  std::ranges::sort(edited.groups, {}, [](const auto& nodes) { return nodes.back(); });
  return edited;
}

// ---- The plan -----------------------------------------------------------------------------------

bool PlanningFrame::take(const Fusion& fusion) {
  Plan before = plan_;
  write(fusion);
  editor_.reset();
  Result<PlannedGraph> formed = hone::planned(plan_, source_);
  // A group may read what a node changes in place, and its result.
  if (!formed.ok() || order_steps(*formed).size() != formed->steps.size()) {
    plan_ = std::move(before);
    return false;
  }
  planned_ = std::move(*formed);
  return true;
}

Status PlanningFrame::form(const Fusion& fusion) {
  write(fusion);
  return read();
}

void PlanningFrame::write(const Fusion& fusion) {
  for (NodeId n : fusion.views) plan_.view[name(graph_->result(n))] = true;
  std::erase_if(plan_.fuse, [&](const Group& group) { return !said_.contains(group.kernel); });
  size_t next = 0;
  for (const std::vector<NodeId>& nodes : fusion.groups) {
    while (said_.contains(fmt::format("k{}", next))) ++next;
    Group group{fmt::format("k{}", next++), {}};
    for (NodeId n : nodes) group.nodes.push_back(name(graph_->result(n)));
    plan_.fuse.push_back(std::move(group));
  }
}

Status PlanningFrame::read() {
  editor_.reset();
  planned_ = HONE_TRY(hone::planned(plan_, source_));
  return {};
}

void PlanningFrame::take_layouts(const std::vector<Layout>& layouts) {
  planned_.layout = layouts;
  for (uint32_t i = 0; i < graph_->value_count(); ++i) {
    if (!planned_.has_layout(ValueId{i})) continue;
    planned_.said_layout[i] = true;
    plan_.layout.try_emplace(name(ValueId{i}), layouts[i]);
  }
}

Status PlanningFrame::make_copies() {
  if (copies_.empty()) return {};
  const ValueNames names(*graph_);
  for (const LayoutCopy& each : copies_) {
    Copy copy{name(each.of), {}};
    for (NodeId n : each.readers) copy.readers.push_back(step_name(*graph_, n));
    std::string name = copy.of + ".copy";
    for (int next = 2; names.has(name) || plan_.copy.contains(name); ++next)
      name = fmt::format("{}.copy_{}", copy.of, next);
    plan_.copy.emplace(name, std::move(copy));
    plan_.layout.emplace(name, each.layout);
  }
  copies_.clear();
  HONE_TRY(read());
  graph_ = planned_.graph;
  users_ = Users(*graph_);
  return {};
}

}  // namespace hone
