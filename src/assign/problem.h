#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

// The problem of assignment: each node takes one of its options. An option has a cost and a usage;
// an edge has a cost for each pair of options of its two nodes. At each moment the usages of the
// nodes that are alive then must not pass a limit. The sum of all costs is to be least.
//
// Sharding is such a problem. A node is a value, and an option is a way to divide it. To move the
// value is the cost of a pair, and usage is memory. Nothing here knows of that.

namespace hone {

// Sums pass 64 bits: they are taken in 128.
using Int128 = __int128;

// A cost from this on forbids the option or the pair.
constexpr int64_t kForbiddenCost = 1'000'000'000'000'000'000;

struct AssignNode {
  int64_t begin = 0;  // alive at the moments [begin, end); never, if begin >= end
  int64_t end = 0;
  std::vector<int64_t> costs;   // of each option
  std::vector<int64_t> usages;  // of each option, while the node is alive

  bool is_ever_alive() const { return begin < end; }
};

// Costs of pairs: tables[table][option of first * options of second + option of second].
struct AssignEdge {
  uint32_t first = 0;
  uint32_t second = 0;
  uint32_t table = 0;
};

struct AssignProblem {
  std::string name;
  std::optional<int64_t> usage_limit;
  std::vector<AssignNode> nodes;
  std::vector<AssignEdge> edges;             // several may join the same two nodes
  std::vector<std::vector<int64_t>> tables;  // equal ones are best stored once

  size_t options(uint32_t node) const { return nodes[node].costs.size(); }
  int64_t limit() const { return usage_limit.value_or(std::numeric_limits<int64_t>::max()); }
};

// The option of each node.
using Assignment = std::vector<uint32_t>;

// True if the problem is well formed. Each node has an option, and as many usages as costs, none
// of them negative. Edges join two nodes of the problem and have tables of their size. Errors name
// the node or the edge by its index.
Status check(const AssignProblem& problem);

// The cost and usage of an assignment.
struct AssignValue {
  Int128 cost = 0;              // with forbidden costs as they are
  int64_t forbidden = 0;        // options and pairs taken that are forbidden
  std::string first_forbidden;  // "edge 3 (node 1, option 0; node 4, option 2)"
  Int128 peak = 0;              // the highest sum of usages
  int64_t peak_moment = 0;      // the first moment that has it
  int64_t peak_nodes = 0;       // how many are alive then

  // True if it may be taken: nothing forbidden, and within the limit.
  bool fits(const AssignProblem& problem) const {
    return forbidden == 0 && peak <= problem.limit();
  }
};

// Judges an assignment of a well formed problem. Shares no code with the solver. Errors name the
// node that has no such option.
Result<AssignValue> evaluate(const AssignProblem& problem, std::span<const uint32_t> assignment);

// An error that says what is forbidden, or how much usage is too much and when.
Status check_fits(const AssignProblem& problem, const AssignValue& value);

}  // namespace hone
