#include "planner/planner.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "cost/analytic.h"
#include "plan/in_place.h"
#include "plan/planned.h"
#include "plan/value_names.h"
#include "planner/chains.h"
#include "planner/fusion.h"
#include "planner/layouts.h"
#include "planner/memory.h"
#include "planner/order.h"
#include "planner/schedules.h"

namespace hone {
namespace {

// By the Cost that decides about all, and by the one that may know better schedules.
struct Choosers {
  ScheduleChooser& all;
  ScheduleChooser* schedules = nullptr;
};

// Of a graph or a region. Schedules go to the whole plan.
class FramePlanner {
 public:
  FramePlanner(const Graph& source, Plan& plan, Plan& whole, Choosers& choosers, PlannedGraph frame)
      : source_(source),
        held_(frame.graph),
        graph_(*held_),
        users_(graph_),
        plan_(plan),
        whole_(whole),
        choosers_(choosers),
        chooser_(choosers.all),
        on_(chooser_.heuristics()),
        frame_(std::move(frame)) {}

  static Status decide(const Graph& source, Plan& plan, Plan& whole, Choosers& choosers) {
    PlannedGraph frame = HONE_TRY(planned(plan, source));
    return FramePlanner(source, plan, whole, choosers, std::move(frame)).run();
  }

 private:
  Status run() {
    HONE_TRY(groups());
    HONE_TRY(updates());
    if (!HONE_TRY(layouts())) return finish();
    // Copies are values that this frame does not have.
    PlannedGraph frame = HONE_TRY(planned(plan_, source_));
    return FramePlanner(source_, plan_, whole_, choosers_, std::move(frame)).finish();
  }

  Status finish() {
    HONE_TRY(schedules());
    order();
    HONE_TRY(offsets());
    for (const RegionRef& region : regions_of(graph_))
      HONE_TRY(decide(*region.graph, plan_.region[region.key], whole_, choosers_));
    return {};
  }

  std::string name(ValueId v) const { return std::string(graph_.name(v)); }

  FusionFreedom freedom() const {
    FusionFreedom freedom;
    freedom.block = image_block(chooser_.target());
    freedom.is_free.assign(graph_.node_count(), false);
    freedom.may_be_view.assign(graph_.node_count(), false);
    freedom.has_memory.assign(graph_.value_count(), false);
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      freedom.has_memory[i] = plan_.layout.contains(name(ValueId{i})) ||
                              plan_.offset.contains(name(ValueId{i})) ||
                              plan_.copy.contains(name(ValueId{i}));
    for (const Step& step : frame_.steps) {
      if (!step.name.empty()) continue;
      const NodeId n = step.nodes[0];
      freedom.is_free[n.index] = true;
      const std::span<const ValueId> operands = graph_.operands(n);
      const bool is_on = graph_.opcode(n) == Opcode::concat ? on_.concat_views : on_.views;
      freedom.may_be_view[n.index] = is_on && !plan_.view.contains(name(graph_.result(n))) &&
                                     !freedom.has_memory[graph_.result(n).index] &&
                                     !operands.empty() && !operands[0].is_none() &&
                                     !plan_.layout.contains(name(operands[0]));
    }
    // Views leave alone what changes in place, and what a concat joins in memory.
    const auto keep = [&](NodeId n) {
      for (ValueId v : graph_.operands(n))
        if (!v.is_none()) freedom.may_be_view[graph_.producer(v).index] = false;
    };
    for (const Step& step : frame_.steps) {
      if (!step.in_place) continue;
      keep(step.nodes[0]);
      for (ValueId v : {step.reads[0], step.writes[0]}) freedom.has_memory[v.index] = true;
    }
    for (NodeId n : frame_.concat)
      if (n != NodeId{}) keep(n);
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      if (frame_.concat[i] != NodeId{}) freedom.has_memory[i] = true;
    return freedom;
  }

  Status groups() {
    freedom_ = this->freedom();
    const FusionFreedom& freedom = freedom_;
    for (const Step& step : frame_.steps) said_.insert(step.name);
    // What is said to be in place does not go with all groups: one may read what a node changes,
    // and its result, or an input elsewhere than where it writes.
    const bool has_updates = std::ranges::any_of(
        frame_.steps, [](const Step& step) { return step.in_place || !step.donors.empty(); });
    if (take(fuse(graph_, users_, freedom, on_), has_updates))
      return on_.chains ? chains(freedom, has_updates) : Status();
    Fusion alone;
    for (NodeId n : graph_.nodes())
      if (freedom_.is_free[n.index]) alone.groups.push_back({n});
    form(alone);
    frame_ = HONE_TRY(planned(plan_, source_));
    return {};
  }

  Status chains(const FusionFreedom& freedom, bool has_updates) {
    {
      PlanCost price = this->price();
      if (!HONE_TRY(join_chains(editor().main(), freedom, price))) return {};
    }
    const Fusion joined = edited_groups();
    editor_.reset();  // which may be ahead of the frame: joins that do not fit are dropped
    take(joined, has_updates);
    return {};
  }

