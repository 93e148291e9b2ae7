#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "transport/moves.h"

// Rings, which several algorithms are made of.

namespace hone {

inline constexpr StepVector kInput = {StepRoom::input, 0};
inline constexpr StepVector kOutput = {StepRoom::output, 0};

using RingRanges = std::vector<Shard>;

// Members that stand in a ring, and the ranges of the vector that each one ends or begins with.
struct RingGroup {
  std::vector<int32_t> members;
  std::vector<RingRanges> chunks;

  int32_t size() const { return static_cast<int32_t>(members.size()); }
  int32_t member(int32_t i) const { return members[static_cast<size_t>(i)]; }
};
RingGroup whole_ring(const Moves& moves);

// Groups of equal sizes do the same at once. After ring_reduce() member i of a group has the sum of
// its chunk in `sums`, where `own` is what each one adds; they may be the same.
void ring_reduce(Moves& moves, std::span<const RingGroup> groups, const StepVector& own,
                 const StepVector& sums);
// Each member has its own chunk of `all`, and gets the others.
void ring_gather(Moves& moves, std::span<const RingGroup> groups, const StepVector& all);

// all_gather: the own shard goes to its place in the output.
void gather_own(Moves& moves);
// reduce_scatter: the own shard of the sums becomes the output.
void scatter_own(Moves& moves, const StepVector& sums);
// Where sums are made: in the output, if that has room for all.
StepVector sums_of(Moves& moves);

// A broadcast across groups from the root, then inside of each.
void broadcast_between(Moves& moves, std::span<const RingGroup> inside,
                       std::span<const RingGroup> across);

}  // namespace hone
