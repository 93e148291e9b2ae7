#include "oracle/reduce.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "ir/reference/evaluate.h"
#include "kernel/schedule_space.h"
#include "kernel/schedule_text.h"
#include "oracle/reduce_graph.h"
#include "plan/collectives.h"
#include "plan/copies.h"
#include "plan/in_place.h"
#include "plan/planned.h"
#include "plan/view.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone {
namespace {

constexpr int kMaxRounds = 8;

// ---- Plans for smaller graphs -------------------------------------------------------------------

// The decisions of a plan about kernels that still exist, by name: hashes change with the graph
// around.
using ScheduleByName = std::map<std::string, Schedule>;

// Calls f(name, body) for the kernels of the plan; the names of those in regions begin with theirs.
void each_kernel(const Graph& graph, const Plan& plan, const std::string& place,
                 const std::function<void(const std::string&, const KernelBody&)>& f) {
  const Result<PlannedGraph> frame = planned(plan, graph);
  if (!frame.ok()) return;
  const Users users(*frame->graph);
  for (const Step& step : frame->steps)
    if (step.is_kernel && !step.name.empty()) f(place + step.name, body_of(*frame, users, step));
  for (const RegionRef& region : regions_of(graph))
    if (const auto inner = plan.region.find(region.key); inner != plan.region.end())
      each_kernel(*region.graph, inner->second, place + region.key + "/", f);
}

class PlanCarrier {
 public:
  explicit PlanCarrier(const Plan& before) : before_(before) {}

  // Both graphs are prepared; what no longer fits is left out.
  Plan carry(const Graph& from, const Graph& to) { return carry(from, to, before_); }

  // So are copies that `kept` has not, and what is said of them.
  Plan carry(const Graph& from, const Graph& to, const Plan& kept) {
    collect(from);
    Plan plan = frame(to, kept);
    plan.graph_hash = 0;
    plan.threads = before_.threads;
    schedules_of(to, plan);
    return plan;
  }

 private:
  void collect(const Graph& graph) {
    each_kernel(graph, before_, "", [&](const std::string& name, const KernelBody& body) {
      const auto known = before_.schedule.find(kernel_hash(body));
      if (known != before_.schedule.end()) schedules_[name] = known->second;
    });
  }

  void schedules_of(const Graph& graph, Plan& plan) {
    std::map<uint64_t, Schedule> all;
    each_kernel(graph, plan, "", [&](const std::string& name, const KernelBody& body) {
      if (const auto known = schedules_.find(name); known != schedules_.end())
        all.try_emplace(kernel_hash(body), known->second);
    });
    plan.schedule = std::move(all);
  }

  static Plan frame(const Graph& source, const Plan& before) {
    Plan plan;
    plan.graph = source.name();
    plan.copy = copies(source, before);
    const GraphRef copied = with_copies(source, plan.copy).value();
    const Graph& graph = *copied;
    std::map<std::string, NodeId, std::less<>> nodes;
    for (NodeId n : graph.nodes())
      if (is_computed(graph, n)) nodes.emplace(step_name(graph, n), n);
    for (const Group& group : before.fuse) {
      Group kept{group.kernel, {}};
      for (const std::string& node : group.nodes)
        if (nodes.contains(node)) kept.nodes.push_back(node);
      if (!kept.nodes.empty()) plan.fuse.push_back(std::move(kept));
    }
    const Users users(graph);
    for (const auto& [value, flag] : before.view)
      if (const auto at = nodes.find(value);
          at != nodes.end() && check_row_major_view(graph, users, at->second).ok())
        plan.view.emplace(value, flag);
    for (const auto& [value, flag] : before.in_place)
      if (const auto at = nodes.find(value);
          at != nodes.end() && check_in_place(graph, users, at->second).ok())
        plan.in_place.emplace(value, flag);
    for (const auto& [value, schedule] : before.collective)
      if (const auto at = nodes.find(value);
          at != nodes.end() && check_schedule(graph.op(at->second), schedule).ok())
        plan.collective.emplace(value, schedule);
    for (const RegionRef& region : regions_of(graph))
      if (const auto inner = before.region.find(region.key); inner != before.region.end())
        plan.region.emplace(region.key, frame(*region.graph, inner->second));
    places(source, before, plan);
    return plan;
  }

  // Keeps decisions about values and readers that still exist.
  static std::map<std::string, Copy> copies(const Graph& graph, const Plan& before) {
    std::map<std::string, Copy> kept;
    for (const auto& [name, copy] : before.copy) {
      for (const std::string& reader : copy.readers) {
        std::map<std::string, Copy> more = kept;
        more.try_emplace(name, Copy{copy.of, {}}).first->second.readers.push_back(reader);
        if (with_copies(graph, more).ok()) kept = std::move(more);
      }
    }
    return kept;
  }