  // Groups as the editor has them.
  Fusion edited_groups() {
    Fusion edited;
    for (const Step& step : editor().main().planned().steps)
      if (!said_.contains(step.name)) edited.groups.push_back(step.nodes);
    std::ranges::sort(edited.groups, {}, [](const auto& nodes) { return nodes.back(); });
    return edited;
  }

  // Forms the groups, unless they do not fit what the plan says.
  bool take(const Fusion& fusion, bool has_updates) {
    Plan before = plan_;
    form(fusion);
    Result<PlannedGraph> formed = planned(plan_, source_);
    if (!formed.ok() || (has_updates && order_steps(*formed).size() != formed->steps.size())) {
      plan_ = std::move(before);
      return false;
    }
    frame_ = std::move(*formed);
    editor_.reset();
    return true;
  }

  // In place of those that the planner has formed before.
  void form(const Fusion& fusion) {
    for (NodeId n : fusion.views) plan_.view[name(graph_.result(n))] = true;
    std::erase_if(plan_.fuse, [&](const Group& group) { return !said_.contains(group.kernel); });
    size_t next = 0;
    for (const std::vector<NodeId>& nodes : fusion.groups) {
      while (said_.contains(fmt::format("k{}", next))) ++next;
      Group group{fmt::format("k{}", next++), {}};
      for (NodeId n : nodes) group.nodes.push_back(name(graph_.result(n)));
      plan_.fuse.push_back(std::move(group));
    }
  }

  // Of the frame as it is.
  PlanEditor& editor() {
    if (editor_ == nullptr)
      editor_ = PlanEditor::over(frame_, chooser_.target(), chooser_.threads());
    return *editor_;
  }

  PlanCost price() {
    const auto choose = [this](const auto& facts, int64_t /*threads*/) -> Result<PricedSchedule> {
      return *HONE_TRY(chooser_.choose(facts));
    };
    return {editor(), chooser_.cost(), chooser_.known(), choose};
  }

  // Of nodes whose group was open: the others may have schedules. What the plan says of what they
  // change, of the result or of memory may not fit either.
  Status updates() {
    if (!on_.in_place) return {};
    const std::vector<NodeId> found = more_in_place(frame_, users_, [&](NodeId n) {
      if (!freedom_.is_free[n.index]) return false;
      const ValueId changed = changed_by(graph_, n);
      const std::string result = name(graph_.result(n)), operand = name(changed);
      return !plan_.in_place.contains(result) && !plan_.layout.contains(result) &&
             !plan_.layout.contains(operand) && !plan_.offset.contains(result) &&
             !plan_.offset.contains(name(frame_.base[changed.index]));
    });
    for (NodeId n : found) plan_.in_place[name(graph_.result(n))] = true;
    if (found.empty()) return {};
    frame_ = HONE_TRY(planned(plan_, source_));
    editor_.reset();
    return {};
  }

  // Whether weights have got copies. Those whose group was said may have schedules, as in
  // updates().
  Result<bool> layouts() {
    std::vector<bool> open;  // by step
    for (const Step& step : frame_.steps)
      open.push_back(step.is_kernel && freedom_.is_free[step.nodes[0].index]);
    std::vector<NodeId> joined;  // concats, by the planner
    for (NodeId n : graph_.nodes())
      if (graph_.opcode(n) == Opcode::concat && frame_.is_view(n) && freedom_.is_free[n.index])
        joined.push_back(n);
    FrameEditor& edited = editor().main();
    std::vector<LayoutCopy> copies;
    bool is_chained = false;
    Fusion laid;
    std::vector<Layout> layouts;
    {
      PlanCost price = this->price();
      copies = HONE_TRY(choose_layouts(plan_, open, joined, edited, price, on_));
      layouts = edited.planned().layout;
      laid = edited_groups();
      if (on_.image_chains) is_chained = HONE_TRY(join_image_chains(edited, freedom_, price));
      if (on_.pool_chains && HONE_TRY(join_pool_chains(edited, freedom_, price))) is_chained = true;
    }
    std::erase_if(joined, [&](NodeId n) { return edited.planned().is_view(n); });
    for (NodeId n : joined) plan_.view.erase(name(graph_.result(n)));
    if (is_chained || !joined.empty()) {
      const bool fits = take(edited_groups(), /*has_updates=*/true) || take(laid, true);
      HONE_CHECK(fits, "groups that do not fit");
    } else {
      for (uint32_t s = 0; s < frame_.steps.size(); ++s) kernels_.push_back(edited.kernel(s).hash);
    }
    frame_.layout = layouts;
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      if (frame_.has_layout(ValueId{i})) plan_.layout.try_emplace(name(ValueId{i}), layouts[i]);
    if (!copies.empty()) add(copies);
    return !copies.empty();
  }

