#include <bit>
#include <vector>

#include "transport/moves_ring.h"

// Algorithms whose partners are a power of two apart, and those that send to each one directly.

namespace hone {
namespace {

// For any number of members, a power of two of them work. The first 2 * extra members fold: an even
// one gives all to the next one, which works for both, and gets the result at the end. The workers
// keep their order, so their shards are still in order.
struct Folded {
  int32_t workers;
  int32_t extra;

  explicit Folded(int32_t members)
      : workers(static_cast<int32_t>(std::bit_floor(static_cast<uint32_t>(members)))),
        extra(members - workers) {}

  int32_t member(int32_t worker) const { return worker < extra ? 2 * worker + 1 : worker + extra; }
  int32_t first_shard(int32_t worker) const {  // that it works for
    return worker < extra ? 2 * worker : worker + extra;
  }
};

Shard shards_between(const Moves& moves, const Folded& folded, int32_t first, int32_t behind) {
  return moves.shards(folded.first_shard(first), folded.first_shard(behind));
}

void fold(Moves& moves, const Folded& folded, const StepVector& sums) {
  moves.next_round();
  for (int32_t i = 0; i < folded.extra; ++i)
    moves.add(2 * i, 2 * i + 1, kInput.part(moves.whole()), sums.part(moves.whole()),
              kInput.part(moves.whole()));
}

void unfold(Moves& moves, const Folded& folded) {
  moves.next_round();
  for (int32_t i = 0; i < folded.extra; ++i)
    moves.store(2 * i + 1, 2 * i, kOutput.part(moves.whole()), kOutput.part(moves.whole()));
}

// Workers who folded have their values in the sums, the others in the input until they add.
const StepVector& value_of(const Folded& folded, int32_t worker, bool has_added,
                           const StepVector& sums) {
  return has_added || worker < folded.extra ? sums : kInput;
}

// The worker w ends with the sums of its shards.
void halve(Moves& moves, const Folded& folded, const StepVector& sums) {
  for (int32_t bit = folded.workers / 2; bit > 0; bit /= 2) {
    moves.next_round();
    for (int32_t w = 0; w < folded.workers; ++w) {
      const int32_t partner = w ^ bit, first = partner & ~(bit - 1);
      const Shard theirs = shards_between(moves, folded, first, first + bit);
      const bool has_added = bit < folded.workers / 2;
      moves.add(folded.member(w), folded.member(partner),
                value_of(folded, w, has_added, sums).part(theirs), sums.part(theirs),
                value_of(folded, partner, has_added, sums).part(theirs));
    }
  }
}

void gather_doubling(Moves& moves, const Folded& folded) {
  for (int32_t bit = 1; bit < folded.workers; bit *= 2) {
    moves.next_round();
    for (int32_t w = 0; w < folded.workers; ++w) {
      const int32_t first = w & ~(bit - 1);
      const StepPart own = kOutput.part(shards_between(moves, folded, first, first + bit));
      moves.store(folded.member(w), folded.member(w ^ bit), own, own);
    }
  }
}

}  // namespace

void halving_moves(Moves& moves, const CollectiveSchedule&) {
  const Folded folded(moves.members());
  const CollectiveKind kind = moves.collective().kind;
  if (kind == CollectiveKind::all_gather) {
    gather_own(moves);
    moves.next_round();
    for (int32_t i = 0; i < folded.extra; ++i)
      moves.store(2 * i, 2 * i + 1, kOutput.part(moves.shard(2 * i)),
                  kOutput.part(moves.shard(2 * i)));
    gather_doubling(moves, folded);
    return unfold(moves, folded);
  }
  const StepVector sums = sums_of(moves);
  fold(moves, folded, sums);
  halve(moves, folded, sums);
  if (kind == CollectiveKind::all_reduce) {
    gather_doubling(moves, folded);
    return unfold(moves, folded);
  }
  moves.next_round();
  for (int32_t i = 0; i < folded.extra; ++i)
    moves.store(2 * i + 1, 2 * i, sums.part(moves.shard(2 * i)), sums.part(moves.shard(2 * i)));
  scatter_own(moves, sums);
}

void doubling_moves(Moves& moves, const CollectiveSchedule&) {
  const Folded folded(moves.members());
  fold(moves, folded, kOutput);
  for (int32_t bit = 1; bit < folded.workers; bit *= 2) {
    moves.next_round();
    for (int32_t w = 0; w < folded.workers; ++w) {
      const auto value = [&](int32_t worker) {
        return value_of(folded, worker, bit > 1, kOutput).part(moves.whole());
      };
      moves.add(folded.member(w), folded.member(w ^ bit), value(w), kOutput.part(moves.whole()),
                value(w ^ bit));
    }
  }
  unfold(moves, folded);
}

namespace {

// From the first member of the list to all of it.
void tree_down(Moves& moves, const std::vector<std::vector<int32_t>>& groups) {
  const auto members = static_cast<int32_t>(groups.front().size());
  for (int32_t step = 1; step < members; step *= 2) {
    moves.next_round();
    for (const std::vector<int32_t>& group : groups)
      for (int32_t v = 0; v < step && v + step < members; ++v)
        moves.store(group[static_cast<size_t>(v)], group[static_cast<size_t>(v + step)],
                    kOutput.part(moves.whole()), kOutput.part(moves.whole()));
  }
}

// To the first member: lower + higher.
void tree_up(Moves& moves) {
  const int32_t p = moves.members();
  std::vector<bool> has_added(static_cast<size_t>(p), false);
  const auto value = [&](int32_t member) {
    return (has_added[static_cast<size_t>(member)] ? kOutput : kInput).part(moves.whole());
  };
  for (auto step = static_cast<int32_t>(std::bit_ceil(static_cast<uint32_t>(p)) / 2); step > 0;
       step /= 2) {
    moves.next_round();
    for (int32_t v = 0; v < step && v + step < p; ++v)
      moves.add(v + step, v, value(v + step), kOutput.part(moves.whole()), value(v));
    for (int32_t v = 0; v < step && v + step < p; ++v) has_added[static_cast<size_t>(v)] = true;
  }
}

// The list, with the root first.
std::vector<int32_t> from_root(const std::vector<int32_t>& members, int32_t root) {
  std::vector<int32_t> turned = members;
  size_t at = 0;
  while (members[at] != root) ++at;
  for (size_t i = 0; i < members.size(); ++i) turned[i] = members[(i + at) % members.size()];
  return turned;
}

void root_keeps(Moves& moves) {
  moves.next_round();
  moves.copy(moves.collective().root, kInput.part(moves.whole()), kOutput.part(moves.whole()));
}

}  // namespace

void tree_moves(Moves& moves, const CollectiveSchedule&) {
  const std::vector<int32_t> members = whole_ring(moves).members;
  if (moves.collective().kind == CollectiveKind::all_reduce) {
    tree_up(moves);
    return tree_down(moves, {members});
  }
  root_keeps(moves);
  tree_down(moves, {from_root(members, moves.collective().root)});
}

void broadcast_between(Moves& moves, std::span<const RingGroup> inside,
                       std::span<const RingGroup> across) {
  const int32_t root = moves.collective().root;
  const auto place = static_cast<size_t>(root % inside.front().size());
  root_keeps(moves);
  const std::vector<int32_t> leaders = from_root(across[place].members, root);
  tree_down(moves, {leaders});
  std::vector<std::vector<int32_t>> groups;
  for (const RingGroup& group : inside)
    groups.push_back(from_root(group.members, group.members[place]));
  tree_down(moves, groups);
}

// ---- Directly ----------------------------------------------------------------------------------

namespace {

// Each member adds what the others have of its shard to its own, the one before it first.
void direct_reduce(Moves& moves, const StepVector& sums) {
  const int32_t p = moves.members();
  for (int32_t i = 1; i < p; ++i) {
    moves.next_round();
    for (int32_t r = 0; r < p; ++r) {
      const int32_t to = (r + i) % p;
      const Shard shard = moves.shard(to);
      moves.add(r, to, kInput.part(shard), sums.part(shard), (i == 1 ? kInput : sums).part(shard));
    }
  }
}

void direct_gather(Moves& moves) {
  const int32_t p = moves.members();
  moves.next_round();
  for (int32_t i = 1; i < p; ++i)
    for (int32_t r = 0; r < p; ++r)
      moves.store(r, (r + i) % p, kOutput.part(moves.shard(r)), kOutput.part(moves.shard(r)));
}

void direct_all_to_all(Moves& moves) {
  const int32_t p = moves.members();
  moves.next_round();
  for (int32_t i = 0; i < p; ++i) {
    for (int32_t r = 0; r < p; ++r) {
      const int32_t to = (r + i) % p;
      const Shard shard = moves.shard(to);
      moves.store(r, to, kInput.part(shard), {StepRoom::output, r * shard.count, shard.count});
    }
  }
}

void direct_permute(Moves& moves) {
  moves.next_round();
  for (const auto& [from, to] : moves.collective().pairs)
    moves.store(from, to, kInput.part(moves.whole()), kOutput.part(moves.whole()));
}

}  // namespace

void direct_moves(Moves& moves, const CollectiveSchedule&) {
  switch (moves.collective().kind) {
    case CollectiveKind::all_to_all: return direct_all_to_all(moves);
    case CollectiveKind::permute: return direct_permute(moves);
    case CollectiveKind::all_gather: gather_own(moves); return direct_gather(moves);
    default: break;
  }
  const StepVector sums = sums_of(moves);
  direct_reduce(moves, sums);
  if (moves.collective().kind == CollectiveKind::all_reduce) return direct_gather(moves);
  scatter_own(moves, sums);
}

}  // namespace hone
