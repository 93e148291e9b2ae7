#include "plan/plan_space.h"

#include <algorithm>
#include <set>

#include "kernel/schedule_space.h"
#include "plan/in_place.h"
#include "plan/view.h"

namespace hone {

std::string_view name(EditKind kind) {
  switch (kind) {
    case EditKind::layout: return "layout";
    case EditKind::form: return "form";
    case EditKind::join: return "join";
    case EditKind::split: return "split";
    case EditKind::view: return "view";
    case EditKind::in_place: return "in_place";
    case EditKind::copy: return "copy";
    case EditKind::remove_copy: return "remove_copy";
    case EditKind::schedule: return "schedule";
    case EditKind::order: return "order";
    case EditKind::threads: return "threads";
  }
  return "";
}

std::string text(const FrameEditor& frame, const OpenEdit& edit) {
  const GraphView graph = frame.view();
  const auto step = [&](uint32_t s) { return label(graph, frame.planned().steps[s]); };
  const std::string_view kind = name(edit.kind);
  switch (edit.kind) {
    case EditKind::layout:
    case EditKind::copy:
    case EditKind::remove_copy:
      return fmt::format("{} {}", kind, graph.label(ValueId{edit.subject}));
    case EditKind::join: return fmt::format("{} {} {}", kind, step(edit.subject), step(edit.other));
    case EditKind::form:
    case EditKind::schedule: return fmt::format("{} {}", kind, step(edit.subject));
    case EditKind::split:
    case EditKind::view:
    case EditKind::in_place:
      return fmt::format("{} %{}", kind, step_name(graph, NodeId{edit.subject}));
    case EditKind::order:
    case EditKind::threads: break;
  }
  return std::string(kind);
}

std::vector<OpenEdit> PlanSpace::edits() const {
  std::vector<OpenEdit> all;
  for (EditKind kind : kEditKinds) {
    const std::vector<OpenEdit> some = edits(kind);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::vector<OpenEdit> PlanSpace::edits(EditKind kind) const {
  switch (kind) {
    case EditKind::layout:
    case EditKind::copy:
    case EditKind::remove_copy: return of_values(kind);
    case EditKind::form:
    case EditKind::schedule: return of_steps(kind);
    case EditKind::join: return joins();
    case EditKind::split:
    case EditKind::view:
    case EditKind::in_place: return of_nodes(kind);
    case EditKind::order:
    case EditKind::threads: return of_frame(kind);
  }
  return {};
}

std::vector<OpenEdit> PlanSpace::of_values(EditKind kind) const {
  const PlannedGraph& planned = frame_.planned();
  const GraphView graph = frame_.view();
  const UsersView users = frame_.users();
  std::vector<OpenEdit> found;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId v{i};
    const bool is_read = !users.of(v).empty();
    const bool is_open = kind == EditKind::layout ? planned.has_layout(v)
                         : kind == EditKind::copy
                             ? !graph.is_copy(v) && is_read && !is_number(graph, v)
                             : graph.is_copy(v) && is_read;
    if (is_open) found.push_back({kind, i});
  }
  return found;
}

std::vector<OpenEdit> PlanSpace::of_steps(EditKind kind) const {
  std::vector<OpenEdit> found;
  const std::vector<Step>& steps = frame_.planned().steps;
  for (uint32_t s = 0; s < steps.size(); ++s)
    if (kind == EditKind::form ? steps[s].name.empty()
                               : steps[s].is_kernel && !steps[s].name.empty())
      found.push_back({kind, s});
  return found;
}

std::vector<OpenEdit> PlanSpace::of_frame(EditKind kind) const {
  const PlanEditor& whole = frame_.whole();
  const std::vector<Step>& steps = frame_.planned().steps;
  const bool all_formed =
      std::ranges::none_of(steps, [](const Step& step) { return step.name.empty(); });
  const bool is_open = kind == EditKind::order
                           ? steps.size() > 1 && all_formed
                           : &whole.main() == &frame_ && whole.target().cores > 1;
  return is_open ? std::vector<OpenEdit>{{kind}} : std::vector<OpenEdit>();
}

std::vector<OpenEdit> PlanSpace::of_nodes(EditKind kind) const {
  std::vector<OpenEdit> found;
  for (NodeId n : frame_.view().nodes())
    if (!is_leaf(frame_.view().opcode(n)) && is_open(kind, n)) found.push_back({kind, n.index});
  return found;
}

bool PlanSpace::is_open(EditKind kind, NodeId n) const {
  const PlannedGraph& planned = frame_.planned();
  const uint32_t s = planned.step_of[n.index];
  const Step* step = s == kNoStep ? nullptr : &planned.steps[s];
  if (kind == EditKind::split) return step != nullptr && step->nodes.size() > 1;
  if (frame_.view().is_copy(n)) return false;  // it writes memory of its own
  if (kind == EditKind::view)
    return (step == nullptr || step->nodes.size() == 1) &&
           check_view(frame_.view(), frame_.users(), n).ok() && check_side_by_side(planned, n).ok();
  return step != nullptr && check_in_place(frame_.view(), frame_.users(), n).ok();
}

// Fusible kernels that read the other, or another kernel's operand.
std::vector<OpenEdit> PlanSpace::joins() const {
  const PlannedGraph& planned = frame_.planned();
  const auto may_join = [&](uint32_t s) {
    return s != kNoStep && planned.steps[s].is_kernel &&
           std::ranges::all_of(planned.steps[s].nodes,
                               [&](NodeId n) { return is_fusible(frame_.view().opcode(n)); });
  };
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  for (uint32_t i = 0; i < frame_.view().value_count(); ++i) {
    const ValueId v{i};
    uint32_t before = planned.step_of[frame_.view().producer(v).index];
    for (NodeId user : frame_.users().of(v)) {
      const uint32_t step = planned.step_of[user.index];
      if (!may_join(step)) continue;
      if (before != step && may_join(before)) pairs.insert(std::minmax(before, step));
      before = step;  // those that read the same, one after another
    }
  }
  std::vector<OpenEdit> found;
  for (const auto& [a, b] : pairs) found.push_back({EditKind::join, a, b});
  return found;
}

Layout random_layout(Type type, Rng& rng) {
  Layout layout = Layout::row_major(type.rank());
  if (layout.parts.empty() || rng.chance(0.5)) return layout;
  rng.shuffle(layout.parts);
  if (rng.chance(0.5)) return layout;
  Layout::Part& outer = rng.pick(layout.parts);
  const Dim size = type.dim(outer.dim);
  std::vector<int64_t> blocks;
  for (int64_t block = 2; block <= 64; ++block)
    if (size.divisible_by(block) && !size.is(0)) blocks.push_back(block);
  if (blocks.empty()) return layout;
  outer.block = rng.pick(blocks);
  const Layout::Part inner{outer.dim, outer.block, true};
  layout.parts.insert(layout.parts.begin() + rng.between(0, std::ssize(layout.parts)), inner);
  return layout;
}

std::vector<uint32_t> random_order(const PlannedGraph& planned, Rng& rng) {
  const size_t count = planned.steps.size();
  std::vector<uint32_t> waits(count), ready, order;
  std::vector<std::vector<uint32_t>> readers(count);
  for (uint32_t s = 0; s < count; ++s) {
    for (uint32_t needed : planned.needs(s)) {
      readers[needed].push_back(s);
      ++waits[s];
    }
    if (waits[s] == 0) ready.push_back(s);
  }
  while (!ready.empty()) {
    std::swap(rng.pick(ready), ready.back());
    const uint32_t step = ready.back();
    ready.pop_back();
    order.push_back(step);
    for (uint32_t reader : readers[step])
      if (--waits[reader] == 0) ready.push_back(reader);
  }
  return order;
}

namespace {

constexpr double kReopened = 0.2;  // the share of edits that leave open what was said

Result<Undo> change_layout(FrameEditor& frame, ValueId v, Rng& rng) {
  if (frame.planned().said_layout[v.index] && rng.chance(kReopened))
    return frame.set_layout(v, std::nullopt);
  return frame.set_layout(v, random_layout(frame.view().type(v), rng));
}

Result<Undo> change_schedule(FrameEditor& frame, uint32_t step, Rng& rng) {
  PlanEditor& whole = frame.whole();
  if (whole.schedule(frame.kernel(step).hash) != nullptr && rng.chance(kReopened))
    return whole.set_schedule(frame, step, std::nullopt);
  return whole.set_schedule(frame, step, random_schedule(frame.body(step), whole.target(), rng));
}

Result<Undo> add_random_copy(FrameEditor& frame, ValueId v, Rng& rng) {
  std::vector<NodeId> all, some;
  for (NodeId n : frame.users().of(v))
    if (!frame.view().is_copy(n) && std::ranges::find(all, n) == all.end()) all.push_back(n);
  for (NodeId n : all)
    if (rng.chance(0.6)) some.push_back(n);
  const auto is_taken = [&](const std::string& name) {
    return std::ranges::find(frame.planned().copies.copies(), name, &CopyOverlay::name) !=
           frame.planned().copies.copies().end();
  };
  std::string name = fmt::format("{}.copy", frame.view().name(v));
  for (int i = 2; is_taken(name); ++i) name = fmt::format("{}.copy_{}", frame.view().name(v), i);
  return frame.add_copy(std::move(name), v, std::move(some));
}

}  // namespace

Result<Undo> apply(FrameEditor& frame, const OpenEdit& edit, Rng& rng) {
  const ValueId v{edit.subject};
  const NodeId n{edit.subject};
  const PlannedGraph& planned = frame.planned();
  switch (edit.kind) {
    case EditKind::layout: return change_layout(frame, v, rng);
    case EditKind::form: return frame.form(edit.subject);
    case EditKind::join: return frame.join(edit.subject, edit.other);
    case EditKind::split: return frame.split(planned.step_of[n.index], {n});
    case EditKind::view:
      return frame.set_view(n, planned.said_view[n.index] == Said::yes ? Said::no : Said::yes);
    case EditKind::in_place:
      return frame.set_in_place(n,
                                planned.said_in_place[n.index] == Said::yes ? Said::no : Said::yes);
    case EditKind::copy: return add_random_copy(frame, v, rng);
    case EditKind::remove_copy: return frame.remove_copy(v);
    case EditKind::schedule: return change_schedule(frame, edit.subject, rng);
    case EditKind::order: return frame.set_order(random_order(planned, rng));
    case EditKind::threads:
      return frame.whole().set_threads(rng.between(1, frame.whole().target().cores));
  }
  return bad_input("no edit");
}

}  // namespace hone
