#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "target/system.h"
#include "target/topology.h"
#include "timeline/collective_price.h"
#include "timeline/step_jobs.h"
#include "transport/rounds.h"

// The time that collectives of many devices take on a System, in a closed form.
//
// A schedule is a number of rounds (transport/rounds.h), in which all groups send at once. A round
// takes a latency, and for each byte of a message what the busiest link needs for it. The messages
// of a round are counted once, for all sizes and numbers of rounds. If all devices begin each round
// together, it is the timeline's time.

namespace hone {

class CollectiveRates {
 public:
  // The messages of a round that are counted. Where each sends to each, a part stands for more.
  static constexpr int64_t kMostCounted = int64_t{1} << 14;

  // The system, which outlives this, has passed check().
  explicit CollectiveRates(const System& system, int64_t most_counted = kMostCounted);

  // The best schedule: by the timeline (best_schedule()), or where that has too many messages, by
  // the closed form. Then, of the schedules that take at most kHardlyMore times the least, it is
  // that of the fewest rounds: a timeline of the whole program has to follow them. Over the limit
  // if no schedule has few enough messages for a timeline of devices that are alike.
  Result<CollectivePrice> best(std::span<const Collective> groups, int64_t element_bytes);

  // The closed form of a schedule. The groups do the same, with equally many members. Over the
  // limit for what has no rounds.
  Result<double> seconds(std::span<const Collective> groups, const CollectiveSchedule& schedule,
                         int64_t element_bytes);

  static constexpr double kHardlyMore = 1.1;

 private:
  struct Price {
    CollectiveSchedule schedule;
    double seconds = 0;
    int64_t rounds = 0;
  };
  struct Rate {
    double latency = 0, per_byte = 0;
  };
  struct Route {
    std::vector<uint32_t> links;
    double latency = 0;
  };
  using Members = std::vector<int32_t>;  // of the groups, one behind the other
  using RateKey = std::tuple<size_t, RoundWay, int64_t>;

  Status check(std::span<const Collective> groups) const;
  // The groups have passed check().
  Result<Price> price(std::span<const Collective> groups, const CollectiveSchedule& schedule,
                      int64_t element_bytes);
  const Rate& rate(const Members& members, size_t group_size, const MessageRounds& rounds);
  Rate counted(const Members& members, size_t group_size, const MessageRounds& rounds);
  const Topology& topology();
  const Route& route(int32_t from, int32_t to);

  const System& system_;
  const int64_t most_counted_;
  std::optional<Topology> topology_;  // made when it is first asked for
  StepRates slowest_;                 // of all devices
  std::map<std::pair<int32_t, int32_t>, Route> routes_;
  std::map<std::pair<size_t, Members>, size_t> known_;  // groups, by their size
  std::map<RateKey, Rate> rates_;
};

}  // namespace hone
