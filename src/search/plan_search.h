#pragma once

#include <unordered_map>

#include "cost/plan_cost.h"
#include "plan/plan_space.h"
#include "search/search.h"

namespace hone {

// The edits of a program's work, apart from the schedules of its kernels and the order of its
// steps.
inline constexpr EditKind kEditsOfShape[] = {
    EditKind::layout,   EditKind::form, EditKind::join,        EditKind::split,  EditKind::view,
    EditKind::in_place, EditKind::copy, EditKind::remove_copy, EditKind::threads};

// The plans that edits make of one, and those of its regions: a tree, in which a point is another
// one and an edit of that. Steps replay exactly. A coordinate is a kind of edit. Plans are reached
// from the start alone.
//
//   const auto editor = HONE_TRY(PlanEditor::open(graph, complete_plan, target));
//   PlanCost price(*editor, cost, store, planner_schedules(target, cost, store));
//   PlanSearch space(*editor, kEditsOfShape);
//   PricedPlans prices(space, price);
//   const SearchResult found = HONE_TRY(search.run(space, prices, options));
//   const Plan best = HONE_TRY(complete(graph, HONE_TRY(space.plan(found.best, price)), ...));
class PlanSearch : public SearchSpace {
 public:
  // The editor outlives it, and nobody else edits meanwhile. Where values lie is open from now on.
  PlanSearch(PlanEditor& editor, std::span<const EditKind> kinds);

  // The editor has the plan of the point from now on.
  void move_to(Point point);
  // The plan as it is priced: with the layouts and schedules that were assumed. complete() adds
  // places, and what is missing of the order. Errors are those of the price.
  Result<Plan> plan(Point point, PlanCost& price);

  Point start() override { return 0; }
  size_t coordinates(Point) override { return kinds_.size(); }
  std::vector<Point> neighbours(Point of, size_t coordinate, size_t limit, Rng& rng) override;
  std::optional<Point> step(Point from, Rng& rng) override;
  std::optional<Point> sample(Rng& rng) override;
  // The edits of both, as far as they are accepted one after another.
  std::optional<Point> cross(Point a, Point b, Rng& rng) override;
  std::string text(Point point) override;

 private:
  // An edit whose steps are said by their first nodes, which keep their numbers.
  struct Change {
    uint32_t frame = 0;
    OpenEdit edit = {};
    uint64_t seed = 0;  // of what the edit draws
  };
  struct Made {
    Point parent = 0;
    uint32_t depth = 0;
    Change change = {};
  };

  void add_frame(FrameEditor& frame);
  std::vector<Change> open(EditKind kind) const;
  bool is_open(const Change& change) const;
  OpenEdit edit_of(const Change& change) const;  // in the plan that the editor has
  Result<Undo> carry_out(const Change& change);
  std::optional<Point> enter(const Change& change);
  void leave();
  std::vector<Change> changes(Point point, uint32_t from_depth) const;
  Point ancestor(Point a, Point b) const;
  uint64_t fingerprint() const;
  uint64_t fingerprint(const FrameEditor& frame) const;
  std::string text(const Change& change) const;
  bool has(EditKind kind) const;

  PlanEditor& editor_;
  const std::vector<EditKind> kinds_;
  std::vector<FrameEditor*> frames_;           // that of the graph, those of regions
  std::vector<Made> made_;                     // by point
  std::unordered_map<uint64_t, Point> known_;  // by fingerprint
  Point here_ = 0;                             // what the editor has
  std::vector<Undo> undos_;                    // of the edits from the start to there
};

// The price of the whole plan. Both outlive it.
class PricedPlans : public Pricer {
 public:
  PricedPlans(PlanSearch& space, PlanCost& price) : space_(space), price_(price) {}
  Status price(std::span<const Point> points, double limit, std::span<double> seconds) override;

 private:
  PlanSearch& space_;
  PlanCost& price_;
};

}  // namespace hone
