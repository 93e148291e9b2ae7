#include <numeric>

#include "base/text.h"
#include "plan/collectives.h"
#include "plan/copies.h"
#include "plan/derive.h"
#include "plan/edit.h"
#include "plan/in_place.h"

// A plan is read: its lines are edits, all of which are applied before what follows is worked out.
// Steps are numbered as PlannedGraph says.

namespace hone {

// Nothing is said, and there are no steps yet.
void FrameEditor::begin() {
  const size_t nodes = view().node_count(), values = view().value_count();
  planned_.step_of.assign(nodes, kNoStep);
  planned_.said_view.assign(nodes, Said::nothing);
  planned_.said_in_place.assign(nodes, Said::nothing);
  planned_.home.assign(values, Home::none);
  planned_.version = planned_.base = everything().values;
  planned_.concat.assign(values, NodeId{});
  planned_.layout.reserve(values);
  for (ValueId v : planned_.base)
    planned_.layout.push_back(Layout::row_major(view().type(v).rank()));
  planned_.free_layout.assign(values, false);
  planned_.said_layout.assign(values, false);
  planned_.offset.assign(values, kNoOffset);
}

FrameEditor::Touched FrameEditor::everything() const {
  Touched all{view().nodes(), {}, std::vector<uint32_t>(planned_.steps.size()), true};
  for (uint32_t i = 0; i < view().value_count(); ++i) all.values.push_back(ValueId{i});
  std::iota(all.steps.begin(), all.steps.end(), 0);
  return all;
}

Status FrameEditor::read(const Plan& plan) {
  begin();
  HONE_TRY(read_views(plan.view));
  for (const Group& group : plan.fuse)
    if (Status good = read_group(group); !good.ok())
      return std::move(good).error().within("fuse @" + group.kernel);
  HONE_TRY(add_open_steps());
  Touched all = everything();
  follow_places(all);
  follow_ports(all);
  HONE_TRY(read_in_place(plan.in_place));
  follow_memory(all.values);
  HONE_TRY(read_layouts(plan.layout));
  follow_layouts(all.values);
  HONE_TRY(check_views(all.values));
  HONE_TRY(read_collectives(plan.collective));
  HONE_TRY(read_order(plan.order));
  return read_offsets(plan.offset);
}

Status FrameEditor::check_whole() const {
  const Touched all = everything();
  HONE_TRY(check_groups(all.steps));
  HONE_TRY(check_all_can_run());
  HONE_TRY(check_memory(all.values));
  return offsets_ > 0 ? check_places() : Status();
}

Status FrameEditor::read_copies(const std::map<std::string, Copy>& copies) {
  planned_.copies = HONE_TRY(overlay_of(graph_, users_, copies, names_));
  return {};
}

// A concat that is a view joins its operands once it is known which of them are views.
Status FrameEditor::read_views(const std::map<std::string, bool>& views) {
  for (const auto& [name, is_view] : views) {
    const auto refuse = [&](Error error) { return std::move(error).within("view %" + name); };
    const Result<NodeId> n = names_.node(view(), name);
    if (!n.ok()) return refuse(n.error());
    if (Status good = check_view(view(), users(), *n); !good.ok()) return refuse(good.error());
    planned_.said_view[n->index] = is_view ? Said::yes : Said::no;
  }
  Touched unused;
  if (!views.empty())
    for (NodeId n : view().nodes())
      if (planned_.is_view(n)) HONE_TRY(concat_on(n, unused));
  return {};
}

Status FrameEditor::read_group(const Group& group) {
  if (step_names_.contains(group.kernel)) return bad_input("it is decided twice");
  if (group.nodes.empty()) return bad_input("it has no nodes");
  Step step{.name = group.kernel};
  for (const std::string& name : group.nodes) {
    const NodeId n = HONE_TRY(names_.node(view(), name));
    HONE_TRY(may_join(n, step));
    planned_.step_of[n.index] = static_cast<uint32_t>(planned_.steps.size());
    step.nodes.push_back(n);
  }
  add_step(std::move(step));
  return {};
}

Status FrameEditor::may_join(NodeId n, const Step& step) const {
  const std::string_view name = view().name(view().result(n));
  if (is_leaf(view().opcode(n)))
    return bad_input("'%{}' is a {}, which no kernel computes", name, view().op(n).name());
  if (is_command(view(), n))
    return bad_input("'%{}' is {} {}, which is a command of its own", name,
                     view().regions(n).empty() ? "the collective" : "the control flow",
                     view().op(n).name());
  if (planned_.is_view(n)) return bad_input("'%{}' is a view, which no kernel computes", name);
  const uint32_t other = planned_.step_of[n.index];
  if (other == planned_.steps.size()) return bad_input("'%{}' is named twice", name);
  if (other != kNoStep) return bad_input("'%{}' is in @{} too", name, planned_.steps[other].name);
  if (!step.nodes.empty() && view().position(step.nodes.back()) >= view().position(n))
    return bad_input("'%{}' comes after '%{}', but the graph has them in the other order", name,
                     view().name(view().result(step.nodes.back())));
  return {};
}

// Commands, and nodes without a group.
Status FrameEditor::add_open_steps() {
  const std::vector<NodeId> nodes = view().nodes();
  for (const bool commands : {true, false}) {
    for (NodeId n : nodes) {
      if (is_leaf(view().opcode(n)) || planned_.step_of[n.index] != kNoStep ||
          planned_.is_view(n) || is_command(view(), n) != commands)
        continue;
      const std::string name = commands ? step_name(view(), n) : "";
      if (step_names_.contains(name))
        return bad_input("the kernel has the name of a node that is a command")
            .within("fuse @" + name);
      add_step({.name = name, .is_kernel = !commands, .nodes = {n}});
    }
  }
  return {};
}

// Ports and places are known.
Status FrameEditor::read_in_place(const std::map<std::string, bool>& in_place) {
  if (in_place.empty()) return {};
  Touched touched;
  const auto say = [&](const std::string& name, bool is_in_place) -> Status {
    const NodeId n = HONE_TRY(names_.node(view(), name));
    return say_in_place(n, is_in_place ? Said::yes : Said::no, touched);
  };
  for (const auto& [name, is_in_place] : in_place)
    if (Status good = say(name, is_in_place); !good.ok())
      return std::move(good).error().within("in_place %" + name);
  HONE_TRY(check_inputs());
  follow_places(touched);
  follow_updates(touched);
  return {};
}

Status FrameEditor::read_layouts(const std::map<std::string, Layout>& layouts) {
  for (const auto& [name, layout] : layouts) {
    const Result<ValueId> v = names_.value(name);
    if (!v.ok()) return Error(v.error()).within("layout %" + name);
    planned_.layout[v->index] = layout;
    planned_.said_layout[v->index] = true;
  }
  return {};
}

Status FrameEditor::read_collectives(const std::map<std::string, CollectiveSchedule>& collectives) {
  for (const auto& [name, schedule] : collectives) {
    const Result<NodeId> n = names_.node(view(), name);
    const Status good = n.ok() ? check_schedule(view().op(*n), schedule) : Status(n.error());
    if (!good.ok()) return Error(good.error()).within("collective %" + name);
    planned_.collective[n->index] = schedule;
  }
  return {};
}

Status FrameEditor::read_order(const std::vector<std::string>& order) {
  if (order.empty()) return {};
  std::unordered_map<std::string_view, uint32_t> named;
  for (uint32_t s = 0; s < planned_.steps.size(); ++s)
    if (!planned_.steps[s].name.empty()) named.emplace(planned_.steps[s].name, s);
  std::vector<uint32_t> steps;
  for (const std::string& name : order) {
    const auto found = named.find(name);
    if (found == named.end()) {
      std::vector<std::string_view> known;
      for (const auto& [step, index] : named) known.push_back(step);
      return bad_input("there is no kernel or command '{}'", excerpt(name))
          .with_hint(known.size() < 10000 ? did_you_mean(name, known) : "")
          .within("order");
    }
    steps.push_back(found->second);
  }
  return put_order(std::move(steps));
}

Status FrameEditor::read_offsets(const std::map<std::string, int64_t>& offsets) {
  for (const auto& [name, offset] : offsets) {
    const Result<ValueId> v = names_.value(name);
    if (!v.ok()) return Error(v.error()).within("offset %" + name);
    set_offset(*v, offset);
  }
  return {};
}

}  // namespace hone
