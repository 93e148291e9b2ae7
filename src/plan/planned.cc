#include "plan/planned.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/text.h"
#include "ir/op_facts.h"
#include "plan/copies.h"
#include "plan/derive.h"
#include "plan/in_place.h"
#include "plan/value_names.h"
#include "plan/view.h"

namespace hone {

bool is_command(GraphView graph, NodeId node) {
  const OpClass op_class = class_of(graph.opcode(node));
  return op_class == OpClass::control || op_class == OpClass::collective;
}

std::string step_name(GraphView graph, NodeId n) {
  return graph.results(n).size() > 0 ? std::string(graph.name(graph.result(n)))
                                     : fmt::format("node{}", n.index);
}

namespace {

class Resolver {
 public:
  Resolver(const Plan& plan, const Users& users, PlannedGraph& result)
      : plan_(plan),
        result_(result),
        graph_(result.view()),
        users_(result.users(users)),
        names_(graph_),
        nodes_(graph_.nodes()),
        derived_(result, users_) {
    result_.step_of.assign(graph_.node_count(), kNoStep);
    result_.home.assign(graph_.value_count(), Home::none);
    result_.base.resize(graph_.value_count());
    result_.version.resize(graph_.value_count());
    result_.free_layout.assign(graph_.value_count(), false);
    result_.said_view.assign(graph_.node_count(), Said::nothing);
    result_.said_in_place.assign(graph_.node_count(), Said::nothing);
    result_.said_layout.assign(graph_.value_count(), false);
    result_.offset.assign(graph_.value_count(), kNoOffset);
  }

  Status run() {
    HONE_TRY(views());
    HONE_TRY(groups());
    other_steps();
    for (Step& step : result_.steps) derived_.find_ports(step);
    find_places();
    HONE_TRY(updates());
    find_homes();
    HONE_TRY(layouts());
    HONE_TRY(order());
    offsets();
    return {};
  }

 private:
  // ---- Views and steps --------------------------------------------------------------------------

  Status views() {
    for (const auto& [name, is_view] : plan_.view) {
      auto refuse = [&](Error error) { return std::move(error).within("view %" + name); };
      const Result<NodeId> n = names_.node(name);
      if (!n.ok()) return refuse(n.error());
      if (Status good = check_view(graph_, users_, *n); !good.ok()) return refuse(good.error());
      result_.said_view[n->index] = is_view ? Said::yes : Said::no;
    }
    return concats();
  }

  // A value lies in one place.
  Status concats() {
    result_.concat.assign(graph_.value_count(), NodeId{});
    for (NodeId n : nodes_) {
      if (!result_.is_view(n) || !joins_operands(graph_.opcode(n))) continue;
      const std::string_view result = graph_.name(graph_.result(n));
      for (ValueId v : graph_.operands(n)) {
        auto refuse = [&](std::string_view why) {
          return bad_input("'%{}' {}", graph_.name(v), why).within(fmt::format("view %{}", result));
        };
        if (lies_elsewhere(result_, v)) return refuse("is a view");
        if (result_.concat[v.index] != NodeId{}) return refuse("lies in another concat");
        result_.concat[v.index] = n;
      }
    }
    return {};
  }

  // ---- Updates in place -------------------------------------------------------------------------

  Status updates() {
    std::vector<uint32_t> update(graph_.value_count(), kNoStep);  // the step that changes a value
    for (const auto& [name, is_in_place] : plan_.in_place) {
      auto refuse = [&](Error error) { return std::move(error).within("in_place %" + name); };
      const Result<NodeId> n = names_.node(name);
      if (!n.ok()) return refuse(n.error());
      if (Status good = check_in_place(graph_, users_, *n); !good.ok()) return refuse(good.error());
      result_.said_in_place[n->index] = is_in_place ? Said::yes : Said::no;
      if (!is_in_place) continue;
      if (Status good = check_in_place(result_, users_, *n); !good.ok())
        return refuse(good.error());
      const ValueId x = changed_by(graph_, *n), result = graph_.result(*n);
      const uint32_t step = result_.step_of[n->index];
      if (update[x.index] != kNoStep)
        return refuse(bad_input("'%{}' changes '%{}' in place, too",
                                graph_.name(graph_.result(result_.steps[update[x.index]].nodes[0])),
                                graph_.name(x)));
      update[x.index] = step;
      if (is_update(graph_.opcode(*n)))
        result_.steps[step].in_place = true;
      else
        result_.steps[step].donors.push_back({x, result});
    }
    if (plan_.in_place.empty()) return {};
    HONE_TRY(inputs_become_outputs());
    find_places();
    for (uint32_t s = 0; s < result_.steps.size(); ++s)
      if (result_.steps[s].in_place || !result_.steps[s].donors.empty())
        result_.steps[s].after = derived_.readers_before(s);
    return {};
  }

