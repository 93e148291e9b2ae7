#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "assign/core_times.h"

// A core in the making: the nodes and edges of a problem, with its costs and usages scaled, as
// reductions change them (reduce.cc).

namespace hone {

// The usages of a node's options in a stretch of time.
struct DraftPiece {
  CoreSpan span;
  std::vector<int64_t> usages;
};

struct DraftNode {
  std::vector<uint32_t> origins;
  std::vector<int64_t> costs;
  std::vector<DraftPiece> pieces;
  std::vector<uint32_t> edges;
  bool is_gone = false;

  size_t options() const { return costs.size(); }
};

inline bool is_never(int64_t cost) { return cost >= kNeverCost; }
inline int64_t cost_of_both(int64_t a, int64_t b) {
  return is_never(a) || is_never(b) ? kNeverCost : a + b;
}

class CoreDraft {
 public:
  // Options that are forbidden, or use more than the limit alone, are left out.
  static Result<CoreDraft> of(const AssignProblem& problem);

  std::vector<DraftNode> nodes;
  std::vector<CoreEdge> edges;  // those without costs are gone
  size_t changes = 0;

  // Adds costs of pairs of options: a row for each option of a.
  void join(uint32_t a, uint32_t b, std::vector<int64_t> costs);
  void drop_edge(uint32_t index);
  // The costs of an edge with a row for each option of this one of its nodes.
  std::vector<int64_t> rows_of(const CoreEdge& edge, uint32_t node) const;
  // An edge that has changed since it was last asked for; none: there are no more.
  std::optional<uint32_t> next_changed();

  // Adds what options of a node use.
  void add_piece(DraftNode& node, DraftPiece piece);
  // Leaves out options; those of which `keep` is true stay.
  void prune(uint32_t index, const std::vector<bool>& keep);

  // Writes down that a node takes this option, at this cost.
  void settle_on(uint32_t node, size_t option, int64_t cost);
  // Writes down that the option of b follows from that of a.
  void derive(uint32_t b, uint32_t a, const std::vector<uint32_t>& option_of);
  void derive(CoreDerived derived) { core_.derived.push_back(std::move(derived)); }

  // The core of the nodes and edges that are left.
  Result<Core> finish();

 private:
  explicit CoreDraft(const AssignProblem& problem) : problem_(&problem) {}

  int shift_for_costs() const;
  int64_t scaled(int64_t cost) const;
  void make_nodes();
  void make_edges();
  CoreEdge* edge_between(uint32_t a, uint32_t b);
  void enqueue(uint32_t edge);

  const AssignProblem* problem_;
  CoreTimes times_;
  Core core_;
  std::deque<uint32_t> queue_;
  std::vector<bool> queued_;
};

}  // namespace hone
