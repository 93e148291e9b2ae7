#include "timeline/collective_rates.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "timeline/alike.h"
#include "timeline/shared_jobs.h"
#include "transport/turned.h"

namespace hone {
namespace {

constexpr int64_t kMostCounted = int64_t{1} << 14;  // messages of a round

bool gathers(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::all_reduce;
}
bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_reduce;
}

// A timeline of devices that are alike can have it (shared_jobs.h, alike.h).
bool can_be_timed(const Collective& collective, const CollectiveSchedule& schedule,
                  int64_t devices) {
  Collective even = collective;
  const auto members = std::ssize(collective.devices);
  even.elements = (even.elements + members - 1) / members * members;
  const int64_t most = turns(even, schedule) ? kMostTurnedMessages : kMostSharedMessages;
  const int64_t patterns = schedule.algorithm == CollectiveAlgorithm::direct ? members - 1 : 1;
  return most_messages(even, schedule) <= most &&
         devices * patterns <= static_cast<int64_t>(kMostSends);
}

}  // namespace

CollectiveRates::CollectiveRates(const System& system) : system_(system) {
  for (const Target& target : system.targets) {
    const StepRates rates = step_rates(target);
    slowest_.copy = std::max(slowest_.copy, rates.copy);
    slowest_.add = std::max(slowest_.add, rates.add);
  }
}

// ---- Rounds of a schedule -----------------------------------------------------------------------

std::vector<CollectiveRates::Rounds> CollectiveRates::rounds_of(
    const Collective& collective, const CollectiveSchedule& schedule) {
  using enum CollectiveAlgorithm;
  const auto p = static_cast<int64_t>(collective.devices.size());
  const int64_t n = collective.elements, shard = shard_of(collective, 0).count;
  const bool adds = reduces(collective.kind), stores = gathers(collective.kind);
  std::vector<Rounds> all;
  const auto add = [&](Way way, int64_t step, int64_t count, int64_t elements, int64_t added) {
    if (count > 0) all.push_back({way, step, count, elements, added});
  };
  switch (schedule.algorithm) {
    case ring:
      if (adds) add(Way::next, 1, p - 1, shard, shard);
      if (stores) add(Way::next, 1, p - 1, shard, 0);
      break;
    case two_rings:
      if (adds) add(Way::both, 1, p / 2, shard, 2 * shard);
      if (stores) add(Way::both, 1, p / 2, shard, 0);
      break;
    case halving:
      for (int64_t step = p / 2; step > 0 && adds; step /= 2)
        add(Way::partner, step, 1, shard * step, shard * step);
      for (int64_t step = 1; step < p && stores; step *= 2)
        add(Way::partner, step, 1, shard * step, 0);
      break;
    case doubling:
      for (int64_t step = 1; step < p; step *= 2) add(Way::partner, step, 1, n, n);
      break;
    case tree:
      for (auto step = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(p)) / 2); step > 0;
           step /= 2)
        add(Way::up, step, 1, n, n);
      for (int64_t step = 1; step < p; step *= 2) add(Way::down, step, 1, n, 0);
      break;
    case hierarchical: {
      const int64_t m = schedule.neighbours, hosts = p / m;
      if (adds) {
        add(Way::inside, m, m - 1, shard * hosts, shard * hosts);
        add(Way::across, m, hosts - 1, shard, shard);
      }
      if (stores) {
        add(Way::across, m, hosts - 1, shard, 0);
        add(Way::inside, m, m - 1, shard * hosts, 0);
      }
      break;
    }
    case direct: add(Way::each, 1, 1, shard, 0); break;
  }
  return all;
}

// ---- The busiest link of a round ----------------------------------------------------------------

const Topology& CollectiveRates::topology() {
  if (!topology_) topology_.emplace(system_);
  return *topology_;
}

const CollectiveRates::Route& CollectiveRates::route(int32_t from, int32_t to) {
  const auto [at, is_new] = routes_.try_emplace({from, to});
  if (is_new) {
    at->second.links = topology().route(from, to);
    at->second.latency = topology().latency(at->second.links);
  }
  return at->second;
}

std::vector<int64_t> CollectiveRates::peers_of(const Rounds& rounds, int64_t member,
                                               int64_t members, int64_t offsets) {
  const int64_t i = member, p = members, step = rounds.step;
  switch (rounds.way) {
    case Way::next: return {(i + 1) % p};
    case Way::both: return {(i + 1) % p, (i + p - 1) % p};
    case Way::partner: return {i ^ step};
    case Way::up: return i >= step && i < 2 * step ? std::vector{i - step} : std::vector<int64_t>();
    case Way::down:
      return i < step && i + step < p ? std::vector{i + step} : std::vector<int64_t>();
    case Way::inside: return {i / step * step + (i + 1) % step};
    case Way::across: return {(i + step) % p};
    case Way::each: break;
  }
  std::vector<int64_t> peers;
  for (int64_t k = 0; k < offsets; ++k) peers.push_back((i + 1 + k * (p - 1) / offsets) % p);
  return peers;
}