  Status inputs_become_outputs() const {
    for (const Step& step : result_.steps) {
      if (!step.in_place) continue;
      const auto behind = updates_of_input(graph_, step.nodes[0]);
      if (!behind) continue;
      for (NodeId n : *behind)
        if (!result_.steps[result_.step_of[n.index]].in_place)
          return bad_input("'%{}' is not in place, through which input '%{}' becomes an output",
                           graph_.name(graph_.result(n)), graph_.name(step.reads[0]))
              .within(fmt::format("in_place %{}", graph_.name(step.writes[0])));
    }
    return {};
  }

  void find_places() {
    for (NodeId n : nodes_) {
      for (ValueId v : graph_.results(n)) {
        const Derivation::Place place = derived_.place_of(v);
        result_.version[v.index] = place.version;
        result_.base[v.index] = place.base;
      }
    }
  }

  Status groups() {
    std::set<std::string_view> kernels;
    for (const Group& group : plan_.fuse) {
      auto refuse = [&](Error error) { return std::move(error).within("fuse @" + group.kernel); };
      if (!kernels.insert(group.kernel).second) return refuse(bad_input("it is decided twice"));
      if (group.nodes.empty()) return refuse(bad_input("it has no nodes"));
      Step step{.name = group.kernel};
      for (const std::string& name : group.nodes) {
        const Result<NodeId> n = names_.node(name);
        if (!n.ok()) return refuse(n.error());
        if (Status good = may_join(*n, step); !good.ok()) return refuse(good.error());
        result_.step_of[n->index] = static_cast<uint32_t>(result_.steps.size());
        step.nodes.push_back(*n);
      }
      result_.steps.push_back(std::move(step));
    }
    return {};
  }

  Status may_join(NodeId n, const Step& step) const {
    const std::string_view name = graph_.name(graph_.result(n));
    if (is_leaf(graph_.opcode(n)))
      return bad_input("'%{}' is a {}, which nothing computes", name, graph_.op(n).name());
    if (is_command(graph_, n))
      return bad_input("'%{}' is {} {}, which is a command of its own", name,
                       graph_.regions(n).empty() ? "the collective" : "the control flow",
                       graph_.op(n).name());
    if (result_.is_view(n)) return bad_input("'%{}' is a view, which nothing computes", name);
    if (result_.step_of[n.index] == result_.steps.size())
      return bad_input("'%{}' stands twice", name);
    if (result_.step_of[n.index] != kNoStep)
      return bad_input("'%{}' is in @{} too", name, result_.steps[result_.step_of[n.index]].name);
    if (!step.nodes.empty() && graph_.position(step.nodes.back()) >= graph_.position(n))
      return bad_input("'%{}' stands behind '%{}', which the graph has later", name,
                       graph_.name(graph_.result(step.nodes.back())));
    return {};
  }

  void other_steps() {
    for (const bool commands : {true, false}) {
      for (NodeId n : nodes_) {
        if (is_leaf(graph_.opcode(n)) || result_.step_of[n.index] != kNoStep ||
            result_.is_view(n) || is_command(graph_, n) != commands)
          continue;
        result_.step_of[n.index] = static_cast<uint32_t>(result_.steps.size());
        result_.steps.push_back(
            {.name = commands ? step_name(graph_, n) : "", .is_kernel = !commands, .nodes = {n}});
      }
    }
  }

  // ---- Values -----------------------------------------------------------------------------------

  void find_homes() {
    for (NodeId n : nodes_) {
      for (ValueId v : graph_.results(n)) {
        const Derivation::Memory memory = derived_.memory_of(v);
        result_.home[v.index] = memory.home;
        result_.free_layout[v.index] = memory.has_layout;
      }
    }
  }

  Status layouts() {
    result_.layout.reserve(graph_.value_count());
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      result_.layout.push_back(Layout::row_major(graph_.type(ValueId{i}).rank()));
    for (const auto& [name, layout] : plan_.layout) {
      const Result<ValueId> v = names_.value(name);
      if (!v.ok()) return Error(v.error()).within("layout %" + name);
      result_.layout[v->index] = layout;
      result_.said_layout[v->index] = true;
    }
    for (NodeId n : nodes_)
      for (ValueId v : graph_.results(n)) lie_like_base(v);
    for (NodeId n : nodes_) {
      if (!result_.is_view(n)) continue;
      Status good = check_side_by_side(result_, n);
      if (!good.ok())
        return std::move(good).error().within(
            fmt::format("view %{}", graph_.name(graph_.result(n))));
    }
    return {};
  }

