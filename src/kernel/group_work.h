#pragma once

#include <cstdint>
#include <span>

#include "kernel/kernel_body.h"

// What it takes to compute a group at points of its results, each time anew: where the values are
// needed follows from access relations alone.

namespace hone {

struct GroupWork {
  int64_t statements = 0;  // of the code for one point
  double operations = 0;   // for all points; what does not depend on a loop is not repeated in it
  double inherent = 0;     // of the ops on their own, each element computed once
};

inline constexpr int64_t kMaxStatements = 512;
// A kernel may do so many times the operations of its ops on their own.
inline constexpr double kMaxRepetition = 16;

// Whether one kernel may do as much, where it keeps nothing; and why not.
Status check_work(const GroupWork& work);

// Stops at kMaxStatements + 1 statements, without operations then. Symbols count as their largest
// values.
GroupWork work_of(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs);
GroupWork work_of(const KernelBody& body);

}  // namespace hone