  // Layouts, order and offsets of what has them still.
  static void places(const Graph& source, const Plan& before, Plan& plan) {
    const Result<PlannedGraph> frame = planned(plan, source);
    if (!frame.ok()) return;
    const Graph& graph = *frame->graph;
    std::set<std::string> steps;
    for (const Step& step : frame->steps) steps.insert(step.name);
    for (const std::string& step : before.order)
      if (steps.contains(step)) plan.order.push_back(step);
    for (uint32_t i = 0; i < graph.value_count(); ++i) {
      const std::string name(graph.name(ValueId{i}));
      const auto layout = before.layout.find(name);
      if (layout != before.layout.end() && frame->has_layout(ValueId{i}))
        plan.layout.insert(*layout);
      const auto offset = before.offset.find(name);
      if (offset != before.offset.end() && frame->home[i] == Home::temporary)
        plan.offset.insert(*offset);
    }
  }

  const Plan& before_;
  ScheduleByName schedules_;
};

// ---- Reducing -----------------------------------------------------------------------------------

class Reducer {
 public:
  Reducer(DifferentialCase failing, Verdict verdict, const Target& host, const CaseRunner& run)
      : best_(std::move(failing)),
        verdict_(verdict),
        target_(restricted(host, best_.isa)),
        run_(run) {}

  DifferentialCase reduce() && {
    take(with_numbers(best_));
    use_prepared();
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::string before = print(best_);
      if (is_prepared_) kernels();
      regions();
      outputs();
      nodes();
      sizes();
      decisions();
      schedules();
      if (print(best_) == before) break;
    }
    return std::move(best_);
  }

 private:
  // Takes the candidate if it fails in the same way.
  bool take(DifferentialCase candidate) {
    if (run_(candidate) != verdict_) return false;
    best_ = std::move(candidate);
    return true;
  }
  bool take(Plan plan) {
    DifferentialCase candidate = best_;
    candidate.plan = std::move(plan);
    return take(std::move(candidate));
  }
  bool take(std::optional<GraphWithInputs> smaller) {
    if (!smaller) return false;
    DifferentialCase candidate = best_;
    if (candidate.plan != Plan()) {
      const Result<Graph> from = prepare(best_.graph), to = prepare(smaller->graph);
      if (!from.ok() || !to.ok()) return false;
      candidate.plan = PlanCarrier(best_.plan).carry(*from, *to);
    }
    candidate.graph = std::move(smaller->graph);
    candidate.inputs = std::move(smaller->inputs);
    return take(std::move(candidate));
  }

  // The graph that the plan speaks of, with all decisions said; unless what fails is before that.
  void use_prepared() {
    const Result<Graph> graph = prepare(best_.graph);
    if (!graph.ok()) return;
    DifferentialCase candidate = best_;
    candidate.graph = *graph;
    const Result<Plan> plan = complete(*graph, best_.plan, target_);
    if (plan.ok()) candidate.plan = *plan;
    candidate.plan.graph_hash = 0;
    candidate.plan.target = "";
    is_prepared_ = take(std::move(candidate));
  }

  // ---- Graphs ---------------------------------------------------------------------------------

  // One kernel or command alone.
  void kernels() {
    const Result<PlannedGraph> frame = planned(best_.plan, best_.graph);
    if (!frame.ok() || frame->steps.size() < 2) return;
    DifferentialCase copied = best_;
    copied.graph = *frame->graph;
    for (const Step& step : frame->steps)
      if (take(part_of(copied, step.nodes, step.writes))) return;
  }

  void regions() {
    const Graph graph = best_.graph;
    for (const RegionRef& region : regions_of(graph))
      if (take(region_of(best_, region))) return;
  }

  void outputs() {
    const std::vector<ValueId> all(best_.graph.outputs().begin(), best_.graph.outputs().end());
    if (all.size() < 2) return;
    for (ValueId v : all)
      if (take(with_outputs(best_, {v}))) return;
    for (size_t i = best_.graph.outputs().size(); i-- > 0 && best_.graph.outputs().size() > 1;) {
      std::vector<ValueId> fewer(best_.graph.outputs().begin(), best_.graph.outputs().end());
      fewer.erase(fewer.begin() + static_cast<int64_t>(i));
      take(with_outputs(best_, fewer));
    }
  }

  // From the last on: an output makes place for what it was computed from, others become inputs.
  void nodes() {
    for (uint32_t i = static_cast<uint32_t>(best_.graph.node_count()); i-- > 0;) {
      if (i >= best_.graph.node_count()) continue;
      const NodeId n{i};
      if (!is_computed(best_.graph, n)) continue;
      if (take(without_output_node(best_, n))) continue;
      take(without_node(best_, n));
    }
  }

