#include "search/plan_search.h"

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "kernel/schedule_text.h"
#include "search/layouts.h"

namespace hone {
namespace {

constexpr int kMostTries = 16;        // to find an edit that is accepted
constexpr int64_t kMostSteps = 8;     // of a sample
constexpr double kUsualLayout = 0.8;  // the share of layouts that are usual ones

bool is_of_steps(EditKind kind) {
  return kind == EditKind::form || kind == EditKind::join || kind == EditKind::schedule;
}

}  // namespace

PlanSearch::PlanSearch(PlanEditor& editor, std::span<const EditKind> kinds)
    : editor_(editor), kinds_(kinds.begin(), kinds.end()) {
  add_frame(editor.main());
  made_.emplace_back();
  known_.emplace(fingerprint(), 0);
}

void PlanSearch::add_frame(FrameEditor& frame) {
  frame.clear_offsets();
  frames_.push_back(&frame);
  for (const auto& [key, inner] : frame.regions()) add_frame(*inner);
}

bool PlanSearch::has(EditKind kind) const {
  return std::ranges::find(kinds_, kind) != kinds_.end();
}

// ---- Edits --------------------------------------------------------------------------------------

std::vector<PlanSearch::Change> PlanSearch::open(EditKind kind) const {
  std::vector<Change> all;
  for (uint32_t f = 0; f < frames_.size(); ++f) {
    const std::vector<Step>& steps = frames_[f]->planned().steps;
    for (OpenEdit edit : PlanSpace(*frames_[f]).edits(kind)) {
      if (is_of_steps(kind)) edit.subject = steps[edit.subject].nodes[0].index;
      if (kind == EditKind::join) edit.other = steps[edit.other].nodes[0].index;
      all.push_back({f, edit});
    }
  }
  return all;
}

// The number of an edit that was open in another plan.
bool PlanSearch::is_open(const Change& change) const {
  return std::ranges::any_of(open(change.edit.kind), [&](const Change& other) {
    return other.frame == change.frame && other.edit == change.edit;
  });
}

OpenEdit PlanSearch::edit_of(const Change& change) const {
  const PlannedGraph& planned = frames_[change.frame]->planned();
  OpenEdit edit = change.edit;
  if (is_of_steps(edit.kind)) edit.subject = planned.step_of[edit.subject];
  if (edit.kind == EditKind::join) edit.other = planned.step_of[edit.other];
  return edit;
}

Result<Undo> PlanSearch::carry_out(const Change& change) {
  FrameEditor& frame = *frames_[change.frame];
  const OpenEdit edit = edit_of(change);
  Rng rng(change.seed);
  if (edit.kind == EditKind::layout && rng.chance(kUsualLayout)) {
    const ValueId v{edit.subject};
    const bool is_constant = frame.planned().home[v.index] == Home::constant;
    const std::vector<Layout> usual =
        usual_layouts(frame.view().type(v), is_constant, kUsualBlocks);
    return frame.set_layout(v, rng.pick(usual));
  }
  return apply(frame, edit, rng);
}

// The plan behind the change; none, if that is refused.
std::optional<Point> PlanSearch::enter(const Change& change) {
  const Undo before = editor_.now();
  if (!carry_out(change).ok()) return std::nullopt;
  const auto [at, is_new] = known_.try_emplace(fingerprint(), static_cast<Point>(made_.size()));
  if (!is_new) {
    editor_.undo(before);
    return at->second;
  }
  made_.push_back({here_, made_[here_].depth + 1, change});
  undos_.push_back(before);
  here_ = at->second;
  return here_;
}

void PlanSearch::leave() {
  editor_.undo(undos_.back());
  undos_.pop_back();
  here_ = made_[here_].parent;
}

Point PlanSearch::ancestor(Point a, Point b) const {
  while (a != b) {
    Point& deeper = made_[a].depth > made_[b].depth ? a : b;
    deeper = made_[deeper].parent;
  }
  return a;
}

// The edits that lead to the point from the one above it at a depth.
std::vector<PlanSearch::Change> PlanSearch::changes(Point point, uint32_t from_depth) const {
  std::vector<Change> all;
  for (; made_[point].depth > from_depth; point = made_[point].parent)
    all.push_back(made_[point].change);
  std::ranges::reverse(all);
  return all;
}

void PlanSearch::move_to(Point point) {
  const Point shared = ancestor(here_, point);
  while (here_ != shared) leave();
  for (const Change& change : changes(point, made_[shared].depth)) {
    undos_.push_back(editor_.now());
    HONE_CHECK(carry_out(change).ok(), "an edit that was accepted is refused");
  }
  here_ = point;
}

// ---- Points -------------------------------------------------------------------------------------

std::vector<Point> PlanSearch::neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) {
  move_to(of);
  std::vector<Change> all = open(kinds_[coordinate]);
  if (all.size() > limit) rng.shuffle(all), all.resize(limit);
  std::vector<Point> points;
  for (Change& change : all) {
    move_to(of);
    change.seed = rng.next();
    const std::optional<Point> next = enter(change);
    if (next && *next != of && std::ranges::find(points, *next) == points.end())
      points.push_back(*next);
  }
  return points;
}

std::optional<Point> PlanSearch::step(Point from, Rng& rng) {
  for (int i = 0; i < kMostTries && !kinds_.empty(); ++i) {
    move_to(from);
    std::vector<Change> all = open(rng.pick(kinds_));
    if (all.empty()) continue;
    Change change = rng.pick(all);
    change.seed = rng.next();
    if (const std::optional<Point> next = enter(change); next && *next != from) return next;
  }
  return std::nullopt;
}