  // As far as the plan's layout of that can be; if it cannot, check() says why.
  void lie_like_base(ValueId v) {
    const ValueId base = result_.base[v.index];
    if (check(result_.layout[base.index], graph_.type(base)).ok())
      result_.layout[v.index] = derived_.layout_of(v);
  }

  // ---- Order ------------------------------------------------------------------------------------

  Status order() {
    std::unordered_map<std::string_view, uint32_t> steps;
    for (uint32_t s = 0; s < result_.steps.size(); ++s) {
      const Step& step = result_.steps[s];
      if (!step.name.empty() && !steps.emplace(step.name, s).second)
        return bad_input("the kernel has the name of a node that is a command")
            .within("fuse @" + step.name);
    }
    std::vector<bool> seen(result_.steps.size());
    for (const std::string& name : plan_.order) {
      const auto found = steps.find(name);
      if (found == steps.end()) {
        std::vector<std::string_view> known;
        for (const auto& [step, index] : steps) known.push_back(step);
        return bad_input("there is no kernel or command '{}'", excerpt(name))
            .with_hint(known.size() < 10000 ? did_you_mean(name, known) : "")
            .within("order");
      }
      if (seen[found->second]) return bad_input("'{}' stands twice", name).within("order");
      seen[found->second] = true;
      result_.order.push_back(found->second);
    }
    return {};
  }

  // Names that the graph does not have are left to check().
  void offsets() {
    for (const auto& [name, offset] : plan_.offset)
      if (names_.has(name)) result_.offset[names_.value(name)->index] = offset;
  }