  void add(const std::vector<LayoutCopy>& copies) {
    const ValueNames names(graph_);
    for (const LayoutCopy& each : copies) {
      Copy copy{name(each.of), {}};
      for (NodeId n : each.readers) copy.readers.push_back(step_name(graph_, n));
      std::string name = copy.of + ".copy";
      for (int next = 2; names.has(name) || plan_.copy.contains(name); ++next)
        name = fmt::format("{}.copy_{}", copy.of, next);
      plan_.copy.emplace(name, std::move(copy));
      plan_.layout.emplace(name, each.layout);
    }
  }

  Status schedules() {
    std::unordered_set<uint64_t> shapes;
    for (uint32_t s = 0; s < frame_.steps.size(); ++s) {
      const Step& step = frame_.steps[s];
      if (!step.is_kernel || !shapes.insert(step_shape(frame_, step)).second) continue;
      const uint64_t kernel =
          kernels_.empty() ? kernel_hash(body_of(frame_, users_, step)) : kernels_[s];
      const auto [at, is_new] = whole_.schedule.try_emplace(kernel);
      if (is_new) at->second = HONE_TRY(schedule(body_of(frame_, users_, step)));
    }
    return {};
  }

  // Another Cost may know a schedule that is surely cheaper.
  Result<Schedule> schedule(const KernelBody& body) {
    const Schedule usual = HONE_TRY(chooser_.choose(body))->schedule;
    if (choosers_.schedules == nullptr) return usual;
    const auto& facts = chooser_.known().facts(kernel_hash(body), [&] { return body; });
    const auto priced = choosers_.schedules->cost().kernel(facts, chooser_.threads());
    if (!priced->lead()) return usual;
    const PricedSchedule& other = *HONE_TRY(choosers_.schedules->choose(body));
    return priced->is_ahead(other.seconds, priced->seconds(usual)) ? other.schedule : usual;
  }

  void order() {
    frame_.order = order_steps(frame_);
    HONE_CHECK(frame_.order.size() == frame_.steps.size(), "steps that wait for each other");
    plan_.order.clear();
    for (uint32_t step : frame_.order) plan_.order.push_back(frame_.steps[step].name);
  }

  Status offsets() {
    if (!graph_.is_static()) return {};
    const std::vector<Lifetime> lives = lifetimes(frame_, frame_.order);
    const MemoryProblem problem = memory_problem(frame_, lives, plan_.offset);
    const MemoryPlan memory =
        HONE_TRY(plan_memory(problem, {.minimize = true, .nodes = kMemoryNodes}));
    if (memory.verdict == MemoryVerdict::infeasible)
      return bad_input("%{} cannot lie where it is said to, with what else is said",
                       name(lives[memory.witness.front()].value))
          .within("offset");
    for (size_t i = 0; i < lives.size(); ++i)
      plan_.offset[name(lives[i].value)] = memory.offsets[i];
    return {};
  }

  const Graph& source_;
  const GraphRef held_;
  const Graph& graph_;  // with copies
  const Users users_;
  Plan& plan_;
  Plan& whole_;
  Choosers& choosers_;
  ScheduleChooser& chooser_;
  const Heuristics& on_;
  PlannedGraph frame_;
  std::unique_ptr<PlanEditor> editor_;  // of the frame; null: nobody has asked for it
  std::set<std::string> said_;          // steps that the plan had names for
  FusionFreedom freedom_;               // that the plan left: in is_free no node with a group
  std::vector<uint64_t> kernels_;       // by step: hashes, as far as they are known
};

}  // namespace

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target) {
  return complete(graph, std::move(partial), target, AnalyticCost(target));
}

Result<Plan> complete(const Graph& graph, Plan partial, const Target& target, const Cost& cost,
                      const PlannerOptions& options) {
  HONE_TRY(check(partial, graph, target));
  Plan plan = partial;
  if (!graph.name().empty()) plan.graph = graph.name();
  plan.graph_hash = hash_without_weights(graph);
  plan.target = target.name;
  if (!plan.threads) plan.threads = target.cores;
  const Cost* const baseline = cost.baseline();
  ScheduleChooser all(target, baseline != nullptr ? *baseline : cost, *plan.threads, options);
  std::optional<ScheduleChooser> schedules;
  if (baseline != nullptr) schedules.emplace(target, cost, *plan.threads, options);
  Choosers choosers{all, schedules ? &*schedules : nullptr};
  HONE_TRY(FramePlanner::decide(graph, plan, plan, choosers));
  // What was said may fit what was decided here badly: places that overlap in the order, schedules
  // of kernels that were not formed.
  Plan nothing;
  nothing.graph = partial.graph;
  if (partial != nothing) HONE_TRY(check_complete(plan, graph, target));
  return plan;
}

}  // namespace hone