std::optional<Point> PlanSearch::sample(Rng& rng) {
  Point at = start();
  for (int64_t left = rng.between(1, kMostSteps); left > 0; --left) at = step(at, rng).value_or(at);
  return at == start() ? std::nullopt : std::optional(at);
}

std::optional<Point> PlanSearch::cross(Point a, Point b, Rng& /*rng*/) {
  const Point shared = ancestor(a, b);
  Point at = a;
  for (const Change& change : changes(b, made_[shared].depth)) {
    move_to(at);
    if (is_open(change)) at = enter(change).value_or(at);
  }
  return at == a ? std::nullopt : std::optional(at);
}

std::string PlanSearch::text(const Change& change) const {
  return hone::text(*frames_[change.frame], edit_of(change));
}

std::string PlanSearch::text(Point point) {
  std::vector<std::string> parts;
  for (Point at = point; at != start(); at = made_[at].parent) {
    move_to(made_[at].parent);
    parts.push_back(text(made_[at].change));
  }
  std::ranges::reverse(parts);
  return parts.empty() ? "the plan" : join(parts, ", ");
}

// ---- Equal plans --------------------------------------------------------------------------------

uint64_t PlanSearch::fingerprint() const {
  Hasher all(static_cast<uint64_t>(editor_.threads().value_or(0)));
  for (const FrameEditor* frame : frames_) all.add(fingerprint(*frame));
  return all.value();
}

// Hashes what a price depends on. Numbers of steps and copies depend on the way to a plan, so
// groups and layouts are added up as a set. An open layout is row-major.
uint64_t PlanSearch::fingerprint(const FrameEditor& frame) const {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  enum class Part : uint8_t { layout, copy, view, in_place, group, order };
  uint64_t sum = 0;
  const auto add = [&](const Hasher& part) { sum += hash_mix(part.value()); };
  const auto key = [&](ValueId v) {
    return graph.is_copy(v) ? hash_string(graph.name(v)) : uint64_t{v.index};
  };
  const auto node_key = [&](NodeId n) { return key(graph.result(n)); };
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId v{i};
    if (!planned.has_layout(v) || planned.layout[i].is_row_major()) continue;
    if (graph.is_copy(v) && frame.users().of(v).empty()) continue;  // it is gone
    add(Hasher().add(Part::layout).add(key(v)).add(print(planned.layout[i])));
  }
  for (const CopyOverlay& copy : planned.copies.copies()) {
    if (copy.readers.empty()) continue;
    Hasher part = Hasher().add(Part::copy).add(copy.name).add(key(copy.of));
    for (NodeId n : copy.readers) part.add(n.index);
    add(part);
  }
  for (uint32_t i = 0; i < planned.said_view.size(); ++i) {
    if (planned.said_view[i] == Said::yes) add(Hasher().add(Part::view).add(i));
    if (planned.said_in_place[i] != Said::nothing)
      add(Hasher().add(Part::in_place).add(i).add(planned.said_in_place[i]));
  }
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    Hasher part = Hasher().add(Part::group).add(planned.steps[s].name.empty());
    for (NodeId n : planned.steps[s].nodes) part.add(node_key(n));
    const Schedule* said = editor_.schedule(frame.kernel(s).hash);
    part.add(said != nullptr);
    if (said != nullptr && has(EditKind::schedule)) part.add(print(*said));
    add(part);
  }
  if (!has(EditKind::order)) return sum;
  Hasher order = Hasher().add(Part::order);
  for (uint32_t s : planned.order) order.add(node_key(planned.steps[s].nodes[0]));
  add(order);
  return sum;
}

// ---- Results ------------------------------------------------------------------------------------

namespace {

// A kernel for each node that has none.
Status form_all(FrameEditor& frame) {
  for (const OpenEdit& edit : PlanSpace(frame).edits(EditKind::form))
    HONE_TRY(frame.form(edit.subject));
  for (const auto& [key, inner] : frame.regions()) HONE_TRY(form_all(*inner));
  return {};
}

Status say_all(const FrameEditor& frame, PlanCost& price, Plan& plan, Plan& whole) {
  const PlannedGraph& planned = frame.planned();
  const GraphView graph = frame.view();
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId v{i};
    const bool is_gone = graph.is_copy(v) && frame.users().of(v).empty();
    if (planned.has_layout(v) && !is_gone)
      plan.layout[std::string(graph.name(v))] = planned.layout[i];
  }
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    if (!planned.steps[s].is_kernel) continue;
    whole.schedule[frame.kernel(s).hash] = HONE_TRY(price.schedule(frame, s));
  }
  for (const auto& [key, inner] : frame.regions())
    HONE_TRY(say_all(*inner, price, plan.region[key], whole));
  return {};
}

}  // namespace

Result<Plan> PlanSearch::plan(Point point, PlanCost& price) {
  move_to(point);
  const Undo before = editor_.now();
  const auto whole = [&]() -> Result<Plan> {
    HONE_TRY(form_all(editor_.main()));
    Plan plan = editor_.to_plan();
    if (!plan.threads) plan.threads = editor_.target().cores;
    HONE_TRY(say_all(editor_.main(), price, plan, plan));
    return plan;
  };
  Result<Plan> plan = whole();
  editor_.undo(before);
  return plan;
}

Status PricedPlans::price(std::span<const Point> points, double /*limit*/,
                          std::span<double> seconds) {
  for (size_t i = 0; i < points.size(); ++i) {
    space_.move_to(points[i]);
    seconds[i] = HONE_TRY(price_.seconds());
  }
  return {};
}

}  // namespace hone