  const Plan& plan_;
  PlannedGraph& result_;
  const GraphView graph_;
  const UsersView users_;
  const ValueNames names_;
  const std::vector<NodeId> nodes_;  // in order
  const Derivation derived_;
};

}  // namespace

Result<PlannedGraph> planned(const Plan& plan, const Graph& graph) {
  PlannedGraph result;
  result.graph = HONE_TRY(with_copies(graph, plan.copy));
  HONE_TRY(Resolver(plan, Users(*result.graph), result).run());
  return result;
}

Result<PlannedGraph> planned_with_overlay(const Plan& plan, const Graph& graph) {
  PlannedGraph result;
  result.graph = GraphRef(GraphRef(), &graph);
  const Users users(graph);
  for (CopyOverlay& copy : HONE_TRY(find_copies(graph, plan.copy)))
    result.copies.add(graph, users, std::move(copy));
  HONE_TRY(Resolver(plan, users, result).run());
  return result;
}

std::vector<uint32_t> PlannedGraph::needs(uint32_t step) const {
  std::vector<uint32_t> needed;
  const GraphView graph = view();
  std::vector<ValueId> written;  // what has to be, and parts of it
  for (ValueId v : steps[step].reads) written.push_back(version[v.index]);
  for (size_t i = 0; i < written.size(); ++i) {
    const NodeId producer = graph.producer(written[i]);
    const uint32_t writer = step_of[producer.index];
    if (writer != kNoStep)
      needed.push_back(writer);
    else if (joins_operands(graph.opcode(producer)))
      written.insert(written.end(), graph.operands(producer).begin(),
                     graph.operands(producer).end());
  }
  needed.insert(needed.end(), steps[step].after.begin(), steps[step].after.end());
  std::ranges::sort(needed);
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  return needed;
}

KernelBody body_of(const PlannedGraph& graph, UsersView users, const Step& step) {
  KernelBody body = body_of(graph.view(), users, step.nodes, graph.layout);
  body.in_place = step.in_place;
  for (const Donor& donor : step.donors) {
    const auto input = std::ranges::find(step.reads, donor.input);
    if (input == step.reads.end()) continue;
    const auto output = std::ranges::find(step.writes, donor.output);
    body.graph.add_donation(static_cast<uint32_t>(input - step.reads.begin()),
                            static_cast<uint32_t>(output - step.writes.begin()));
  }
  return body;
}

uint64_t kernel_hash(const PlannedGraph& graph, const Step& step, uint64_t graph_hash) {
  KernelHasher hasher(graph_hash);
  for (const std::vector<ValueId>* ports : {&step.reads, &step.writes})
    for (ValueId v : *ports) hasher.add(graph.layout[v.index]);
  return hasher.finish(step.in_place, {});
}

uint64_t step_shape(const PlannedGraph& graph, const Step& step) {
  Hasher hasher(group_shape(*graph.graph, step.nodes, {step.reads, step.writes}, graph.layout));
  hasher.add(step.in_place);
  for (const Donor& donor : step.donors)
    hasher.add(std::ranges::find(step.reads, donor.input) - step.reads.begin())
        .add(std::ranges::find(step.writes, donor.output) - step.writes.begin());
  return hasher.value();
}

std::vector<RegionRef> regions_of(const Graph& graph) {
  std::vector<RegionRef> result;
  for (NodeId n : graph.nodes()) {
    if (graph.regions(n).empty()) continue;
    const std::vector<std::string_view> names = region_names(graph.op(n).def());
    for (size_t i = 0; i < names.size(); ++i)
      result.push_back(
          {fmt::format("{}.{}", step_name(graph, n), names[i]), n, i, graph.regions(n)[i].get()});
  }
  return result;
}

std::string label(GraphView graph, const Step& step) {
  if (step.name.empty()) return graph.label(graph.result(step.nodes[0]));
  return (step.is_kernel ? "@" : "%") + step.name;
}

bool lies_elsewhere(const PlannedGraph& planned, ValueId v) {
  const NodeId n = planned.view().producer(v);
  return planned.is_view(n) && !joins_operands(planned.view().opcode(n));
}

Status check_side_by_side(const PlannedGraph& planned, NodeId view) {
  const GraphView graph = planned.view();
  if (!keeps_layout(graph, view)) return {};
  const bool joins = joins_operands(graph.opcode(view));
  const ValueId base = planned.base[(joins ? graph.result(view) : graph.operands(view)[0]).index];
  const Layout& layout = planned.layout[base.index];
  const bool fits = planned.has_layout(base) && check(layout, graph.type(base)).ok();
  return check_side_by_side(
      graph, view, fits ? layout : Layout::row_major(graph.type(graph.result(view)).rank()));
}

namespace {

// Why all is row-major that lies in the same memory; "": nothing of this value's is the cause.
std::string why_row_major(const PlannedGraph& planned, UsersView users, ValueId v) {
  const GraphView graph = planned.view();
  if (users.is_output(v)) return "an output of the graph is row-major";
  const uint32_t writer = planned.step_of[graph.producer(v).index];
  if (writer != kNoStep && !planned.steps[writer].is_kernel)
    return fmt::format("{} writes it row-major", label(graph, planned.steps[writer]));
  if (writer != kNoStep && planned.steps[writer].in_place)
    return "it is changed in place, where it is row-major";
  for (NodeId reader : users.of(v)) {
    const uint32_t step = planned.step_of[reader.index];
    if (step == kNoStep) {
      if (keeps_layout(graph, reader)) continue;
      return fmt::format("{} is a view of it, for which it must be row-major",
                         graph.label(graph.result(reader)));
    }
    if (!planned.steps[step].is_kernel)
      return fmt::format("{} reads it row-major", label(graph, planned.steps[step]));
    if (planned.steps[step].in_place && graph.operands(reader)[0] == v)
      return fmt::format("{} changes it in place, for which it must be row-major",
                         label(graph, planned.steps[step]));
  }
  return "";
}

}  // namespace

std::string why_no_layout(const PlannedGraph& planned, UsersView users, ValueId v) {
  const GraphView graph = planned.view();
  switch (planned.home[v.index]) {
    case Home::none: return "it has no memory: nothing outside of its kernel reads it";
    case Home::input: return "an input of the graph is row-major";
    case Home::output: return "an output of the graph is row-major";
    case Home::view: {
      const ValueId base = planned.base[v.index];
      if (!planned.has_layout(base)) return "it lies in other memory, which is row-major";
      return fmt::format("it lies in other memory, that of {}, and has its layout",
                         graph.label(base));
    }
    case Home::constant:
    case Home::temporary: break;
  }
  if (graph.type(v).rank() == 0) return "a scalar has no dims";
  for (ValueId part : Derivation(planned, users).inside(v)) {
    const std::string why = why_row_major(planned, users, part);
    if (why.empty()) continue;
    return part == v ? why : fmt::format("{} lies in it, and {}", graph.label(part), why);
  }
  return "it is row-major";
}

}  // namespace hone
