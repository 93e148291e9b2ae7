#include <numeric>
#include <vector>

#include "base/planted.h"
#include "transport/moves_ring.h"

namespace hone {
namespace {

int32_t wrap(int32_t member, int32_t members) { return ((member % members) + members) % members; }

const RingRanges& at(const std::vector<RingRanges>& chunks, int32_t i) {
  return chunks[static_cast<size_t>(i)];
}

std::vector<int32_t> all_members(const Moves& moves) {
  std::vector<int32_t> members(static_cast<size_t>(moves.members()));
  std::iota(members.begin(), members.end(), 0);
  return members;
}

std::vector<RingRanges> all_shards(const Moves& moves) {
  std::vector<RingRanges> chunks;
  for (int32_t i = 0; i < moves.members(); ++i) chunks.push_back({moves.shard(i)});
  return chunks;
}

}  // namespace

RingGroup whole_ring(const Moves& moves) { return {all_members(moves), all_shards(moves)}; }

// Round s: the member r sends chunk r - s - 1. The sum of chunk c is ((x[c+1] + x[c+2]) + ...) +
// x[c].
void ring_reduce_round(Moves& moves, const RingGroup& group, int32_t round, const StepVector& own,
                       const StepVector& sums) {
  const int32_t p = group.size();
  for (int32_t r = 0; r < p; ++r)
    for (const Shard& range : at(group.chunks, wrap(r - round - HONE_PLANT(ring_chunk, 1, 2), p)))
      moves.add(group.member(r), group.member(wrap(r + 1, p)),
                (round == 0 ? own : sums).part(range), sums.part(range), own.part(range));
}

// Round s: the member r sends chunk r - s, or r + s to the one before.
void ring_gather_round(Moves& moves, const RingGroup& group, int32_t round, int32_t direction,
                       const StepVector& all) {
  const int32_t p = group.size();
  for (int32_t r = 0; r < p; ++r)
    for (const Shard& range : at(group.chunks, wrap(r - direction * round, p)))
      moves.store(group.member(r), group.member(wrap(r + direction, p)), all.part(range),
                  all.part(range));
}

void ring_reduce(Moves& moves, std::span<const RingGroup> groups, const StepVector& own,
                 const StepVector& sums) {
  for (int32_t round = 0; round + 1 < groups.front().size(); ++round) {
    moves.next_round();
    for (const RingGroup& group : groups) ring_reduce_round(moves, group, round, own, sums);
  }
}

void ring_gather(Moves& moves, std::span<const RingGroup> groups, const StepVector& all) {
  for (int32_t round = 0; round + 1 < groups.front().size(); ++round) {
    moves.next_round();
    for (const RingGroup& group : groups) ring_gather_round(moves, group, round, 1, all);
  }
}

void gather_own(Moves& moves) {
  moves.next_round();
  for (int32_t i = 0; i < moves.members(); ++i) {
    const Shard shard = moves.shard(i);
    moves.copy(i, {StepRoom::input, 0, shard.count}, {StepRoom::output, shard.begin, shard.count});
  }
}

void scatter_own(Moves& moves, const StepVector& sums) {
  moves.next_round();
  for (int32_t i = 0; i < moves.members(); ++i) {
    const Shard shard = moves.shard(i);
    moves.copy(i, sums.part(shard), {StepRoom::output, 0, shard.count});
  }
}

StepVector sums_of(Moves& moves) {
  if (moves.collective().kind != CollectiveKind::reduce_scatter) return {StepRoom::output, 0};
  moves.need_scratch(moves.collective().elements);
  return {StepRoom::scratch, 0};
}

void ring_moves(Moves& moves, const CollectiveSchedule&) {
  const std::vector<RingGroup> ring = {whole_ring(moves)};
  const Collective& collective = moves.collective();
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
      ring_reduce(moves, ring, kInput, kOutput);
      return ring_gather(moves, std::vector{whole_ring(moves)}, kOutput);
    case CollectiveKind::all_gather: gather_own(moves); return ring_gather(moves, ring, kOutput);
    case CollectiveKind::reduce_scatter: {
      const StepVector sums = sums_of(moves);
      ring_reduce(moves, ring, kInput, sums);
      return scatter_own(moves, sums);
    }
    default: break;
  }
  // A broadcast is a chain from the root. Pieces make it fast.
  const int32_t p = moves.members();
  moves.next_round();
  moves.copy(collective.root, kInput.part(moves.whole()), kOutput.part(moves.whole()));
  for (int32_t i = 0; i + 1 < p; ++i) {
    moves.next_round();
    moves.store(wrap(collective.root + i, p), wrap(collective.root + i + 1, p),
                kOutput.part(moves.whole()), kOutput.part(moves.whole()));
  }
}

