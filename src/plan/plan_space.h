#pragma once

#include <string_view>
#include <vector>

#include "base/rng.h"
#include "plan/edit.h"

// The edits that are open in a plan: for searches, which propose one after another, and for random
// plans. An open edit may still be refused: only a try tells whether it fits the rest.

namespace hone {

enum class EditKind : uint8_t {
  layout,       // value: another layout
  form,         // step: the kernel of a node without a group
  join,         // step, other: one kernel; one reads the other, or both read the same
  split,        // node: a kernel without it, and one of it
  view,         // node: a view, or none any more
  in_place,     // node: in place, or not any more
  copy,         // value: some of its readers read a copy
  remove_copy,  // value: its readers read what it is a copy of
  schedule,     // step: another schedule of its kernel, or an open one
  order,        // 0: another order of all steps
  threads,      // 0, of the graph alone: another number
};
std::string_view name(EditKind kind);
inline constexpr EditKind kEditKinds[] = {
    EditKind::layout,   EditKind::form,     EditKind::join,   EditKind::split,
    EditKind::view,     EditKind::in_place, EditKind::copy,   EditKind::remove_copy,
    EditKind::schedule, EditKind::order,    EditKind::threads};

struct OpenEdit {
  EditKind kind = EditKind::layout;
  uint32_t subject = 0;  // a value, step or node, as the kind says
  uint32_t other = 0;    // the second step of a join
  bool operator==(const OpenEdit&) const = default;
};

class PlanSpace {
 public:
  // The frame lives as long, and is not edited meanwhile.
  explicit PlanSpace(const FrameEditor& frame) : frame_(frame) {}

  // The edits of one kind, each once. Time is linear in the graph.
  std::vector<OpenEdit> edits(EditKind kind) const;
  std::vector<OpenEdit> edits() const;  // of all kinds

 private:
  std::vector<OpenEdit> of_values(EditKind kind) const;
  std::vector<OpenEdit> of_steps(EditKind kind) const;
  std::vector<OpenEdit> of_nodes(EditKind kind) const;
  std::vector<OpenEdit> of_frame(EditKind kind) const;
  std::vector<OpenEdit> joins() const;
  bool is_open(EditKind kind, NodeId n) const;

  const FrameEditor& frame_;
};

// "join @k0 @k1", "layout %h". The edit is open.
std::string text(const FrameEditor& frame, const OpenEdit& edit);

// Carries the edit out. Open parts (which layout, which readers) are drawn; a decision
// may be open again. A search that has a value in mind calls the frame's edit itself.
Result<Undo> apply(FrameEditor& frame, const OpenEdit& edit, Rng& rng);

// Any order in which no step comes before what it needs.
std::vector<uint32_t> random_order(const PlannedGraph& planned, Rng& rng);

// Any order of the dims, in places with blocks of one of them.
Layout random_layout(Type type, Rng& rng);

}  // namespace hone
