#pragma once

#include "plan/planned.h"
#include "plan/view.h"

// The consequences of the decisions of a plan, value by value and step by step: planned() asks for
// all of them, an edit for those that it touches.

namespace hone {

class Derivation {
 public:
  // Both must live as long.
  Derivation(const PlannedGraph& planned, UsersView users)
      : planned_(planned), graph_(planned.view()), users_(users) {}

  // Finds the ports of a step whose nodes are known.
  void find_ports(Step& step) const;

  // The place of a value whose operands' places are known; see PlannedGraph.
  struct Place {
    ValueId version;
    ValueId base;
  };
  Place place_of(ValueId v) const;

  // Where steps, ports and places are known.
  struct Memory {
    Home home = Home::none;
    bool has_layout = false;
  };
  Memory memory_of(ValueId v) const;
  // The layout that the plan says, or that of the memory that the value lies in; otherwise
  // row-major.
  Layout layout_of(ValueId v) const;
  // The value, and what lies in it: parts of a concat, views.
  std::vector<ValueId> inside(ValueId v) const;
  // True if it is row-major, and so all that lies in the same memory. Either not only kernels write
  // and read it, or it is changed in place, or a view of it has other dims.
  bool is_row_major(ValueId v) const;

  // The values that the step changes in place: the operand of an update, inputs that outputs lie
  // in.
  std::vector<ValueId> changed_by(const Step& step) const;
  // Step::after of a step.
  std::vector<uint32_t> readers_before(uint32_t step) const;
  // The step that changes the value in place; kNoStep: there is none.
  uint32_t changer_of(ValueId v) const;

  // Calls visit(step) for each step that needs the value from memory; some more than once.
  template <class Visit>
  void for_each_reader(ValueId v, const Visit& visit) const {
    const uint32_t writer = planned_.step_of[graph_.producer(v).index];
    const bool stays_inside = is_number(graph_, v);
    for (NodeId user : users_.of(v)) {
      const uint32_t step = planned_.step_of[user.index];
      if (step == kNoStep) continue;
      const bool is_inside = planned_.steps[step].is_kernel && (step == writer || stays_inside);
      if (!is_inside) visit(step);
    }
  }

 private:
  bool becomes_output(ValueId v) const;
  ValueId outermost(ValueId v) const;

  const PlannedGraph& planned_;
  const GraphView graph_;
  const UsersView users_;
};

}  // namespace hone
