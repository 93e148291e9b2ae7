#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cost/plan_cost.h"
#include "planner/groups.h"
#include "planner/schedules.h"

namespace hone {

class AskedCost;

// The prices that decide.
struct Choosers {
  ScheduleChooser& structure;          // groups and chains
  ScheduleChooser& usual;              // layouts and schedules; its choices stay,
  ScheduleChooser* learned = nullptr;  // unless this one knows surely cheaper ones; null: none
  // The price of that one, of which frames and layouts ask the same. Null: it decides nothing else.
  AskedCost* sure = nullptr;
};

// A copy of weights that these nodes should read.
struct LayoutCopy {
  ValueId of;
  std::vector<NodeId> readers;
  Layout layout;
};

// The state that the planner's steps (steps.h) share: a graph or a region, its plan so far, and the
// graph as that plan carries it out. A step tries edits in edited(), then writes its decisions to
// the plan.
class PlanningFrame {
 public:
  // Schedules go to the whole plan, the rest to the frame's own. All arguments live as long. An
  // error says which entry of the plan does not fit.
  static Result<PlanningFrame> open(const Graph& source, Plan& plan, Plan& whole,
                                    const Choosers& choosers);

  const Graph& graph() const { return *graph_; }
  const Users& users() const { return users_; }
  const PlannedGraph& planned() const { return planned_; }
  // The decisions that the plan left open before the first step. Values that make_copies() adds are
  // not in it.
  const FusionFreedom& freedom() const { return freedom_; }
  std::string name(ValueId v) const { return std::string(graph_->name(v)); }
  Plan& plan() { return plan_; }
  Plan& whole() { return whole_; }
  const Choosers& choosers() const { return choosers_; }
  const Heuristics& on() const { return choosers_.usual.heuristics(); }

  // The frame of planned(), and what steps tried since the plan was read.
  FrameEditor& edited();
  // Null: nobody has asked for it since then.
  const FrameEditor* if_edited() const { return editor_ ? &editor_->main() : nullptr; }
  // The price of edited(). One may live at a time.
  PlanCost price(ScheduleChooser& chooser);

  // The groups of edited() that the planner formed.
  Fusion edited_groups();
  // Forms the groups in place of those that the planner formed before, unless they do not fit what
  // the plan says. Either way, edits that are not part of the plan are gone.
  bool take(const Fusion& fusion);
  // The same for groups that surely fit.
  Status form(const Fusion& fusion);
  // Follows what was written to the plan.
  Status read();
  // Layouts, by value, of all that may have one.
  void take_layouts(const std::vector<Layout>& layouts);

  // Copies are asked for with the layouts, but they are values that the steps on groups do not
  // have: make_copies() adds them to the plan and the graph.
  void ask_for(std::vector<LayoutCopy> copies) { copies_ = std::move(copies); }
  Status make_copies();

 private:
  PlanningFrame(const Graph& source, Plan& plan, Plan& whole, const Choosers& choosers,
                PlannedGraph planned);
  FusionFreedom open_decisions() const;
  void write(const Fusion& fusion);

  const Graph& source_;
  GraphRef graph_;  // with the copies that the plan has
  Users users_;
  Plan& plan_;
  Plan& whole_;
  const Choosers choosers_;
  PlannedGraph planned_;
  std::set<std::string> said_;  // steps that the plan had names for
  FusionFreedom freedom_;
  std::unique_ptr<PlanEditor> editor_;
  std::vector<LayoutCopy> copies_;
};

}  // namespace hone
