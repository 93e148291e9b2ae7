#include <algorithm>

#include "plan/copies.h"
#include "plan/edit.h"

// The whole plan: what its frames share, and its text.

namespace hone {

PlanEditor::PlanEditor(const Plan& plan, const Target& target) : target_(target) {
  plan_.graph = plan.graph;
  plan_.graph_hash = plan.graph_hash;
  plan_.target = plan.target;
  plan_.threads = plan.threads;
}

// ---- Reading ------------------------------------------------------------------------------------

namespace {

Status check_threads(std::optional<int64_t> threads, const Target& target) {
  if (!threads || (*threads >= 1 && *threads <= target.cores)) return {};
  return bad_input("{} is outside of 1..{}, the target's cores", *threads, target.cores)
      .within("threads");
}

}  // namespace

Status check_header(const Plan& plan, const Graph& graph, const Target& target) {
  if (plan.graph_hash != 0) HONE_TRY(check_graph(plan, graph));
  if (!plan.target.empty()) HONE_TRY(check_target(plan, target));
  return check_threads(plan.threads, target);
}

Result<std::unique_ptr<PlanEditor>> PlanEditor::open(const Graph& graph, const Plan& plan,
                                                     const Target& target) {
  HONE_TRY(check_header(plan, graph, target));
  std::unique_ptr<PlanEditor> editor(new PlanEditor(plan, target));
  editor->main_ = HONE_TRY(editor->open_frame(graph, plan, true));
  HONE_TRY(editor->read_schedules(plan.schedule));
  editor->is_reading_ = false;
  return editor;
}

std::unique_ptr<PlanEditor> PlanEditor::over(PlannedGraph planned, const Target& target,
                                             int64_t threads) {
  Plan plan;
  plan.threads = threads;
  std::unique_ptr<PlanEditor> editor(new PlanEditor(plan, target));
  editor->main_ = std::make_unique<FrameEditor>(*editor, std::move(planned), true);
  HONE_CHECK(editor->main_->hash_all().ok(), "there are no schedules that do not fit");
  editor->is_reading_ = false;
  return editor;
}

Result<PlannedGraph> planned(const Plan& plan, const Graph& graph) {
  static const Target any;
  PlannedGraph nothing;
  nothing.graph = HONE_TRY(with_copies(graph, plan.copy));
  PlanEditor editor({}, any);
  FrameEditor frame(editor, std::move(nothing), true);
  HONE_TRY(frame.read(plan));
  return std::move(frame.planned_);
}

Result<std::unique_ptr<FrameEditor>> PlanEditor::open_frame(const Graph& graph, const Plan& plan,
                                                            bool is_said) {
  PlannedGraph nothing;
  nothing.graph = GraphRef(GraphRef(), &graph);
  auto frame = std::make_unique<FrameEditor>(*this, std::move(nothing), is_said);
  HONE_TRY(frame->read_copies(plan.copy));
  HONE_TRY(frame->read(plan));
  HONE_TRY(frame->check_whole());
  HONE_TRY(frame->hash_all());
  for (const RegionRef& region : regions_of(graph)) {
    const auto inner = plan.region.find(region.key);
    Result<std::unique_ptr<FrameEditor>> opened =
        open_region(region, inner == plan.region.end() ? nullptr : &inner->second);
    if (!opened.ok()) return std::move(opened).error().within("region %" + region.key);
    frame->regions_[region.key] = *std::move(opened);
  }
  for (const auto& [key, inner] : plan.region)
    if (!frame->regions_.contains(key))
      return bad_input("the graph has no such region").within("region %" + key);
  return frame;
}

Result<std::unique_ptr<FrameEditor>> PlanEditor::open_region(const RegionRef& region,
                                                             const Plan* plan) {
  static const Plan nothing;
  if (plan != nullptr && (plan->threads || !plan->schedule.empty()))
    return bad_input("only the whole plan has threads and schedules, not a region");
  return open_frame(*region.graph, plan == nullptr ? nothing : *plan, plan != nullptr);
}

// A plan may have a schedule for a kernel that nobody has formed yet.
Status PlanEditor::read_schedules(const std::map<uint64_t, Schedule>& schedules) {
  if (schedules.empty()) return {};
  const Kernels kernels = this->kernels();
  for (const auto& [hash, schedule] : schedules) {
    if (const auto kernel = kernels.by_hash.find(hash); kernel != kernels.by_hash.end())
      HONE_TRY(check_schedule(schedule, *kernel->second.first, kernel->second.second));
    else if (kernels.all_known)
      return bad_input("no kernel of the graph has this hash")
          .within(fmt::format("schedule 0x{:016x}", hash));
  }
  plan_.schedule = schedules;
  return {};
}

PlanEditor::Kernels PlanEditor::kernels() const {
  Kernels kernels;
  const auto add = [&](const FrameEditor& frame, const auto& self) -> void {
    const PlannedGraph& planned = frame.planned();
    const auto is_open = [&](ValueId v) {
      return planned.has_layout(v) && !planned.said_layout[v.index];
    };
    for (uint32_t s = 0; s < planned.steps.size(); ++s) {
      const Step& step = planned.steps[s];
      const bool is_known = !step.name.empty() && std::ranges::none_of(step.reads, is_open) &&
                            std::ranges::none_of(step.writes, is_open);
      if (step.is_kernel && is_known) kernels.by_hash.try_emplace(frame.kernel(s).hash, &frame, s);
      kernels.all_known = kernels.all_known && (is_known || !step.is_kernel);
    }
    kernels.all_known = kernels.all_known && frame.is_said();
    for (const auto& [key, inner] : frame.regions()) self(*inner, self);
  };
  add(*main_, add);
  return kernels;
}

Status PlanEditor::check_schedule(const Schedule& schedule, const FrameEditor& frame,
                                  uint32_t step) const {
  Status good = hone::check_schedule(frame.body(step), schedule, target_);
  if (good.ok()) return {};
  return std::move(good).error().within(fmt::format(
      "schedule 0x{:016x}, @{}", frame.kernel(step).hash, frame.planned().steps[step].name));
}

// ---- Schedules and threads ----------------------------------------------------------------------

const Schedule* PlanEditor::schedule(uint64_t kernel) const {
  const auto found = plan_.schedule.find(kernel);
  return found == plan_.schedule.end() ? nullptr : &found->second;
}

Result<Undo> PlanEditor::set_threads(std::optional<int64_t> threads) {
  HONE_TRY(check_threads(threads, target_));
  const Undo before = now();
  later([this, old = std::exchange(plan_.threads, threads)] {
    plan_.threads = old;
    tell(*main_, kNoStep);
  });
  tell(*main_, kNoStep);
  return before;
}

Result<Undo> PlanEditor::set_schedule(const FrameEditor& frame, uint32_t step,
                                      std::optional<Schedule> schedule) {
  const uint64_t hash = frame.kernel(step).hash;
  if (frame.kernel(step) == KernelKey())
    return bad_input("no kernel of the graph has this hash")
        .within(fmt::format("schedule 0x{:016x}", hash));
  if (schedule) HONE_TRY(check_schedule(*schedule, frame, step));
  const Undo before = now();
  put_schedule(hash, std::move(schedule));
  return before;
}

void PlanEditor::put_schedule(uint64_t kernel, std::optional<Schedule> schedule) {
  std::optional<Schedule> old;
  if (const Schedule* found = this->schedule(kernel)) old = *found;
  const auto put = [this](uint64_t hash, const std::optional<Schedule>& one) {
    if (one)
      plan_.schedule[hash] = *one;
    else
      plan_.schedule.erase(hash);
    if (steps_.contains(hash)) tell_all(*main_, hash);
  };
  put(kernel, schedule);
  later([put, kernel, old = std::move(old)] { put(kernel, old); });
}

void PlanEditor::tell_all(const FrameEditor& frame, uint64_t kernel) const {
  for (uint32_t s = 0; s < frame.kernels_.size(); ++s)
    if (frame.kernels_[s].hash == kernel) tell(frame, s);
  for (const auto& [key, inner] : frame.regions_) tell_all(*inner, kernel);
}

void PlanEditor::count(uint64_t kernel, int change) {
  const auto at = steps_.try_emplace(kernel).first;
  at->second += static_cast<uint32_t>(change);
  if (at->second == 0) steps_.erase(at);
}

void PlanEditor::leave(uint64_t kernel) {
  count(kernel, -1);
  later([this, kernel] { count(kernel, 1); });
  if (!steps_.contains(kernel) && schedule(kernel) != nullptr) put_schedule(kernel, std::nullopt);
}

Status PlanEditor::enter(uint64_t kernel, const FrameEditor& frame, uint32_t step) {
  const bool is_first = !steps_.contains(kernel);
  count(kernel, 1);
  later([this, kernel] { count(kernel, -1); });
  const Schedule* known = is_first ? schedule(kernel) : nullptr;
  return known == nullptr ? Status() : check_schedule(*known, frame, step);
}

void PlanEditor::undo(Undo to) {
  HONE_CHECK(to.changes <= journal_.size(), "an edit that was undone before");
  while (journal_.size() > to.changes) {
    journal_.back()();
    journal_.pop_back();
  }
}

// ---- Text ---------------------------------------------------------------------------------------

Plan PlanEditor::to_plan() const {
  Plan plan = main_->to_plan();
  plan.graph = plan_.graph;
  plan.graph_hash = plan_.graph_hash;
  plan.target = plan_.target;
  plan.threads = plan_.threads;
  plan.schedule = plan_.schedule;
  return plan;
}

Plan FrameEditor::to_plan() const {
  Plan plan;
  const GraphView graph = view();
  const auto name = [&](ValueId v) { return std::string(graph.name(v)); };
  for (const CopyOverlay& copy : planned_.copies.copies()) {
    if (copy.readers.empty()) continue;
    Copy& one = plan.copy[copy.name];
    one.of = name(copy.of);
    for (NodeId n : copy.readers) one.readers.push_back(step_name(graph, n));
  }
  for (const Step& step : planned_.steps) {
    if (!step.is_kernel || step.name.empty()) continue;
    Group group{step.name, {}};
    for (NodeId n : step.nodes) group.nodes.push_back(step_name(graph, n));
    plan.fuse.push_back(std::move(group));
  }
  for (uint32_t i = 0; i < planned_.said_view.size(); ++i) {
    const NodeId n{i};
    if (planned_.said_view[i] != Said::nothing)
      plan.view[step_name(graph, n)] = planned_.said_view[i] == Said::yes;
    if (planned_.said_in_place[i] != Said::nothing)
      plan.in_place[step_name(graph, n)] = planned_.said_in_place[i] == Said::yes;
  }
  for (uint32_t i = 0; i < planned_.said_layout.size(); ++i) {
    if (planned_.said_layout[i]) plan.layout[name(ValueId{i})] = planned_.layout[i];
    if (planned_.offset[i] != kNoOffset) plan.offset[name(ValueId{i})] = planned_.offset[i];
  }
  for (const auto& [n, schedule] : planned_.collective)
    plan.collective[step_name(graph, NodeId{n})] = schedule;
  for (uint32_t step : planned_.order) plan.order.push_back(planned_.steps[step].name);
  for (const auto& [key, frame] : regions_) {
    Plan inner = frame->to_plan();
    if (frame->is_said_ || inner != Plan()) plan.region[key] = std::move(inner);
  }
  return plan;
}

}  // namespace hone
