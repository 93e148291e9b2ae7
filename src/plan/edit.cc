#include "plan/edit.h"

#include <algorithm>

#include "base/text.h"
#include "plan/collectives.h"
#include "plan/copies.h"
#include "plan/derive.h"
#include "plan/edit_set.h"
#include "plan/in_place.h"
#include "plan/view.h"

// The edits themselves: what somebody decides. edit_follow.cc has its consequences.

namespace hone {

FrameEditor::FrameEditor(PlanEditor& whole, PlannedGraph planned, bool is_said)
    : whole_(whole),
      graph_(*planned.graph),
      users_(graph_),
      planned_(std::move(planned)),
      kernels_(planned_.steps.size()),
      names_(graph_),
      is_said_(is_said) {
  for (const Step& step : planned_.steps) {
    if (!step.name.empty()) step_names_.insert(step.name);
    updates_ += step.donors.size() + (step.in_place ? 1 : 0);
  }
  for (size_t i = graph_.value_count(); i < view().value_count(); ++i) {
    const ValueId copy{static_cast<uint32_t>(i)};
    names_.add(std::string(view().name(copy)), copy);
  }
  offsets_ =
      planned_.offset.size() - static_cast<size_t>(std::ranges::count(planned_.offset, kNoOffset));
}

// ---- Changes ------------------------------------------------------------------------------------

template <class Change>
Result<Undo> FrameEditor::attempt(const Change& change) {
  const Undo before = whole_.now();
  Status good = change();
  if (good.ok()) return before;
  whole_.undo(before);
  new_in_order_ = kNoStep;
  return std::move(good).error();
}

template <class List>
void FrameEditor::push(List PlannedGraph::* list, typename List::value_type value) {
  (planned_.*list).push_back(std::move(value));
  whole_.later([this, list] { (planned_.*list).pop_back(); });
}

template <class List>
void FrameEditor::pop(List PlannedGraph::* list) {
  typename List::value_type last = (planned_.*list).back();
  (planned_.*list).pop_back();
  whole_.later([this, list, last = std::move(last)] { (planned_.*list).push_back(last); });
}

void FrameEditor::set_step(uint32_t at, Step step) {
  if (planned_.steps[at] == step) return;
  whole_.later([this, at, old = std::exchange(planned_.steps[at], std::move(step))] {
    planned_.steps[at] = old;
    whole_.tell(*this, kNoStep);
  });
  whole_.tell(*this, kNoStep);
}

void FrameEditor::set_kernel(uint32_t at, KernelKey key) {
  if (kernels_[at] == key) return;
  whole_.later([this, at, old = std::exchange(kernels_[at], key)] {
    kernels_[at] = old;
    whole_.tell(*this, at);
  });
  whole_.tell(*this, at);
}

uint32_t FrameEditor::add_step(Step step) {
  const auto at = static_cast<uint32_t>(planned_.steps.size());
  for (NodeId n : step.nodes) set(&PlannedGraph::step_of, n.index, at);
  if (!step.name.empty()) take_name(step.name);
  push(&PlannedGraph::steps, std::move(step));
  kernels_.emplace_back();
  whole_.later([this, at] {
    kernels_.pop_back();
    whole_.tell(*this, at);
  });
  return at;
}

// Its nodes are elsewhere by now, and the order does not have it.
void FrameEditor::remove_step(uint32_t at, Touched& touched) {
  const auto last = static_cast<uint32_t>(planned_.steps.size() - 1);
  if (!planned_.steps[at].name.empty()) drop_name(planned_.steps[at].name);
  if (kernels_[at] != KernelKey()) {
    whole_.leave(kernels_[at].hash);
    set_kernel(at, {});
  }
  if (at != last) {
    set_step(at, planned_.steps[last]);
    for (NodeId n : planned_.steps[at].nodes) set(&PlannedGraph::step_of, n.index, at);
    for (size_t i = 0; i < planned_.order.size(); ++i)
      if (planned_.order[i] == last) set(&PlannedGraph::order, i, at);
    set_kernel(at, kernels_[last]);
    set_kernel(last, {});
    for (uint32_t& step : touched.steps)
      if (step == last) step = at;
    // Steps that wait for it know its number.
    if (updates_ > 0)
      touched.values.insert(touched.values.end(), planned_.steps[at].reads.begin(),
                            planned_.steps[at].reads.end());
  }
  pop(&PlannedGraph::steps);
  kernels_.pop_back();
  whole_.later([this, last] {
    kernels_.emplace_back();
    whole_.tell(*this, last);
  });
  whole_.tell(*this, last);
}

void FrameEditor::take_name(const std::string& name) {
  step_names_.insert(name);
  whole_.later([this, name] { step_names_.erase(name); });
}

void FrameEditor::drop_name(const std::string& name) {
  step_names_.erase(name);
  whole_.later([this, name] { step_names_.insert(name); });
}

std::string FrameEditor::fresh_kernel() {
  next_kernel_ = std::max(next_kernel_, planned_.steps.size());
  for (;; ++next_kernel_)
    if (std::string name = fmt::format("k{}", next_kernel_); !step_names_.contains(name))
      return name;
}

// ---- Layouts ------------------------------------------------------------------------------------

Result<Undo> FrameEditor::set_layout(ValueId v, const std::optional<Layout>& layout) {
  const auto change = [&]() -> Status {
    set(&PlannedGraph::said_layout, v.index, layout.has_value());
    set(&PlannedGraph::layout, v.index,
        layout ? *layout : Layout::row_major(view().type(v).rank()));
    HONE_TRY(check_memory({&v, 1}));
    std::vector<ValueId> same = Derivation(planned_, users()).inside(v);
    std::vector<uint32_t> steps = follow_layouts(same);
    HONE_TRY(check_views(same));
    append_ports(v, steps);
    return rehash_all(std::move(steps));
  };
  return attempt(change);
}

// ---- Groups -------------------------------------------------------------------------------------

Status FrameEditor::check_step(uint32_t step) const {
  if (step < planned_.steps.size()) return {};
  return bad_input("there is no step {}", step).within("fuse");
}

Result<Undo> FrameEditor::form(uint32_t s) {
  const auto change = [&]() -> Status {
    HONE_TRY(check_step(s));
    Step step = planned_.steps[s];
    if (!step.name.empty())
      return bad_input("it is decided already").within("fuse " + label(view(), step));
    step.name = fresh_kernel();
    take_name(step.name);
    set_step(s, std::move(step));
    return follow({.nodes = {}, .values = {}, .steps = {s}, .may_close_cycle = false});
  };
  return attempt(change);
}

Result<Undo> FrameEditor::join(uint32_t a, uint32_t b) {
  const auto change = [&]() -> Status {
    for (uint32_t step : {a, b}) HONE_TRY(check_step(step));
    Step first = planned_.steps[a], second = planned_.steps[b];
    for (const Step* step : {&first, &second})
      if (!step->is_kernel)
        return bad_input("{} is a command of its own", label(view(), *step)).within("fuse");
    if (a == b) return bad_input("{} joins itself", label(view(), first)).within("fuse");
    Touched touched;
    touched.may_close_cycle = may_lie_between(a, b);
    for (const Step* step : {&first, &second})
      for (const std::vector<ValueId>* ports : {&step->reads, &step->writes})
        touched.values.insert(touched.values.end(), ports->begin(), ports->end());
    Step both = first;
    both.nodes.clear();
    std::ranges::merge(
        first.nodes, second.nodes, std::back_inserter(both.nodes), {},
        [&](NodeId n) { return view().position(n); }, [&](NodeId n) { return view().position(n); });
    both.in_place = first.in_place || second.in_place;
    both.donors.insert(both.donors.end(), second.donors.begin(), second.donors.end());
    std::ranges::sort(both.donors, {}, [&](const Donor& d) { return view().name(d.output); });
    if (first.name.empty()) both.name = second.name.empty() ? fresh_kernel() : second.name;
    if (first.name.empty() && second.name.empty()) take_name(both.name);
    if (first.name.empty() && !second.name.empty()) {
      Step unnamed = second;
      unnamed.name = "";
      set_step(b, std::move(unnamed));  // so that the name stays taken
    }
    for (NodeId n : second.nodes) set(&PlannedGraph::step_of, n.index, a);
    set_step(a, std::move(both));
    join_in_order(a, b);
    touched.steps = {a};
    remove_step(b, touched);
    return follow(std::move(touched));
  };
  return attempt(change);
}

Result<Undo> FrameEditor::split(uint32_t s, std::vector<NodeId> nodes) {
  const auto change = [&]() -> Status {
    HONE_TRY(check_step(s));
    Step rest = planned_.steps[s], part{.name = fresh_kernel(), .nodes = {}};
    const auto position = [&](NodeId n) { return view().position(n); };
    std::ranges::sort(nodes, {}, position);
    for (NodeId n : nodes) {
      if (n.index >= planned_.step_of.size() || planned_.step_of[n.index] != s)
        return bad_input("node {} is not in {}", n.index, label(view(), rest)).within("fuse");
    }
    const auto is_part = [&](NodeId n) {
      return std::ranges::binary_search(nodes, position(n), {}, position);
    };
    std::erase_if(rest.nodes, is_part);
    if (rest.name.empty() || rest.nodes.empty() || nodes.empty() || !rest.is_kernel)
      return bad_input("some of its nodes, but not all, can be a kernel of their own")
          .within("fuse " + label(view(), planned_.steps[s]));
    part.nodes = nodes;
    const auto is_moved = [&](const Donor& donor) {
      return is_part(view().producer(donor.output));
    };
    std::ranges::copy_if(rest.donors, std::back_inserter(part.donors), is_moved);
    std::erase_if(rest.donors, is_moved);
    Touched touched;
    for (NodeId n : planned_.steps[s].nodes)
      for (ValueId v : view().results(n)) touched.values.push_back(v);
    set_step(s, std::move(rest));
    const uint32_t added = add_step(std::move(part));
    touched.steps = {s, added};
    // A path through other steps would have come back to the whole.
    touched.may_close_cycle = reads(s, added) && reads(added, s);
    new_in_order_ = added;
    return follow(std::move(touched));
  };
  return attempt(change);
}

bool FrameEditor::reads(uint32_t reader, uint32_t step) const {
  for (NodeId n : planned_.steps[reader].nodes)
    for (ValueId v : view().operands(n))
      if (!v.is_none() && planned_.step_of[view().producer(v).index] == step) return true;
  return false;
}

// ---- Views --------------------------------------------------------------------------------------

Result<Undo> FrameEditor::set_view(NodeId n, Said said) {
  const auto change = [&]() -> Status {
    Touched touched;
    const bool was_view = planned_.is_view(n);
    if (said != Said::nothing)
      if (Status good = check_view(view(), users(), n); !good.ok())
        return std::move(good).error().within("view " + view().label(view().result(n)));
    if (was_view && said != Said::yes) view_off(n, touched);
    set(&PlannedGraph::said_view, n.index, said);
    if (!was_view && said == Said::yes) HONE_TRY(view_on(n, touched));
    return follow(std::move(touched));
  };
  return attempt(change);
}

// ---- In place -----------------------------------------------------------------------------------

Result<Undo> FrameEditor::set_in_place(NodeId n, Said said) {
  const auto change = [&]() -> Status {
    Touched touched;
    if (Status good = say_in_place(n, said, touched); !good.ok())
      return std::move(good).error().within("in_place " + view().label(view().result(n)));
    return follow(std::move(touched));
  };
  return attempt(change);
}

Result<Undo> FrameEditor::set_collective(NodeId n,
                                         const std::optional<CollectiveSchedule>& schedule) {
  if (schedule)
    if (Status good = check_schedule(view().op(n), *schedule); !good.ok())
      return std::move(good).error().within("collective " + view().label(view().result(n)));
  const Undo before = whole_.now();
  std::map<uint32_t, CollectiveSchedule>& all = planned_.collective;
  std::optional<CollectiveSchedule> old;
  if (const auto found = all.find(n.index); found != all.end()) old = found->second;
  const auto put = [&all, n](const std::optional<CollectiveSchedule>& one) {
    if (one)
      all[n.index] = *one;
    else
      all.erase(n.index);
  };
  put(schedule);
  whole_.later([put, old] { put(old); });
  return before;
}

Status FrameEditor::say_in_place(NodeId n, Said said, Touched& touched) {
  const bool was_in_place = planned_.said_in_place[n.index] == Said::yes;
  if (said != Said::nothing) HONE_TRY(check_in_place(view(), users(), n));
  set(&PlannedGraph::said_in_place, n.index, said);
  if (was_in_place && said != Said::yes) in_place_off(n, touched);
  if (was_in_place || said != Said::yes) return {};
  HONE_TRY(check_in_place(planned_, users(), n));
  const ValueId x = changed_by(view(), n);
  if (const uint32_t other = Derivation(planned_, users()).changer_of(x); other != kNoStep)
    return bad_input("'%{}' changes '%{}' in place, too",
                     view().name(view().result(planned_.steps[other].nodes[0])), view().name(x));
  in_place_on(n, touched);
  return {};
}

void FrameEditor::in_place_on(NodeId n, Touched& touched) {
  touch_update(n, touched);
  const uint32_t s = planned_.step_of[n.index];
  Step step = planned_.steps[s];
  if (is_update(view().opcode(n))) {
    step.in_place = true;
  } else {
    step.donors.push_back({changed_by(view(), n), view().result(n)});
    std::ranges::sort(step.donors, {}, [&](const Donor& d) { return view().name(d.output); });
  }
  set_step(s, std::move(step));
  ++updates_;
  whole_.later([this] { --updates_; });
}

void FrameEditor::in_place_off(NodeId n, Touched& touched) {
  touch_update(n, touched);
  const uint32_t s = planned_.step_of[n.index];
  Step step = planned_.steps[s];
  if (is_update(view().opcode(n))) step.in_place = false;
  const ValueId result = view().result(n);
  std::erase_if(step.donors, [&](const Donor& donor) { return donor.output == result; });
  set_step(s, std::move(step));
  --updates_;
  whole_.later([this] { ++updates_; });
}

void FrameEditor::touch_update(NodeId n, Touched& touched) const {
  const ValueId x = changed_by(view(), n), result = view().result(n);
  touched.nodes.push_back(n);
  touched.values.insert(touched.values.end(),
                        {x, result, planned_.base[x.index], planned_.base[result.index]});
  touched.steps.push_back(planned_.step_of[n.index]);
}

// ---- Copies -------------------------------------------------------------------------------------

Result<Undo> FrameEditor::add_copy(std::string name, ValueId of, std::vector<NodeId> readers) {
  const auto change = [&]() -> Status {
    std::ranges::sort(readers);
    if (Status good = check_copy(view(), names_, name, of, readers); !good.ok())
      return std::move(good).error().within("copy %" + name);
    Touched touched = touched_by_copy(of, readers);
    for (NodeId n : readers)
      if (planned_.is_view(n)) concat_off(n, touched);
    planned_.copies.add(graph_, users_, {name, of, readers});
    const ValueId v{static_cast<uint32_t>(view().value_count() - 1)};
    names_.add(name, v);
    whole_.later([this, name] {
      planned_.copies.remove(graph_, users_, planned_.copies.copies().size() - 1);
      names_.remove(name);
    });
    push_value(v);
    const NodeId n = view().producer(v);
    touched.nodes.push_back(n);
    touched.values.push_back(v);
    if (!is_leaf(view().opcode(n))) {
      const uint32_t added = add_step({.name = fresh_kernel(), .nodes = {n}});
      touched.steps.push_back(added);
      new_in_order_ = added;
    }
    HONE_TRY(reads_again(readers, touched));
    return follow(std::move(touched));
  };
  return attempt(change);
}

// The readers, of which concat_off() came before, read another value now. The plan's lines about
// them must still be legal. So must those about updates before them of an input that becomes an
// output by all of them.
Status FrameEditor::reads_again(std::span<const NodeId> readers, Touched& touched) {
  const auto check_update = [&](NodeId n) -> Status {
    if (planned_.said_in_place[n.index] == Said::nothing) return {};
    Status good = check_in_place(view(), users(), n);
    if (good.ok()) return {};
    return std::move(good).error().within("in_place " + view().label(view().result(n)));
  };
  bool may_end_chain = false;
  for (NodeId n : readers) {
    if (planned_.said_view[n.index] != Said::nothing)
      if (Status good = check_view(view(), users(), n); !good.ok())
        return std::move(good).error().within("view " + view().label(view().result(n)));
    if (planned_.is_view(n)) HONE_TRY(concat_on(n, touched));
    HONE_TRY(check_update(n));
    may_end_chain = may_end_chain || (!graph_.donations().empty() && is_update(graph_.opcode(n)));
  }
  if (!may_end_chain) return {};
  for (NodeId n : graph_.nodes()) HONE_TRY(check_update(n));
  return {};
}

FrameEditor::Touched FrameEditor::touched_by_copy(ValueId of,
                                                  std::span<const NodeId> readers) const {
  Touched touched;
  touched.nodes.assign(readers.begin(), readers.end());
  touched.values = {of, planned_.base[of.index], planned_.version[of.index]};
  for (NodeId n : readers) {
    if (planned_.step_of[n.index] != kNoStep) touched.steps.push_back(planned_.step_of[n.index]);
    for (ValueId v : view().results(n)) touched.values.push_back(v);
  }
  const uint32_t writer = planned_.step_of[view().producer(of).index];
  // The copy comes after what writes the value and before its readers: these are two steps.
  for (NodeId n : readers)
    touched.may_close_cycle =
        touched.may_close_cycle || (writer != kNoStep && planned_.step_of[n.index] == writer);
  if (writer != kNoStep) touched.steps.push_back(writer);
  return touched;
}

void FrameEditor::push_value(ValueId v) {
  push(&PlannedGraph::version, v);
  push(&PlannedGraph::base, v);
  push(&PlannedGraph::concat, NodeId{});
  push(&PlannedGraph::layout, Layout::row_major(view().type(v).rank()));
  push(&PlannedGraph::home, Home::none);
  push(&PlannedGraph::free_layout, false);
  push(&PlannedGraph::said_layout, false);
  push(&PlannedGraph::offset, kNoOffset);
  push(&PlannedGraph::step_of, kNoStep);
  push(&PlannedGraph::said_view, Said::nothing);
  push(&PlannedGraph::said_in_place, Said::nothing);
}

void FrameEditor::pop_value() {
  pop(&PlannedGraph::version);
  pop(&PlannedGraph::base);
  pop(&PlannedGraph::concat);
  pop(&PlannedGraph::layout);
  pop(&PlannedGraph::home);
  pop(&PlannedGraph::free_layout);
  pop(&PlannedGraph::said_layout);
  pop(&PlannedGraph::offset);
  pop(&PlannedGraph::step_of);
  pop(&PlannedGraph::said_view);
  pop(&PlannedGraph::said_in_place);
}

Result<Undo> FrameEditor::remove_copy(ValueId v) {
  const auto change = [&]() -> Status {
    const size_t at = v.index - graph_.value_count();
    if (!view().is_copy(v) || planned_.copies.copies()[at].readers.empty())
      return bad_input("it is not a copy").within(fmt::format("copy {}", v.index));
    const CopyOverlay copy = planned_.copies.copies()[at];
    const NodeId n = view().producer(v);
    const uint32_t step = planned_.step_of[n.index];
    if (step != kNoStep && planned_.steps[step].nodes.size() > 1)
      return bad_input("{} computes other nodes, too", label(view(), planned_.steps[step]))
          .within("copy %" + copy.name);
    Touched touched = touched_by_copy(copy.of, copy.readers);
    for (NodeId reader : copy.readers)
      if (planned_.is_view(reader)) concat_off(reader, touched);
    std::erase(touched.nodes, n);
    if (step != kNoStep) {
      std::erase(touched.steps, step);
      set(&PlannedGraph::step_of, n.index, kNoStep);
      std::vector<uint32_t> order = planned_.order;
      if (std::erase(order, step) > 0) replace_order(std::move(order));
      remove_step(step, touched);
      std::erase(touched.values, v);
    }
    if (planned_.offset[v.index] != kNoOffset) set_offset(v, kNoOffset);
    set(&PlannedGraph::said_layout, v.index, false);
    set(&PlannedGraph::layout, v.index, Layout::row_major(view().type(v).rank()));
    set(&PlannedGraph::home, v.index, Home::none);
    set(&PlannedGraph::free_layout, v.index, false);
    names_.remove(copy.name);
    planned_.copies.remove(graph_, users_, at);
    whole_.later([this, copy, at, v] {
      planned_.copies.restore(graph_, users_, at, copy);
      names_.add(copy.name, v);
    });
    if (at == planned_.copies.copies().size()) pop_value();
    HONE_TRY(reads_again(copy.readers, touched));
    return follow(std::move(touched));
  };
  return attempt(change);
}

// ---- Order and offsets --------------------------------------------------------------------------

void FrameEditor::replace_order(std::vector<uint32_t> order) {
  whole_.later(
      [this, old = std::exchange(planned_.order, std::move(order))] { planned_.order = old; });
}

Result<Undo> FrameEditor::set_order(std::vector<uint32_t> order) {
  const auto change = [&]() -> Status {
    HONE_TRY(put_order(std::move(order)));
    HONE_TRY(check_order(planned_.order, true));
    return offsets_ > 0 ? check_places() : Status();
  };
  return attempt(change);
}

Status FrameEditor::put_order(std::vector<uint32_t> order) {
  std::vector<bool> seen(planned_.steps.size());
  for (uint32_t step : order) {
    if (step >= seen.size())
      return bad_input("there is no kernel or command '{}'", step).within("order");
    const Step& one = planned_.steps[step];
    if (one.name.empty())
      return bad_input("{} is not in a group yet", label(view(), one)).within("order");
    if (seen[step]) return bad_input("'{}' is named twice", one.name).within("order");
    seen[step] = true;
  }
  replace_order(std::move(order));
  return {};
}

void FrameEditor::set_offset(ValueId v, int64_t offset) {
  const bool was_said = planned_.offset[v.index] != kNoOffset, is_said = offset != kNoOffset;
  set(&PlannedGraph::offset, v.index, offset);
  const size_t before = offsets_;
  offsets_ = offsets_ + (is_said ? 1 : 0) - (was_said ? 1 : 0);
  whole_.later([this, before] { offsets_ = before; });
}

Undo FrameEditor::clear_offsets() {
  const Undo before = whole_.now();
  for (uint32_t i = 0; i < planned_.offset.size(); ++i)
    if (planned_.offset[i] != kNoOffset) set_offset(ValueId{i}, kNoOffset);
  return before;
}

}  // namespace hone