CollectiveRates::Rate CollectiveRates::counted(const Members& members, size_t group_size,
                                               const Rounds& rounds) {
  const auto p = static_cast<int64_t>(group_size);
  // If each sends to each, a part of the messages stands for all.
  const int64_t offsets = std::min(p - 1, std::max<int64_t>(1, kMostCounted / std::ssize(members)));
  const double scale =
      rounds.way == Way::each ? static_cast<double>(p - 1) / static_cast<double>(offsets) : 1;
  std::vector<double> messages(topology().links().size());
  Rate rate;
  for (size_t group = 0; group < members.size(); group += group_size) {
    double longest = 0, sum = 0, count = 0;  // of latencies
    for (int64_t i = 0; i < p; ++i)
      for (const int64_t peer : peers_of(rounds, i, p, offsets)) {
        const Route& way = route(members[group + static_cast<size_t>(i)],
                                 members[group + static_cast<size_t>(peer)]);
        longest = std::max(longest, way.latency);
        sum += way.latency;
        count += 1;
        for (const uint32_t link : way.links) messages[link] += scale;
      }
    // A part goes around the ring, over short ways and long ones, and neighbours wait for it.
    const bool goes_around = rounds.way != Way::partner && rounds.way != Way::each;
    if (goes_around && rounds.count > 1) longest = (longest + sum / count) / 2;
    rate.latency = std::max(rate.latency, longest);
  }
  for (size_t link = 0; link < messages.size(); ++link)
    if (messages[link] > 0) {
      const Link& one = topology().links()[link];
      rate.per_byte =
          std::max(rate.per_byte, (one.shared ? messages[link] : 1) / one.bytes_per_second);
    }
  return rate;
}

const CollectiveRates::Rate& CollectiveRates::rate(const Members& members, size_t group_size,
                                                   const Rounds& rounds) {
  const size_t number = known_.try_emplace({group_size, members}, known_.size()).first->second;
  const RateKey key = {number, rounds.way, rounds.step};
  const auto found = rates_.find(key);
  if (found != rates_.end()) return found->second;
  return rates_[key] = counted(members, group_size, rounds);
}

// ---- Prices -------------------------------------------------------------------------------------

Result<double> CollectiveRates::seconds(std::span<const Collective> groups,
                                        const CollectiveSchedule& schedule, int64_t element_bytes) {
  const Collective& first = groups.front();
  const auto p = static_cast<int64_t>(first.devices.size());
  HONE_TRY(check(first, schedule));
  using enum CollectiveAlgorithm;
  for (const Collective& group : groups)
    if (group.devices.size() != first.devices.size())
      return over_limit("groups of {} and of {} devices have no closed form", p,
                        group.devices.size());
  if (first.kind == CollectiveKind::broadcast || first.kind == CollectiveKind::permute)
    return over_limit("{} of {} devices has no closed form", name(first.kind), p);
  const bool has_partners = schedule.algorithm == halving || schedule.algorithm == doubling;
  if (has_partners && !std::has_single_bit(static_cast<uint64_t>(p)))
    return over_limit("'{}' of {} devices has no closed form", to_string(schedule), p);
  if (schedule.pieces > 1) return over_limit("schedules in pieces have no closed form");
  if (schedule.algorithm == direct && first.kind != CollectiveKind::all_to_all)
    return over_limit("'direct' has a closed form for all_to_all alone");
  Members members;
  for (const Collective& group : groups)
    members.insert(members.end(), group.devices.begin(), group.devices.end());
  for (const int32_t device : members)
    if (device < 0 || device >= system_.device_count())
      return bad_input("a group names device {}, and the system has {}", device,
                       system_.device_count());
  const auto bytes = static_cast<double>(element_bytes);
  const double copied = slowest_.copy * bytes * static_cast<double>(shard_of(first, 0).count);
  double seconds = 0;
  for (const Rounds& rounds : rounds_of(first, schedule)) {
    const Rate& one = rate(members, first.devices.size(), rounds);
    const double sent = one.latency + one.per_byte * bytes * static_cast<double>(rounds.elements);
    const double added = slowest_.add * bytes * static_cast<double>(rounds.added);
    seconds += static_cast<double>(rounds.count) * (sent + added);
  }
  // The own shard is copied before or behind the rounds, or while others are on their way.
  if (first.kind == CollectiveKind::all_reduce) return seconds;
  return first.kind == CollectiveKind::all_to_all ? std::max(seconds, copied) : seconds + copied;
}

Result<CollectivePrice> CollectiveRates::best(std::span<const Collective> groups,
                                              int64_t element_bytes) {
  Result<CollectivePrice> exact = best_schedule(groups, element_bytes, system_);
  if (exact.ok() || exact.error().code() != ErrorCode::limit) return exact;
  std::optional<CollectivePrice> best;
  bool has_few = false;
  for (const CollectiveSchedule& schedule : schedules_of(groups.front())) {
    if (!can_be_timed(groups.front(), schedule, system_.device_count())) continue;
    const Result<double> taken = seconds(groups, schedule, element_bytes);
    if (!taken.ok() && taken.error().code() != ErrorCode::limit) return Error(taken.error());
    if (!taken.ok()) continue;
    int64_t rounds = 0;
    for (const Rounds& one : rounds_of(groups.front(), schedule)) rounds += one.count;
    const bool is_few = rounds <= kFewRounds;
    if (best && (is_few < has_few || (is_few == has_few && *taken >= best->seconds))) continue;
    best = CollectivePrice{schedule, *taken};
    has_few = is_few;
  }
  if (!best) return exact;
  return *best;
}

}  // namespace hone