// ---- Both directions at once -------------------------------------------------------------------

namespace {

// Chunk c gets a partial sum from the members below and one from those above. The one from below
// is added to x[c], and then the one from above. Both come in the last round.
void two_rings_reduce(Moves& moves, const StepVector& sums) {
  const int32_t p = moves.members(), below = p / 2, above = p - 1 - below;
  for (int32_t round = 0; round < below; ++round) {
    moves.next_round();
    const bool is_first_below = round == 0, is_last = round + 1 == below;
    const int32_t down = round - (below - above);  // the round of the chain from above
    // The senders one by one: all members do the same in the same order.
    for (int32_t from = 0; from < p; ++from) {
      const Shard chunk = moves.shard(wrap(from + below - round, p));
      const StepPart input = kInput.part(chunk), sum = sums.part(chunk);
      moves.add(from, wrap(from + 1, p), is_first_below ? input : sum, sum, input);
    }
    for (int32_t from = 0; from < p && down >= 0; ++from) {
      const Shard chunk = moves.shard(wrap(from - above + down, p));
      const StepPart input = kInput.part(chunk), sum = sums.part(chunk);
      moves.add(from, wrap(from - 1, p), down == 0 ? input : sum, sum, is_last ? sum : input);
    }
  }
}

void two_rings_gather(Moves& moves) {
  const RingGroup ring = whole_ring(moves);
  const int32_t p = moves.members(), up = p / 2, down = p - 1 - up;
  for (int32_t round = 0; round < up; ++round) {
    moves.next_round();
    ring_gather_round(moves, ring, round, 1, kOutput);
    if (round < down) ring_gather_round(moves, ring, round, -1, kOutput);
  }
}

}  // namespace

void two_rings_moves(Moves& moves, const CollectiveSchedule&) {
  if (moves.collective().kind == CollectiveKind::all_gather) {
    gather_own(moves);
    return two_rings_gather(moves);
  }
  const StepVector sums = sums_of(moves);
  two_rings_reduce(moves, sums);
  if (moves.collective().kind == CollectiveKind::all_reduce) return two_rings_gather(moves);
  scatter_own(moves, sums);
}

// ---- Groups of neighbours ----------------------------------------------------------------------

// Members of a host are neighbours. A shard of member (host h, place i) is chunk h * m + i.
void hierarchical_moves(Moves& moves, const CollectiveSchedule& schedule) {
  const int32_t m = schedule.neighbours, hosts = moves.members() / m;
  std::vector<RingGroup> inside, across;
  for (int32_t h = 0; h < hosts; ++h) {
    RingGroup& group = inside.emplace_back();
    for (int32_t i = 0; i < m; ++i) {
      group.members.push_back(h * m + i);
      RingRanges& ranges = group.chunks.emplace_back();
      for (int32_t other = 0; other < hosts; ++other) ranges.push_back(moves.shard(other * m + i));
    }
  }
  for (int32_t i = 0; i < m; ++i) {
    RingGroup& group = across.emplace_back();
    for (int32_t h = 0; h < hosts; ++h) {
      group.members.push_back(h * m + i);
      group.chunks.push_back({moves.shard(h * m + i)});
    }
  }
  const CollectiveKind kind = moves.collective().kind;
  if (kind == CollectiveKind::broadcast) return broadcast_between(moves, inside, across);
  const StepVector sums = sums_of(moves);
  if (kind == CollectiveKind::all_gather) {
    gather_own(moves);
  } else {
    ring_reduce(moves, inside, kInput, sums);
    ring_reduce(moves, across, m > 1 ? sums : kInput, sums);
  }
  if (kind == CollectiveKind::reduce_scatter) return scatter_own(moves, sums);
  ring_gather(moves, across, kOutput);
  ring_gather(moves, inside, kOutput);
}

}  // namespace hone
