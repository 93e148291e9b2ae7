#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernel/back_walk.h"

// Counts the work of computing a group at points of its results, each time again. Access relations
// alone tell where the values are needed.

namespace hone {

struct GroupWork {
  int64_t statements = 0;  // of the code for one point
  double operations = 0;   // for all points; what does not depend on a loop is not repeated in it
  double inherent = 0;     // of the ops on their own, each element computed once
};

inline constexpr int64_t kMaxStatements = 512;
// The most operations of a kernel, in multiples of those of its ops on their own.
inline constexpr double kMaxRepetition = 16;

// Says whether one kernel may do as much, where it keeps nothing; and why not.
Status check_work(const GroupWork& work);

// Stops at kMaxStatements + 1 statements, without operations then. Symbols count as their largest
// values.
GroupWork work_of(const Graph& graph, std::span<const NodeId> nodes,
                  std::span<const ValueId> outputs);
GroupWork work_of(const KernelBody& body);

// The work of a group that grows towards what it reads: outputs first, then nodes from the last to
// the first. A node costs what it adds, however large the group is already.
class GrowingWork {
 public:
  explicit GrowingWork(const Graph& graph) : graph_(graph) {}

  void add_output(ValueId output);
  void add(NodeId node);
  GroupWork work() const;
  // More than kMaxStatements, or than 64 loops: what is added after that is not counted.
  bool is_too_much() const;

  // Takes back the nodes that were added since. Nothing that they read may be added later.
  struct Mark {
    GroupWork work;
    size_t loops = 0;
  };
  Mark mark() const { return {work_, loops_.size()}; }
  void return_to(const Mark& mark);

 private:
  using Loops = uint64_t;  // a set: bits are positions in the list of loops
  struct Loop {
    double extent;
    Loops around;  // itself and those that it stands in; results' loops stand in any order
  };
  // One place where a value is needed.
  struct Visit {
    uint64_t identity;
    std::vector<Loops> dims;  // per dim of the value: the loops that its index depends on
    Loops guards = 0;         // the loops that decide whether it is needed at all
    Loops all() const;
    bool is_same(const Visit& other) const { return identity == other.identity; }
    void absorb(const Visit& /*other*/) {}
  };
  struct Walk;

  void open(double extent, Loops around);
  Loops around(Loops loops) const;
  double points(Loops loops) const;

  const Graph& graph_;
  std::vector<Loop> loops_;  // those of the outputs first
  NeededPlaces<Visit> visits_;
  GroupWork work_;
};

}  // namespace hone
