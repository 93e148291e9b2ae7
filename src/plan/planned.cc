#include "plan/planned.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/hash.h"
#include "base/planted.h"
#include "base/text.h"
#include "plan/copies.h"
#include "plan/in_place.h"
#include "plan/value_names.h"
#include "plan/view.h"

namespace hone {

bool is_command(const Graph& graph, NodeId node) {
  const OpClass op_class = class_of(graph.opcode(node));
  return op_class == OpClass::control || op_class == OpClass::collective;
}

std::string step_name(const Graph& graph, NodeId n) {
  return graph.results(n).size() > 0 ? std::string(graph.name(graph.result(n)))
                                     : fmt::format("node{}", n.index);
}

namespace {

class Resolver {
 public:
  Resolver(const Plan& plan, GraphRef graph)
      : plan_(plan), graph_(*graph), users_(graph_), names_(graph_) {
    result_.graph = std::move(graph);
    result_.step_of.assign(graph_.node_count(), kNoStep);
    result_.home.assign(graph_.value_count(), Home::none);
    result_.free_layout.assign(graph_.value_count(), false);
  }

  Result<PlannedGraph> run() {
    HONE_TRY(views());
    HONE_TRY(groups());
    other_steps();
    for (Step& step : result_.steps) find_ports(step);
    HONE_TRY(updates());
    find_homes();
    HONE_TRY(layouts());
    HONE_TRY(order());
    return std::move(result_);
  }

 private:
  // ---- Views and steps --------------------------------------------------------------------------

  Status views() {
    is_view_.assign(graph_.node_count(), false);
    for (const auto& [name, is_view] : plan_.view) {
      auto refuse = [&](Error error) { return std::move(error).within("view %" + name); };
      const Result<NodeId> n = names_.node(name);
      if (!n.ok()) return refuse(n.error());
      if (Status good = check_view(graph_, users_, *n); !good.ok()) return refuse(good.error());
      is_view_[n->index] = is_view;
    }
    HONE_TRY(concats());
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId v{i};
      const NodeId n = graph_.producer(v);
      const bool is_view = is_view_[n.index] && graph_.opcode(n) != Opcode::concat;
      const bool is_part = result_.concat[i] != NodeId{};
      const ValueId x = is_view ? graph_.operands(n)[0] : v;
      result_.version.push_back(is_view ? result_.version[x.index] : v);
      result_.base.push_back(is_view   ? result_.base[x.index]
                             : is_part ? graph_.result(result_.concat[i])
                                       : v);
      if (is_view || is_part) result_.home[i] = Home::view;
    }
    return {};
  }

