#include "ir/op_facts.h"
#include "plan/derive.h"
#include "plan/edit.h"
#include "plan/edit_set.h"

// Nodes that become views, and views that end.

namespace hone {

Status FrameEditor::view_on(NodeId n, Touched& touched) {
  const ValueId result = view().result(n);
  const uint32_t step = planned_.step_of[n.index];
  if (planned_.steps[step].nodes.size() > 1)
    return bad_input("'%{}' is a view, which no kernel computes", view().name(result))
        .within("fuse @" + planned_.steps[step].name);
  HONE_TRY(concat_on(n, touched));
  for (ValueId v : placed_by(n)) set(&PlannedGraph::said_layout, v.index, false);
  touched.nodes.push_back(n);
  touched.values.push_back(result);
  for (ValueId v : view().operands(n)) touched.values.push_back(v);
  set(&PlannedGraph::step_of, n.index, kNoStep);
  if (planned_.steps[step].in_place || !planned_.steps[step].donors.empty())
    return bad_input("no kernel computes '%{}'", view().name(result))
        .within("in_place " + view().label(result));
  std::vector<uint32_t> order = planned_.order;
  if (std::erase(order, step) > 0) replace_order(std::move(order));
  remove_step(step, touched);
  return {};
}

// The values that lie in other memory because of the view, and so have its layout. A reshape has
// none.
std::vector<ValueId> FrameEditor::placed_by(NodeId n) const {
  if (!keeps_layout(view(), n)) return {};
  if (takes_part(view().opcode(n))) return {view().result(n)};
  return {view().operands(n).begin(), view().operands(n).end()};
}

void FrameEditor::view_off(NodeId n, Touched& touched) {
  const ValueId base = planned_.base[view().result(n).index];
  if (planned_.said_layout[base.index])
    for (ValueId v : placed_by(n)) set(&PlannedGraph::said_layout, v.index, true);
  concat_off(n, touched);
  touched.nodes.push_back(n);
  touched.values.push_back(view().result(n));
  for (ValueId v : view().operands(n)) touched.values.push_back(v);
  const uint32_t added = add_step({.name = fresh_kernel(), .nodes = {n}});
  touched.steps.push_back(added);
  new_in_order_ = added;
}

// The operands of a concat that is a view lie side by side in it, each in no other. A value that
// lies in a concat cannot be another view.
Status FrameEditor::concat_on(NodeId n, Touched& touched) {
  const ValueId result = view().result(n);
  const auto refuse = [&](ValueId v, std::string_view why, ValueId outer) {
    return bad_input("'%{}' {}", view().name(v), why).within("view " + view().label(outer));
  };
  if (!joins_operands(view().opcode(n))) {
    const NodeId outer = planned_.concat[result.index];
    return outer == NodeId{} ? Status() : refuse(result, "is a view", view().result(outer));
  }
  for (ValueId v : view().operands(n)) {
    if (lies_elsewhere(planned_, v)) return refuse(v, "is a view", result);
    if (planned_.concat[v.index] != NodeId{}) return refuse(v, "lies in another concat", result);
    set(&PlannedGraph::concat, v.index, n);
    touched.nodes.push_back(view().producer(v));
  }
  return {};
}

void FrameEditor::concat_off(NodeId n, Touched& touched) {
  if (!joins_operands(view().opcode(n))) return;
  for (ValueId v : view().operands(n)) {
    set(&PlannedGraph::concat, v.index, NodeId{});
    touched.nodes.push_back(view().producer(v));
  }
}

}  // namespace hone
