#include "transport/rounds.h"

#include <bit>

namespace hone {
namespace {

Status check_has_rounds(const Collective& collective, const CollectiveSchedule& schedule) {
  using enum CollectiveAlgorithm;
  const size_t p = collective.devices.size();
  HONE_TRY(check(collective, schedule));
  if (collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::permute)
    return over_limit("{} of {} devices has no closed form", name(collective.kind), p);
  const bool has_partners = schedule.algorithm == halving || schedule.algorithm == doubling;
  if (has_partners && !std::has_single_bit(p))
    return over_limit("'{}' of {} devices has no closed form", to_string(schedule), p);
  if (schedule.pieces > 1) return over_limit("schedules in pieces have no closed form");
  if (schedule.algorithm == direct && collective.kind != CollectiveKind::all_to_all)
    return over_limit("'direct' has a closed form for all_to_all alone");
  return {};
}

}  // namespace

Result<std::vector<MessageRounds>> message_rounds(const Collective& collective,
                                                  const CollectiveSchedule& schedule) {
  HONE_TRY(check_has_rounds(collective, schedule));
  using enum CollectiveAlgorithm;
  using enum RoundWay;
  const bool adds = collective.kind == CollectiveKind::reduce_scatter ||
                    collective.kind == CollectiveKind::all_reduce;
  const bool stores = collective.kind == CollectiveKind::all_gather ||
                      collective.kind == CollectiveKind::all_reduce;
  const auto p = static_cast<int64_t>(collective.devices.size());
  const int64_t n = collective.elements, shard = shard_of(collective, 0).count;
  std::vector<MessageRounds> all;
  const auto add = [&](RoundWay way, int64_t step, int64_t count, int64_t elements, int64_t added) {
    if (count > 0) all.push_back({way, step, count, elements, added});
  };
  switch (schedule.algorithm) {
    case ring:
      if (adds) add(next, 1, p - 1, shard, shard);
      if (stores) add(next, 1, p - 1, shard, 0);
      break;
    case two_rings: {
      const int64_t up = p / 2, down = p - 1 - up;
      if (adds) add(next, 1, up - down, shard, shard);
      if (adds) add(both, 1, down, shard, 2 * shard);
      if (stores) add(both, 1, down, shard, 0);
      if (stores) add(next, 1, up - down, shard, 0);
      break;
    }
    case halving:
      for (int64_t step = p / 2; step > 0 && adds; step /= 2)
        add(partner, step, 1, shard * step, shard * step);
      for (int64_t step = 1; step < p && stores; step *= 2) add(partner, step, 1, shard * step, 0);
      break;
    case doubling:
      for (int64_t step = 1; step < p; step *= 2) add(partner, step, 1, n, n);
      break;
    case tree: {
      const auto half = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(p)) / 2);
      for (int64_t step = half; step > 0; step /= 2) add(up, step, 1, n, n);
      for (int64_t step = 1; step < p; step *= 2) add(down, step, 1, n, 0);
      break;
    }
    case hierarchical: {
      const int64_t m = schedule.neighbours, hosts = p / m;
      if (adds) add(inside, m, m - 1, shard * hosts, shard * hosts);
      if (adds) add(across, m, hosts - 1, shard, shard);
      if (stores) add(across, m, hosts - 1, shard, 0);
      if (stores) add(inside, m, m - 1, shard * hosts, 0);
      break;
    }
    case direct: add(each, 1, 1, shard, 0); break;
  }
  return all;
}

std::vector<int64_t> peers_of(const MessageRounds& rounds, int64_t member, int64_t members) {
  const int64_t i = member, p = members, step = rounds.step;
  std::vector<int64_t> peers;
  switch (rounds.way) {
    case RoundWay::next: peers = {(i + 1) % p}; break;
    case RoundWay::both: peers = {(i + 1) % p, (i + p - 1) % p}; break;
    case RoundWay::partner: peers = {i ^ step}; break;
    case RoundWay::up:
      if (i >= step && i < 2 * step) peers = {i - step};
      break;
    case RoundWay::down:
      if (i < step && i + step < p) peers = {i + step};
      break;
    case RoundWay::inside: peers = {i / step * step + (i + 1) % step}; break;
    case RoundWay::across: peers = {(i + step) % p}; break;
    case RoundWay::each:
      for (int64_t k = 1; k < p; ++k) peers.push_back((i + k) % p);
      break;
  }
  return peers;
}

}  // namespace hone