  // A value lies in one place.
  Status concats() {
    result_.concat.assign(graph_.value_count(), NodeId{});
    for (NodeId n : graph_.nodes()) {
      if (!is_view_[n.index] || graph_.opcode(n) != Opcode::concat) continue;
      const std::string_view result = graph_.name(graph_.result(n));
      for (ValueId v : graph_.operands(n)) {
        auto refuse = [&](std::string_view why) {
          return bad_input("'%{}' {}", graph_.name(v), why).within(fmt::format("view %{}", result));
        };
        if (is_view_[graph_.producer(v).index]) return refuse("is a view");
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
    follow_updates(update);
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

  // Where values lie then, and what must be read before.
  void follow_updates(const std::vector<uint32_t>& update) {
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const NodeId n = graph_.producer(ValueId{i});
      const uint32_t step = result_.step_of[n.index];
      if (step == kNoStep ? !is_view_[n.index] : !result_.steps[step].in_place) continue;
      if (graph_.opcode(n) == Opcode::concat) continue;
      const ValueId x = graph_.operands(n)[0];
      // An input is copied to the output that may lie in its place.
      const bool is_donated = graph_.opcode(graph_.producer(x)) == Opcode::parameter;
      if (step == kNoStep || !is_donated) result_.base[i] = result_.base[x.index];
    }
    for (uint32_t s = 0; s < result_.steps.size(); ++s) {
      for (ValueId v : result_.steps[s].reads) {
        const uint32_t changed_by = update[result_.version[v.index].index];
        if (changed_by != kNoStep && HONE_PLANT(update_waits, changed_by != s, false))
          result_.steps[changed_by].after.push_back(s);
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
    if (is_view_[n.index]) return bad_input("'%{}' is a view, which nothing computes", name);
    if (result_.step_of[n.index] == result_.steps.size())
      return bad_input("'%{}' stands twice", name);
    if (result_.step_of[n.index] != kNoStep)
      return bad_input("'%{}' is in @{} too", name, result_.steps[result_.step_of[n.index]].name);
    if (!step.nodes.empty() && step.nodes.back() >= n)
      return bad_input("'%{}' stands behind '%{}', which the graph has later", name,
                       graph_.name(graph_.result(step.nodes.back())));
    return {};
  }

  void other_steps() {
    for (const bool commands : {true, false}) {
      for (NodeId n : graph_.nodes()) {
        if (is_leaf(graph_.opcode(n)) || result_.step_of[n.index] != kNoStep || is_view_[n.index] ||
            is_command(graph_, n) != commands)
          continue;
        result_.step_of[n.index] = static_cast<uint32_t>(result_.steps.size());
        result_.steps.push_back(
            {.name = commands ? step_name(graph_, n) : "", .is_kernel = !commands, .nodes = {n}});
      }
    }
  }

  // ---- Values -----------------------------------------------------------------------------------

  void find_ports(Step& step) {
    if (step.is_kernel) {
      GroupPorts ports = ports_of(graph_, users_, step.nodes);
      step.reads = std::move(ports.inputs);
      step.writes = std::move(ports.outputs);
      return;
    }
    for (ValueId v : graph_.operands(step.nodes[0]))
      if (!v.is_none() && std::ranges::find(step.reads, v) == step.reads.end())
        step.reads.push_back(v);
    for (ValueId v : graph_.results(step.nodes[0])) step.writes.push_back(v);
  }

  void find_homes() {
    std::vector<bool> read(graph_.value_count()), bound(graph_.value_count());
    for (const Step& step : result_.steps) {
      for (ValueId v : step.reads) {
        read[v.index] = true;
        if (!step.is_kernel) bound[v.index] = true;
      }
      if (step.in_place) bound[step.reads[0].index] = true;
    }
    for (NodeId n : graph_.nodes()) {
      if (!is_view_[n.index]) continue;
      for (ValueId operand : graph_.operands(n)) read[operand.index] = bound[operand.index] = true;
    }
    for (ValueId v : graph_.inputs()) result_.home[v.index] = Home::input;
    for (NodeId n : graph_.nodes()) {
      const ValueId v = graph_.result(n);
      if (graph_.opcode(n) == Opcode::constant && (read[v.index] || users_.is_output(v)))
        take_constant(v, bound[v.index]);
    }
    for (NodeId n : graph_.nodes())
      if (is_view_[n.index] && graph_.opcode(n) == Opcode::concat)
        result_.home[graph_.result(n).index] =
            users_.is_output(graph_.result(n)) ? Home::output : Home::temporary;
    for (const Step& step : result_.steps) {
      for (ValueId v : step.writes) {
        if (result_.concat[v.index] != NodeId{}) continue;
        result_.home[v.index] = users_.is_output(v) ? Home::output : Home::temporary;
        result_.free_layout[v.index] = step.is_kernel && !step.in_place && !users_.is_output(v) &&
                                       !bound[v.index] && graph_.type(v).rank() > 0;
      }
    }
    // Memory that becomes an output is the output's from the start.
    for (const Step& step : result_.steps) {
      if (!step.in_place || result_.base[step.writes[0].index] == step.writes[0]) continue;
      const ValueId v = step.writes[0], base = result_.base[v.index];
      if (result_.home[v.index] == Home::output) result_.home[base.index] = Home::output;
      result_.home[v.index] = Home::view;
    }
  }

  void take_constant(ValueId v, bool is_bound) {
    result_.home[v.index] = Home::constant;
    result_.free_layout[v.index] =
        !is_bound && !is_number(graph_, v) && !users_.is_output(v) && graph_.type(v).rank() > 0;
  }

  Status layouts() {
    result_.layout.reserve(graph_.value_count());
    for (uint32_t i = 0; i < graph_.value_count(); ++i)
      result_.layout.push_back(Layout::row_major(graph_.type(ValueId{i}).rank()));
    for (const auto& [name, layout] : plan_.layout) {
      const Result<ValueId> v = names_.value(name);
      if (!v.ok()) return Error(v.error()).within("layout %" + name);
      result_.layout[v->index] = layout;
    }
    return {};
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

  const Plan& plan_;
  const Graph& graph_;
  const Users users_;
  const ValueNames names_;
  PlannedGraph result_;
  std::vector<bool> is_view_;  // by node
};

}  // namespace

Result<PlannedGraph> planned(const Plan& plan, const Graph& graph) {
  return Resolver(plan, HONE_TRY(with_copies(graph, plan.copy))).run();
}

std::vector<uint32_t> PlannedGraph::needs(uint32_t step) const {
  std::vector<uint32_t> needed;
  const auto add_writer = [&](ValueId v) {
    const uint32_t writer = step_of[graph->producer(v).index];
    if (writer != kNoStep) needed.push_back(writer);
    return writer != kNoStep;
  };
  for (ValueId v : steps[step].reads) {
    const NodeId producer = graph->producer(version[v.index]);
    if (!add_writer(version[v.index]) && graph->opcode(producer) == Opcode::concat)
      std::ranges::for_each(graph->operands(producer), add_writer);
  }
  needed.insert(needed.end(), steps[step].after.begin(), steps[step].after.end());
  std::ranges::sort(needed);
  needed.erase(std::unique(needed.begin(), needed.end()), needed.end());
  return needed;
}

KernelBody body_of(const PlannedGraph& graph, const Users& users, const Step& step) {
  KernelBody body = body_of(*graph.graph, users, step.nodes, graph.layout);
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

std::vector<Lifetime> lifetimes(const PlannedGraph& graph, std::span<const uint32_t> order) {
  std::vector<uint32_t> first(graph.home.size()), last(graph.home.size());
  std::vector<bool> is_written(graph.home.size());
  for (uint32_t position = 0; position < order.size(); ++position) {
    const Step& step = graph.steps[order[position]];
    for (ValueId v : step.writes) {
      const ValueId base = graph.base[v.index];
      if (!is_written[base.index]) first[base.index] = position;
      is_written[base.index] = true;
      last[base.index] = position;
    }
    for (ValueId v : step.reads) last[graph.base[v.index].index] = position;
  }
  std::vector<Lifetime> result;
  for (uint32_t i = 0; i < graph.home.size(); ++i)
    if (graph.home[i] == Home::temporary)
      result.push_back(
          {ValueId{i}, first[i], last[i], graph.graph->type(ValueId{i}).static_bytes()});
  return result;
}

}  // namespace hone
