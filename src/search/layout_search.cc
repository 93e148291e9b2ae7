#include "search/layout_search.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace hone {

LayoutSearch::LayoutSearch(FrameEditor& frame, PlanCost& price, const LayoutSearchOptions& options)
    : frame_(frame), price_(price), before_(frame.whole().now()) {
  add_variables(options);
  add_factors();
  point(Values(variables_.size(), 0));
}

void LayoutSearch::add_variables(const LayoutSearchOptions& options) {
  const GraphView graph = frame_.view();
  const PlannedGraph& planned = frame_.planned();
  std::vector<bool> is_shared(graph.value_count());
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    if (planned.base[i] != ValueId{i}) is_shared[planned.base[i].index] = true;
  for (uint32_t i = 0; i < graph.value_count(); ++i) {
    const ValueId v{i};
    if (graph.is_copy(v) && frame_.users().of(v).empty()) continue;  // it is gone
    if (!planned.has_layout(v) || is_shared[i]) continue;
    std::vector<Layout> layouts = candidates(v, options);
    if (layouts.size() < 2) continue;
    domains_.push_back(static_cast<uint32_t>(layouts.size()));
    variables_.push_back({v, std::move(layouts)});
  }
}

std::vector<Layout> LayoutSearch::candidates(ValueId v, const LayoutSearchOptions& options) const {
  const GraphView graph = frame_.view();
  const PlannedGraph& planned = frame_.planned();
  const Type type = graph.type(v);
  std::vector<Layout> layouts = {planned.layout[v.index]};
  const auto add = [&](const Layout& layout) {
    const bool fits = layouts.size() < options.most && check(layout, type).ok();
    if (fits && std::ranges::find(layouts, layout) == layouts.end()) layouts.push_back(layout);
  };
  const bool is_constant = planned.home[v.index] == Home::constant;
  for (const Layout& layout : usual_layouts(type, is_constant, options.blocks)) add(layout);
  std::vector<uint32_t> steps = {planned.step_of[graph.producer(v).index]};
  for (NodeId n : frame_.users().of(v)) steps.push_back(planned.step_of[n.index]);
  for (uint32_t s : steps) {
    if (s == kNoStep) continue;
    for (const std::vector<ValueId>* ports : {&planned.steps[s].reads, &planned.steps[s].writes})
      for (ValueId other : *ports)
        if (graph.type(other).rank() == type.rank()) add(planned.layout[other.index]);
  }
  return layouts;
}

void LayoutSearch::add_factors() {
  const PlannedGraph& planned = frame_.planned();
  std::map<ValueId, uint32_t> variable_of;
  for (uint32_t i = 0; i < variables_.size(); ++i) variable_of[variables_[i].value] = i;
  for (uint32_t s = 0; s < planned.steps.size(); ++s) {
    if (!planned.steps[s].is_kernel) continue;
    std::set<uint32_t> scope;
    for (const std::vector<ValueId>* ports : {&planned.steps[s].reads, &planned.steps[s].writes})
      for (ValueId v : *ports)
        if (const auto at = variable_of.find(v); at != variable_of.end()) scope.insert(at->second);
    if (scope.empty()) continue;
    steps_.push_back(s);
    scopes_.emplace_back(scope.begin(), scope.end());
  }
}

// ---- Points -------------------------------------------------------------------------------------

uint32_t LayoutSearch::point(std::span<const uint32_t> values) {
  const auto [at, is_new] =
      points_.try_emplace(Values(values.begin(), values.end()), static_cast<Point>(places_.size()));
  if (is_new) places_.push_back(&at->first);
  return at->second;
}

std::vector<Point> LayoutSearch::neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) {
  Values values = *places_[of];
  std::vector<uint32_t> others;
  for (uint32_t i = 0; i < domains_[coordinate]; ++i)
    if (i != values[coordinate]) others.push_back(i);
  if (others.size() > limit) rng.shuffle(others), others.resize(limit);
  std::vector<Point> points;
  for (uint32_t other : others) {
    values[coordinate] = other;
    points.push_back(point(values));
  }
  return points;
}

std::optional<Point> LayoutSearch::sample(Rng& rng) {
  Values values;
  for (uint32_t domain : domains_) values.push_back(static_cast<uint32_t>(rng.below(domain)));
  return point(values);
}

std::optional<Point> LayoutSearch::cross(Point a, Point b, Rng& rng) {
  Values values = *places_[a];
  for (size_t i = 0; i < values.size(); ++i)
    if (rng.chance(0.5)) values[i] = (*places_[b])[i];
  return point(values);
}

Status LayoutSearch::each(const PointVisit& visit) {
  Values values(variables_.size(), 0);
  for (;;) {
    if (!visit(point(values))) return {};
    size_t i = 0;
    while (i < values.size() && ++values[i] == domains_[i]) values[i++] = 0;
    if (i == values.size()) return {};
  }
}

double LayoutSearch::size() {
  double points = 1;
  for (uint32_t domain : domains_) points *= domain;
  return points;
}

std::string LayoutSearch::text(Point point) {
  std::vector<std::string> parts;
  for (size_t i = 0; const uint32_t value : *places_[point]) {
    const Variable& variable = variables_[i++];
    if (value > 0)
      parts.push_back(fmt::format("layout {} = {}", frame_.view().label(variable.value),
                                  print(variable.layouts[value])));
  }
  return parts.empty() ? "the layouts of the plan" : join(parts, ", ");
}

// ---- Prices -------------------------------------------------------------------------------------

Status LayoutSearch::move_to(Point point) {
  if (point == here_) return {};
  frame_.whole().undo(before_);
  here_ = 0;
  for (size_t i = 0; const uint32_t value : *places_[point]) {
    const Variable& variable = variables_[i++];
    if (value == 0) continue;
    if (Result<Undo> done = frame_.set_layout(variable.value, variable.layouts[value]);
        !done.ok()) {
      frame_.whole().undo(before_);
      return done.error();
    }
  }
  here_ = point;
  return {};
}

std::vector<ValueId> LayoutSearch::variable_values() const {
  std::vector<ValueId> values;
  for (const Variable& variable : variables_) values.push_back(variable.value);
  return values;
}

std::vector<Layout> LayoutSearch::layouts(Point point) const {
  std::vector<Layout> layouts;
  for (size_t i = 0; const uint32_t value : *places_[point])
    layouts.push_back(variables_[i++].layouts[value]);
  return layouts;
}

Result<double> LayoutSearch::seconds(Point point) {
  if (!move_to(point).ok()) return std::numeric_limits<double>::infinity();
  return price_.seconds();
}

Result<double> LayoutSearch::local(size_t factor, std::span<const uint32_t> values) {
  HONE_TRY(move_to(start()));
  PlanCost::Layouts layouts;
  for (size_t i = 0; const uint32_t variable : scopes_[factor]) {
    const Variable& it = variables_[variable];
    layouts.emplace_back(it.value, it.layouts[values[i++]]);
  }
  return price_.seconds_if(frame_, steps_[factor], layouts);
}

Status PricedLayouts::price(std::span<const Point> points, double /*limit*/,
                            std::span<double> seconds) {
  for (size_t i = 0; i < points.size(); ++i) seconds[i] = HONE_TRY(space_.seconds(points[i]));
  return {};
}

}  // namespace hone
