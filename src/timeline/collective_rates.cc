#include "timeline/collective_rates.h"

#include <algorithm>
#include <numeric>

#include "timeline/shared_jobs.h"

namespace hone {
namespace {

// Some of the others. Members in turn send far apart, and each receives as often as it sends: near
// and far ones, and all links of a kind, are taken about in their proportions.
std::vector<int64_t> some_peers(int64_t member, int64_t members, int64_t count) {
  constexpr double kGoldenRatio = 0.6180339887;
  auto factor =
      std::max<int64_t>(2, static_cast<int64_t>(kGoldenRatio * static_cast<double>(members)));
  while (std::gcd(factor, members) != 1) ++factor;
  std::vector<int64_t> peers;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t shift = (2 * k + 1) * members / (2 * count);
    const int64_t peer = (factor * member + shift) % members;
    if (peer != member) peers.push_back(peer);
  }
  return peers;
}

}  // namespace

CollectiveRates::CollectiveRates(const System& system, int64_t most_counted)
    : system_(system), most_counted_(most_counted) {
  for (const Target& target : system.targets) {
    const StepRates rates = step_rates(target);
    slowest_.copy = std::max(slowest_.copy, rates.copy);
    slowest_.add = std::max(slowest_.add, rates.add);
  }
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

CollectiveRates::Rate CollectiveRates::counted(const Members& members, size_t group_size,
                                               const MessageRounds& rounds) {
  const auto p = static_cast<int64_t>(group_size);
  // If each sends to each, a part of the messages stands for all.
  const bool is_sampled =
      rounds.way == RoundWay::each && (p - 1) * std::ssize(members) > most_counted_;
  const int64_t sample = std::max<int64_t>(1, most_counted_ / std::ssize(members));
  const double scale = is_sampled ? static_cast<double>(p - 1) / static_cast<double>(sample) : 1;
  std::vector<double> messages(topology().links().size());
  Rate rate;
  for (size_t group = 0; group < members.size(); group += group_size) {
    double longest = 0, sum = 0, count = 0;  // of latencies
    for (int64_t i = 0; i < p; ++i)
      for (const int64_t peer : is_sampled ? some_peers(i, p, sample) : peers_of(rounds, i, p)) {
        const Route& way = route(members[group + static_cast<size_t>(i)],
                                 members[group + static_cast<size_t>(peer)]);
        longest = std::max(longest, way.latency);
        sum += way.latency;
        count += 1;
        for (const uint32_t link : way.links) messages[link] += scale;
      }
    // A part goes around the ring, over short ways and long ones, and neighbours wait for it.
    const bool goes_around = rounds.way != RoundWay::partner && rounds.way != RoundWay::each;
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
                                                   const MessageRounds& rounds) {
  const size_t number = known_.try_emplace({group_size, members}, known_.size()).first->second;
  const RateKey key = {number, rounds.way, rounds.step};
  const auto found = rates_.find(key);
  if (found != rates_.end()) return found->second;
  return rates_[key] = counted(members, group_size, rounds);
}

// ---- Prices -------------------------------------------------------------------------------------

Status CollectiveRates::check(std::span<const Collective> groups) const {
  if (groups.empty()) return bad_input("there is no group that a price could be for");
  const Collective& first = groups.front();
  for (const Collective& group : groups) {
    HONE_TRY(hone::check(group));
    if (group.kind != first.kind || group.elements != first.elements ||
        group.devices.size() != first.devices.size())
      return bad_input("{} of {} elements by {} devices, and {} of {} by {}: groups do the same",
                       name(first.kind), first.elements, first.devices.size(), name(group.kind),
                       group.elements, group.devices.size());
    for (const int32_t device : group.devices)
      if (device >= system_.device_count())
        return bad_input("a group names device {}, and the system has {}", device,
                         system_.device_count());
  }
  return {};
}

Result<CollectiveRates::Price> CollectiveRates::price(std::span<const Collective> groups,
                                                      const CollectiveSchedule& schedule,
                                                      int64_t element_bytes) {
  const Collective& first = groups.front();
  Members members;
  for (const Collective& group : groups)
    members.insert(members.end(), group.devices.begin(), group.devices.end());
  const auto bytes = static_cast<double>(element_bytes);
  Price made = {.schedule = schedule};
  for (const MessageRounds& rounds : HONE_TRY(message_rounds(first, schedule))) {
    const Rate& one = rate(members, first.devices.size(), rounds);
    const double sent = one.latency + one.per_byte * bytes * static_cast<double>(rounds.elements);
    const double added = slowest_.add * bytes * static_cast<double>(rounds.added);
    made.seconds += static_cast<double>(rounds.count) * (sent + added);
    made.rounds += rounds.count;
  }
  // The own shard is copied before or behind the rounds, or while others are on their way.
  const double copied = slowest_.copy * bytes * static_cast<double>(shard_of(first, 0).count);
  if (first.kind == CollectiveKind::all_to_all)
    made.seconds = std::max(made.seconds, copied);
  else if (first.kind != CollectiveKind::all_reduce)
    made.seconds += copied;
  return made;
}

Result<double> CollectiveRates::seconds(std::span<const Collective> groups,
                                        const CollectiveSchedule& schedule, int64_t element_bytes) {
  HONE_TRY(check(groups));
  return HONE_TRY(price(groups, schedule, element_bytes)).seconds;
}

Result<CollectivePrice> CollectiveRates::best(std::span<const Collective> groups,
                                              int64_t element_bytes) {
  Result<CollectivePrice> exact = best_schedule(groups, element_bytes, system_);
  if (exact.ok() || exact.error().code() != ErrorCode::limit) return exact;
  HONE_TRY(check(groups));
  const Collective asked = grouped(groups).collective;
  std::vector<Price> prices;
  for (const CollectiveSchedule& schedule : schedules_of(groups.front())) {
    if (!check_size(asked, schedule, system_.device_count()).ok()) continue;
    Result<Price> made = price(groups, schedule, element_bytes);
    if (made.ok())
      prices.push_back(*made);
    else if (made.error().code() != ErrorCode::limit)
      return std::move(made).error();
  }
  if (prices.empty()) return exact;
  const double most = kHardlyMore * std::ranges::min(prices, {}, &Price::seconds).seconds;
  std::erase_if(prices, [&](const Price& one) { return one.seconds > most; });
  const Price& best = std::ranges::min(
      prices, {}, [](const Price& one) { return std::pair(one.rounds, one.seconds); });
  return CollectivePrice{best.schedule, best.seconds};
}

}  // namespace hone
