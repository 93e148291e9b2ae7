#pragma once

#include <functional>
#include <string>

#include "assign/problem.h"
#include "base/progress.h"

namespace hone {

// The least cost known and a bound below all; no cost before the first solution.
struct AssignBounds {
  std::optional<Int128> cost;
  Int128 bound = 0;

  // How far the cost may be above the least, relative to the cost.
  double gap() const;
};

struct AssignOptions {
  std::string search = {};  // a row of searches.def; empty: the first one
  // Limits; at the first that is reached the best so far is the answer. 0: none. Without limits it
  // ends when the cost is proved to be the least.
  double seconds = 0;
  int64_t steps = 0;  // of the search and the bound: the answer is the same on every machine
  uint64_t seed = 0;
  int threads = 1;  // at most 2 are used; the answer does not depend on them
  bool reduce = true;
  std::optional<Assignment> start = {};  // a solution that is known
  const CancelToken* cancel = nullptr;
  // Called when the cost or the bound gets better, with what it took so far.
  std::function<void(const AssignBounds&)> better = {};
};

enum class AssignVerdict : uint8_t {
  optimal,  // proved: no solution costs less
  good,     // a solution; limits ended the search
  none,     // no solution was found before the limits
};

struct AssignSizes {
  size_t nodes = 0;
  size_t edges = 0;
  size_t options = 0;
  size_t times = 0;
};

struct AssignResult {
  AssignVerdict verdict = AssignVerdict::none;
  Assignment assignment;  // the best; without a solution, the one that comes closest
  AssignBounds bounds;
  AssignSizes core;   // what was left after the reduction
  int64_t steps = 0;  // of the search
  int64_t sweeps = 0;
};

// Solves a well formed problem. evaluate() has judged the answer. If it is proved that nothing is
// within the limits, that is an error of ErrorCode::mismatch, which says how much is too much.
Result<AssignResult> solve(const AssignProblem& problem, const AssignOptions& options = {});

}  // namespace hone
