#pragma once

#include <cstdint>
#include <vector>

#include "transport/collective.h"

// How a schedule is described: moves between members, in rounds. The moves of one round happen at
// once. None of them reads what another one stores. One may read what another one adds to: it gets
// what was there before. weave() makes the programs of the
// devices from them: it cuts moves into pieces, begins transfers early and waits for them late.

namespace hone {

struct Move {
  int32_t from = 0;  // members; equal: a copy within its memory
  int32_t to = 0;
  StepPart source = {};
  StepPart target = {};
  bool adds = false;  // target = own + what comes; else target = what comes
  StepPart own = {};  // of the receiver
};

// A vector of `elements` in a room of each member.
struct StepVector {
  StepRoom room = StepRoom::output;
  int64_t begin = 0;  // of its element 0

  StepPart part(const Shard& shard) const { return {room, begin + shard.begin, shard.count}; }
};

class Moves {
 public:
  // With `first_alone` it keeps the moves of the first member, and no others.
  explicit Moves(const Collective& collective, bool first_alone = false)
      : collective_(collective), first_alone_(first_alone) {}

  const Collective& collective() const { return collective_; }
  bool keeps(int32_t member) const { return member == 0 || !first_alone_; }
  int32_t members() const { return static_cast<int32_t>(collective_.devices.size()); }
  Shard shard(int64_t member) const { return shard_of(collective_, member); }
  // From the first element of a shard to the last one of another.
  Shard shards(int64_t first, int64_t behind) const;
  Shard whole() const { return {0, collective_.elements}; }

  void next_round() { rounds_.emplace_back(); }
  void store(int32_t from, int32_t to, const StepPart& source, const StepPart& target) {
    if (keeps(from) || keeps(to)) rounds_.back().push_back({from, to, source, target, false, {}});
  }
  void add(int32_t from, int32_t to, const StepPart& source, const StepPart& target,
           const StepPart& own) {
    if (keeps(from) || keeps(to)) rounds_.back().push_back({from, to, source, target, true, own});
  }
  void copy(int32_t member, const StepPart& source, const StepPart& target) {
    store(member, member, source, target);
  }
  // The moves themselves name the first `elements` of the scratch.
  void need_scratch(int64_t elements) { scratch_ = elements; }

  const std::vector<std::vector<Move>>& rounds() const { return rounds_; }
  int64_t scratch() const { return scratch_; }

 private:
  const Collective& collective_;
  const bool first_alone_;
  std::vector<std::vector<Move>> rounds_;
  int64_t scratch_ = 0;
};

// Programs of the members that are kept; those of others are empty.
std::vector<DeviceProgram> weave(const Moves& moves, int32_t pieces, uint32_t tag);

// The algorithms, for the collectives that their row names. The group has at least two members.
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) \
  void name##_moves(Moves& moves, const CollectiveSchedule& schedule);
#include "transport/collective.def"

}  // namespace hone
