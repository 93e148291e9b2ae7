#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assign/problem.h"

// A problem made smaller: a solution of the core gives one of the problem of the same cost, and a
// best one a best one. The solver works on the core alone.

namespace hone {

// The cost of a forbidden pair in a core. Forbidden options are left out. Sums of a few fit 64
// bits.
constexpr int64_t kNeverCost = int64_t{1} << 60;

// A stretch of the core's times in which what a node uses does not change.
struct CoreSpan {
  uint32_t from = 0;
  uint32_t to = 0;
};

struct CoreNode {
  uint32_t origin = 0;            // the node of the problem that it stands for
  std::vector<uint32_t> origins;  // which option of that node each option is
  std::vector<int64_t> costs;     // by option
  std::vector<CoreSpan> spans;    // by time; they do not overlap
  std::vector<int64_t> usages;    // spans x options: what is used above the node's least
  std::vector<uint32_t> edges;

  size_t options() const { return costs.size(); }
  const int64_t* usages_in(size_t span) const { return usages.data() + span * options(); }
};

struct CoreEdge {
  uint32_t first = 0;
  uint32_t second = 0;
  std::vector<int64_t> costs;  // options of first x options of second

  uint32_t other(uint32_t node) const { return node == first ? second : first; }
};

// The option of a node that is not in the core, by the options of at most two others.
struct CoreDerived {
  static constexpr uint32_t kNone = UINT32_MAX;
  uint32_t node = 0;
  uint32_t first = kNone;
  uint32_t second = kNone;
  std::vector<uint32_t> choice;  // [option of first * options of second + option of second]
};

struct Core {
  std::vector<CoreNode> nodes;
  std::vector<CoreEdge> edges;       // at most one joins two nodes
  std::vector<int64_t> slack;        // of each time: the limit less the least usages
  std::vector<int64_t> moments;      // of each time: a moment of the problem
  std::vector<CoreDerived> derived;  // each by nodes of the core or those behind it
  int64_t constant = 0;              // what every solution costs
  // Where costs are so large that sums would pass 64 bits, costs here are those of the problem,
  // divided by 2^cost_shift and rounded down. Usages are rounded up then, and slacks down.
  int cost_shift = 0;
  bool are_usages_exact = true;
};

struct CoreOptions {
  bool reduce = true;  // else no more than what makes a core of it
};

// An error of ErrorCode::mismatch tells that the problem has no solution, and why. Usages may be
// above the limit; then it has the moment and how much. Or there is a node whose options are all
// forbidden.
Result<Core> reduce(const AssignProblem& problem, const CoreOptions& options = {});

// The solution of the problem, from one of the core.
Assignment restore(const AssignProblem& problem, const Core& core,
                   const std::vector<uint32_t>& options);

// The options of the core's nodes that a solution of the problem takes; none where the core has no
// such option.
std::vector<std::optional<uint32_t>> project(const Core& core, const Assignment& assignment);

}  // namespace hone
