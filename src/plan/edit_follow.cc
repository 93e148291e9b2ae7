#include <algorithm>

#include "base/text.h"
#include "ir/op_facts.h"
#include "plan/derive.h"
#include "plan/edit_set.h"
#include "plan/in_place.h"

// The consequences of an edit: places, ports, memory and kernels of what it touched, and whether
// the plan may be so.

namespace hone {
namespace {

template <class T>
void sort_once(std::vector<T>& list) {
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

void append(std::vector<ValueId>& list, std::span<const ValueId> more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

Status FrameEditor::follow(Touched touched) {
  follow_places(touched);
  follow_ports(touched);
  follow_memory(touched.values);
  std::vector<uint32_t> relaid = follow_layouts(touched.values);
  HONE_TRY(check_groups(touched.steps));
  HONE_TRY(check_updates(touched));
  follow_updates(touched);
  HONE_TRY(check_memory(touched.values));
  HONE_TRY(check_views(touched.values));
  if (const uint32_t added = std::exchange(new_in_order_, kNoStep); added != kNoStep)
    insert_in_order(added);
  HONE_TRY(check_order(touched.steps, touched.may_close_cycle || updates_ > 0));
  for (uint32_t step : touched.steps) HONE_TRY(rehash(step, true));
  HONE_TRY(rehash_all(std::move(relaid)));
  whole_.tell(*this, kNoStep);
  return offsets_ > 0 ? check_places() : Status();
}

// Views and updates of a value lie where it does, and so on.
void FrameEditor::follow_places(Touched& touched) {
  const Derivation derived(planned_, users());
  for (size_t i = 0; i < touched.nodes.size(); ++i) {
    for (ValueId v : view().results(touched.nodes[i])) {
      const Derivation::Place place = derived.place_of(v);
      const ValueId version = planned_.version[v.index], base = planned_.base[v.index];
      touched.values.push_back(v);
      if (version == place.version && base == place.base) continue;
      append(touched.values, std::array{version, base, place.version, place.base});
      set(&PlannedGraph::version, v.index, place.version);
      set(&PlannedGraph::base, v.index, place.base);
      const NodeId n = view().producer(v);
      if (joins_operands(view().opcode(n)) && planned_.is_view(n))
        for (ValueId part : view().operands(n)) touched.nodes.push_back(view().producer(part));
      for (NodeId user : users().of(v)) {
        const uint32_t step = planned_.step_of[user.index];
        const bool follows = step == kNoStep || planned_.steps[step].in_place;
        if (follows) touched.nodes.push_back(user);
        if (step != kNoStep && updates_ > 0) touched.steps.push_back(step);
      }
    }
  }
  sort_once(touched.steps);
}

void FrameEditor::follow_ports(Touched& touched) {
  const Derivation derived(planned_, users());
  for (uint32_t s : touched.steps) {
    Step step = planned_.steps[s];
    append(touched.values, step.reads);
    append(touched.values, step.writes);
    step.reads.clear();
    step.writes.clear();
    derived.find_ports(step);
    for (NodeId n : step.nodes)
      for (ValueId v : view().results(n)) touched.values.push_back(v);
    append(touched.values, step.reads);
    set_step(s, std::move(step));
  }
  sort_once(touched.values);
}

void FrameEditor::follow_memory(std::vector<ValueId>& values) {
  std::erase_if(values, [&](ValueId v) {  // and copies that are gone
    return v.index >= planned_.home.size() || (view().is_copy(v) && users().of(v).empty());
  });
  for (size_t i = 0, count = values.size(); i < count; ++i)
    values.push_back(planned_.base[values[i].index]);
  sort_once(values);
  const Derivation derived(planned_, users());
  for (ValueId v : values) {
    const Derivation::Memory memory = derived.memory_of(v);
    set(&PlannedGraph::home, v.index, memory.home);
    set(&PlannedGraph::free_layout, v.index, memory.has_layout);
  }
}

// The views of values that lie in other memory now, or no more, or in memory of another layout. The
// steps that write or read them.
std::vector<uint32_t> FrameEditor::follow_layouts(std::span<const ValueId> values) {
  const Derivation derived(planned_, users());
  std::vector<uint32_t> steps;
  for (ValueId v : values) {
    Layout layout = derived.layout_of(v);
    if (layout == planned_.layout[v.index]) continue;
    set(&PlannedGraph::layout, v.index, std::move(layout));
    append_ports(v, steps);
  }
  return steps;
}

void FrameEditor::append_ports(ValueId v, std::vector<uint32_t>& steps) const {
  const uint32_t writer = planned_.step_of[view().producer(v).index];
  if (writer != kNoStep) steps.push_back(writer);
  Derivation(planned_, users()).for_each_reader(v, [&](uint32_t reader) {
    steps.push_back(reader);
  });
}

// Steps wait for those that read what they change.
void FrameEditor::follow_updates(const Touched& touched) {
  if (updates_ == 0 && touched.steps.empty()) return;
  const Derivation derived(planned_, users());
  std::vector<uint32_t> updates = touched.steps;
  for (ValueId v : touched.values) {
    if (updates_ == 0) break;
    const uint32_t changer = derived.changer_of(planned_.version[v.index]);
    if (changer != kNoStep) updates.push_back(changer);
  }
  sort_once(updates);
  for (uint32_t s : updates) {
    Step step = planned_.steps[s];
    step.after = derived.readers_before(s);
    set_step(s, std::move(step));
  }
}

Status FrameEditor::check_groups(std::span<const uint32_t> steps) const {
  for (uint32_t s : steps) {
    const Step& step = planned_.steps[s];
    if (!step.is_kernel || step.name.empty()) continue;
    Status good = check_group_alone(view(), users(), step.nodes);
    if (!good.ok()) return std::move(good).error().within("fuse @" + step.name);
  }
  return {};
}

Status FrameEditor::check_memory(std::span<const ValueId> values) const {
  for (ValueId v : values) {
    if (planned_.said_layout[v.index]) {
      Status good = planned_.has_layout(v) ? check(planned_.layout[v.index], view().type(v))
                                           : bad_input("{}", why_no_layout(planned_, users(), v));
      if (!good.ok()) return std::move(good).error().within("layout " + view().label(v));
    }
    if (planned_.offset[v.index] != kNoOffset)
      if (Status good = check_offset(planned_, v); !good.ok())
        return std::move(good).error().within("offset " + view().label(v));
  }
  return {};
}

Status FrameEditor::check_views(std::span<const ValueId> values) const {
  for (ValueId v : values) {
    const NodeId n = view().producer(v);
    if (!planned_.is_view(n)) continue;
    Status good = check_side_by_side(planned_, n);
    if (!good.ok()) return std::move(good).error().within("view " + view().label(v));
  }
  return {};
}

// ---- In place -----------------------------------------------------------------------------------

Status FrameEditor::check_updates(const Touched& touched) const {
  if (updates_ == 0) return {};
  const Derivation derived(planned_, users());
  std::vector<uint32_t> steps = touched.steps;
  for (ValueId v : touched.values)
    if (const uint32_t step = derived.changer_of(v); step != kNoStep) steps.push_back(step);
  for (NodeId n : touched.nodes)
    if (planned_.said_in_place[n.index] == Said::yes) HONE_TRY(check_update(n));
  sort_once(steps);
  for (uint32_t s : steps)
    for (NodeId n : planned_.steps[s].nodes)
      if (planned_.said_in_place[n.index] == Said::yes) HONE_TRY(check_update(n));
  return {};
}

Status FrameEditor::check_update(NodeId n) const {
  const auto check = [&]() -> Status {
    HONE_TRY(check_in_place(view(), users(), n));
    HONE_TRY(check_in_place(planned_, users(), n));
    const ValueId x = changed_by(view(), n);
    for (NodeId user : users().of(x)) {
      const uint32_t s = planned_.step_of[user.index];
      if (user == n || s == kNoStep || !planned_.steps[s].in_place) continue;
      if (planned_.steps[s].reads[0] == x)
        return bad_input("'%{}' changes '%{}' in place, too", view().name(view().result(user)),
                         view().name(x));
    }
    return {};
  };
  if (Status good = check(); !good.ok())
    return std::move(good).error().within("in_place " + view().label(view().result(n)));
  return {};
}

// An input becomes an output only if all updates on the way are in place.
Status FrameEditor::check_inputs() const {
  for (const Step& step : planned_.steps) {
    if (!step.in_place) continue;
    const auto behind = updates_of_input(view(), step.nodes[0]);
    if (!behind) continue;
    for (NodeId n : *behind) {
      const uint32_t at = planned_.step_of[n.index];
      if (at != kNoStep && planned_.steps[at].in_place) continue;
      return bad_input(
                 "'%{}' is not in place, but input '%{}' must pass through it to become an output",
                 view().name(view().result(n)), view().name(step.reads[0]))
          .within("in_place " + view().label(step.writes[0]));
    }
  }
  return {};
}

// ---- Order --------------------------------------------------------------------------------------

// Before what needs it, as late as that allows; without a whole order nobody knows.
void FrameEditor::insert_in_order(uint32_t step) {
  if (planned_.order.size() + 1 != planned_.steps.size() || planned_.order.empty()) return;
  std::vector<bool> waits(planned_.steps.size());
  for (uint32_t follower : followers(step)) waits[follower] = true;
  std::vector<uint32_t> order = planned_.order;
  const auto at = std::ranges::find_if(order, [&](uint32_t s) { return waits[s]; });
  order.insert(at, step);
  replace_order(std::move(order));
}

// One of the two places: the later one, where all is there that both need, or the earlier.
void FrameEditor::join_in_order(uint32_t into, uint32_t joined) {
  std::vector<uint32_t> order = planned_.order;
  const auto a = std::ranges::find(order, into), b = std::ranges::find(order, joined);
  if (b == order.end()) return;
  if (a == order.end()) {
    *b = into;
  } else if (a < b) {
    *b = into;
    order.erase(a);
  } else {
    order.erase(b);
  }
  replace_order(std::move(order));
}

// Steps that wait for it: they read what it writes, or change what it reads.
std::vector<uint32_t> FrameEditor::followers(uint32_t step) const {
  const Derivation derived(planned_, users());
  std::vector<uint32_t> found;
  std::vector<ValueId> same = planned_.steps[step].writes;  // and what lies in it
  for (size_t i = 0; i < same.size(); ++i) {
    derived.for_each_reader(same[i], [&](uint32_t reader) { found.push_back(reader); });
    for (NodeId user : users().of(same[i]))
      if (planned_.is_view(user)) same.push_back(view().result(user));
  }
  if (updates_ > 0) {
    for (ValueId v : planned_.steps[step].reads) {
      const uint32_t changer = derived.changer_of(planned_.version[v.index]);
      if (changer != kNoStep && changer != step) found.push_back(changer);
    }
  }
  sort_once(found);
  return found;
}

// True if the reader reads what the step writes as a view, which is inside of no kernel.
bool FrameEditor::reads_as_view(uint32_t reader, uint32_t step) const {
  std::vector<ValueId> same = planned_.steps[step].writes;
  for (size_t i = 0; i < same.size(); ++i) {
    for (NodeId user : users().of(same[i])) {
      if (planned_.is_view(user)) same.push_back(view().result(user));
      if (i >= planned_.steps[step].writes.size() && planned_.step_of[user.index] == reader)
        return true;
    }
  }
  return false;
}

// True if a step, or a view, may need the one and be needed by the other. Where one reads the other
// and nothing else does, or the other reads nothing else, that is known without a search.
bool FrameEditor::may_lie_between(uint32_t a, uint32_t b) const {
  if (reads_as_view(a, b) || reads_as_view(b, a)) return true;
  const auto others = [](std::vector<uint32_t> steps, uint32_t but) {
    std::erase(steps, but);
    return !steps.empty();
  };
  const std::vector<uint32_t> behind_a = followers(a), behind_b = followers(b);
  const bool a_first = std::ranges::binary_search(behind_a, b);
  const bool b_first = std::ranges::binary_search(behind_b, a);
  const bool from_a = !b_first && others(behind_a, b) && others(planned_.needs(b), a);
  const bool from_b = !a_first && others(behind_b, a) && others(planned_.needs(a), b);
  return from_a || from_b;
}

Status FrameEditor::check_order(std::span<const uint32_t> steps, bool may_close_cycle) const {
  if (updates_ > 0) HONE_TRY(check_inputs());
  const std::vector<uint32_t> position = positions();
  if (!position.empty()) {
    HONE_TRY(check_positions(steps, position));
    if (planned_.order.size() == planned_.steps.size() || waiting().empty()) return {};
  }
  if (!may_close_cycle && position.empty()) return {};
  for (uint32_t step : steps) HONE_TRY(check_no_cycle(step, position));
  return {};
}

// The positions by step, kNoStep for steps that the order leaves out. Empty: nobody says an order.
std::vector<uint32_t> FrameEditor::positions() const {
  if (planned_.order.empty()) return {};
  std::vector<uint32_t> position(planned_.steps.size(), kNoStep);
  for (uint32_t i = 0; i < planned_.order.size(); ++i) position[planned_.order[i]] = i;
  return position;
}

// Steps that wait for nothing are done until there are none; what is left waits for itself, or for
// what does.
std::vector<uint32_t> FrameEditor::waiting() const {
  const size_t count = planned_.steps.size();
  std::vector<uint32_t> waits(count), ready, left;
  std::vector<std::vector<uint32_t>> readers(count);
  const auto wait = [&](uint32_t reader, uint32_t needed) {
    readers[needed].push_back(reader);
    ++waits[reader];
  };
  for (uint32_t s = 0; s < count; ++s)
    for (uint32_t needed : planned_.needs(s)) wait(s, needed);
  // A stated order adds that each step waits for the one before.
  for (size_t i = 1; i < planned_.order.size(); ++i) wait(planned_.order[i], planned_.order[i - 1]);
  for (uint32_t s = 0; s < count; ++s)
    if (waits[s] == 0) ready.push_back(s);
  while (!ready.empty()) {
    const uint32_t step = ready.back();
    ready.pop_back();
    for (uint32_t reader : readers[step])
      if (--waits[reader] == 0) ready.push_back(reader);
  }
  for (uint32_t s = 0; s < count; ++s)
    if (waits[s] > 0) left.push_back(s);
  return left;
}

// Checks all steps at once.
Status FrameEditor::check_all_can_run() const {
  const std::vector<uint32_t> position = positions();
  Status ordered = position.empty() ? Status() : check_positions(planned_.order, position);
  const bool is_whole = !position.empty() && planned_.order.size() == planned_.steps.size();
  if (ordered.ok() && is_whole) return {};
  const std::vector<uint32_t> left = ordered.ok() ? waiting() : std::vector<uint32_t>();
  if (ordered.ok() && left.empty()) return {};
  HONE_TRY(check_ways_back(everything().steps));
  if (!ordered.ok()) return ordered;
  // Each waits for one that waits; going back must come round.
  std::vector<uint32_t> path;
  std::vector<bool> seen(planned_.steps.size());
  uint32_t step = left.front();
  for (; !seen[step]; seen[path.back()] = true) {
    path.push_back(step);
    for (uint32_t needed : planned_.needs(step))
      if (std::ranges::binary_search(left, needed)) step = needed;
    const bool is_before =
        step == path.back() && !std::ranges::binary_search(planned_.needs(step), step);
    if (is_before) step = planned_.order[position[step] - 1];
  }
  path.erase(path.begin(), std::ranges::find(path, step));
  return cycle(path);
}

Status FrameEditor::check_positions(std::span<const uint32_t> steps,
                                    const std::vector<uint32_t>& position) const {
  const auto check = [&](uint32_t before, uint32_t after) -> Status {
    if (position[before] == kNoStep || position[after] == kNoStep ||
        position[before] < position[after])
      return {};
    const bool is_update = std::ranges::binary_search(planned_.steps[after].after, before);
    return bad_input("{} comes before {}, which {}", label(view(), planned_.steps[after]),
                     label(view(), planned_.steps[before]),
                     is_update ? "needs the value that it changes in place" : "it reads")
        .within("order");
  };
  for (uint32_t step : steps) {
    for (uint32_t needed : planned_.needs(step)) HONE_TRY(check(needed, step));
    for (uint32_t follower : followers(step)) HONE_TRY(check(step, follower));
  }
  return {};
}

Status FrameEditor::check_no_cycle(uint32_t step, const std::vector<uint32_t>& position) const {
  std::unordered_map<uint32_t, uint32_t> from;  // steps that wait for it, and for whom
  std::vector<uint32_t> reached = {step};
  for (size_t i = 0; i < reached.size(); ++i) {
    std::vector<uint32_t> next = followers(reached[i]);
    if (!position.empty() && position[reached[i]] < planned_.order.size() - 1)
      next.push_back(planned_.order[position[reached[i]] + 1]);
    for (uint32_t follower : next) {
      if (!from.emplace(follower, reached[i]).second) continue;
      reached.push_back(follower);
      if (follower != step) continue;
      std::vector<uint32_t> steps = {step};
      for (uint32_t s = from.at(step); s != step; s = from.at(s)) steps.push_back(s);
      HONE_TRY(check_ways_back(steps));
      return cycle(steps);
    }
  }
  return {};
}

// Tells whether a path leaves a group and comes back: that is the fault of the group alone.
Status FrameEditor::check_ways_back(std::span<const uint32_t> steps) const {
  for (uint32_t s : steps) {
    const Step& step = planned_.steps[s];
    if (!step.is_kernel || step.name.empty()) continue;
    Status good = check_group(view(), users(), step.nodes);
    if (!good.ok()) return std::move(good).error().within("fuse @" + step.name);
  }
  return {};
}

// The error for steps that wait for the next each, and the last for the first.
Error FrameEditor::cycle(std::span<const uint32_t> steps) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < steps.size(); ++i) {
    const std::string name = label(view(), planned_.steps[steps[i]]);
    if (!std::ranges::binary_search(planned_.needs(steps[i]), steps[(i + 1) % steps.size()]))
      return bad_input("{} comes too late: an earlier step waits for it", name).within("order");
    names.push_back(name);
  }
  return bad_input("{} wait for each other in a circle", hone::join(names, ", ")).within("fuse");
}

Status FrameEditor::check_places() const {
  for (uint32_t i = 0; i < planned_.offset.size(); ++i)
    if (planned_.offset[i] != kNoOffset)
      if (Status good = check_offset(planned_, ValueId{i}); !good.ok())
        return std::move(good).error().within("offset " + view().label(ValueId{i}));
  return check_no_overlap(planned_);
}

// ---- Kernels ------------------------------------------------------------------------------------

Status FrameEditor::hash_all() {
  for (uint32_t s = 0; s < planned_.steps.size(); ++s) HONE_TRY(rehash(s, true));
  return {};
}

// Where only layouts are others.
Status FrameEditor::rehash_all(std::vector<uint32_t> steps) {
  sort_once(steps);
  for (uint32_t step : steps) HONE_TRY(rehash(step, false));
  return {};
}

Status FrameEditor::rehash(uint32_t s, bool is_new_graph) {
  const Step& step = planned_.steps[s];
  if (!step.is_kernel) return {};
  KernelKey key = kernels_[s];
  if (is_new_graph || key == KernelKey()) key.graph = structural_hash(body(s).graph);
  key.hash = kernel_hash(planned_, step, key.graph);
  if (key == kernels_[s]) return {};
  const KernelKey before = kernels_[s];
  set_kernel(s, key);
  if (before.hash == key.hash) return {};
  HONE_TRY(whole_.enter(key.hash, *this, s));
  if (before != KernelKey()) whole_.leave(before.hash);
  return {};
}

}  // namespace hone