  void sizes() {
    for (int64_t size : sizes_of(best_.graph))
      for (int64_t smaller : {int64_t{1}, int64_t{2}, size / 2, size - 1})
        if (smaller > 0 && smaller < size && take(with_size(best_, size, smaller))) break;
  }

  // ---- Plans ----------------------------------------------------------------------------------

  void decisions() {
    if (best_.plan == Plan()) return;
    if (take(Plan())) return;
    const auto without = [&](auto Plan::* member) {
      Plan plan = best_.plan;
      if (plan.*member == Plan().*member) return;
      plan.*member = Plan().*member;
      take(std::move(plan));
    };
    without(&Plan::offset);
    without(&Plan::order);
    without(&Plan::region);
    without(&Plan::layout);
    without(&Plan::schedule);
    without(&Plan::fuse);
    without(&Plan::in_place);
    without(&Plan::view);
    without(&Plan::threads);
    copies();
    each_entry(&Plan::offset);
    each_entry(&Plan::layout);
    each_entry(&Plan::in_place);
    each_entry(&Plan::view);
    groups();
    if (best_.plan.threads && *best_.plan.threads > 1) {
      Plan plan = best_.plan;
      plan.threads = 1;
      take(std::move(plan));
    }
  }

  template <class Map>
  void each_entry(Map Plan::* member) {
    const Map all = best_.plan.*member;
    for (const auto& [key, value] : all) {
      Plan plan = best_.plan;
      (plan.*member).erase(key);
      take(std::move(plan));
    }
  }

  void copies() {
    const Result<Graph> graph = prepare(best_.graph);
    if (!graph.ok()) return;
    const std::map<std::string, Copy> all = best_.plan.copy;
    for (const auto& [name, copy] : all) {
      Plan kept = best_.plan;
      kept.copy.erase(name);
      take(PlanCarrier(best_.plan).carry(*graph, *graph, kept));
    }
  }

  // A group less; or, as hashes of schedules change with their groups, a node less.
  void groups() {
    for (size_t g = best_.plan.fuse.size(); g-- > 0;) {
      Plan plan = best_.plan;
      plan.fuse.erase(plan.fuse.begin() + static_cast<int64_t>(g));
      take(std::move(plan));
    }
    for (size_t g = 0; g < best_.plan.fuse.size(); ++g)
      for (size_t i = best_.plan.fuse[g].nodes.size(); i-- > 0;) {
        std::vector<std::string>& nodes = best_.plan.fuse[g].nodes;
        if (nodes.size() < 2 || i >= nodes.size()) continue;
        Plan plan = best_.plan;
        plan.fuse[g].nodes.erase(plan.fuse[g].nodes.begin() + static_cast<int64_t>(i));
        take(std::move(plan));
      }
  }

  void schedules() {
    each_entry(&Plan::schedule);
    const Result<Graph> graph = prepare(best_.graph);
    if (!graph.ok()) return;
    std::map<uint64_t, KernelBody> bodies;
    // Which kernels there are may be left to the planner.
    const Result<Plan> whole = complete(*graph, best_.plan, target_);
    each_kernel(*graph, whole.ok() ? *whole : best_.plan, "",
                [&](const std::string&, const KernelBody& body) {
                  bodies.try_emplace(kernel_hash(body), body);
                });
    for (const auto& [hash, body] : bodies)
      if (best_.plan.schedule.contains(hash)) simplify(hash, body);
  }

  // One step after another, as long as it fails.
  void simplify(uint64_t hash, const KernelBody& body) {
    const KernelFacts facts(body);
    const ScheduleSpace space(body, facts, target_);
    std::set<std::string> passed;
    const auto take_simpler = [&] {
      const Schedules simpler = space.simplify(best_.plan.schedule.at(hash));
      return std::ranges::any_of(simpler, [&](const Schedule& schedule) {
        if (!passed.insert(print(schedule)).second) return false;
        Plan plan = best_.plan;
        plan.schedule[hash] = schedule;
        return take(std::move(plan));
      });
    };
    while (take_simpler()) {
    }
  }

  DifferentialCase best_;
  const Verdict verdict_;
  const Target target_;
  const CaseRunner& run_;
  bool is_prepared_ = false;
};

}  // namespace

DifferentialCase reduce(DifferentialCase failing, Verdict verdict, const Target& host,
                        const CaseRunner& run) {
  return Reducer(std::move(failing), verdict, host, run).reduce();
}

}  // namespace hone
