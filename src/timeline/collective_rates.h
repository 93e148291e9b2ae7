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
#include "transport/collective.h"

// The time that collectives of many devices take on a System, in a closed form.
//
// A schedule is a number of rounds. In a round all members of all groups send equally many bytes,
// each to one other. A round takes a latency, and for each byte what the busiest link needs for it.
// The messages of a round are counted once, for all sizes and numbers of rounds. If all devices
// begin each round together, it is the timeline's time.

namespace hone {

class CollectiveRates {
 public:
  // The system, which outlives this, has passed check().
  explicit CollectiveRates(const System& system);

  // The best schedule: by the timeline (best_schedule()), or where that has too many messages, by
  // the closed form. Then schedules of few rounds are preferred, since others simulate them. Over
  // the limit if no schedule has few enough messages for a timeline of devices that are alike.
  Result<CollectivePrice> best(std::span<const Collective> groups, int64_t element_bytes);

  // The closed form of a schedule in one piece. All groups have equally many members. It knows all
  // reductions, gathers and exchanges; halving and doubling for powers of two.
  Result<double> seconds(std::span<const Collective> groups, const CollectiveSchedule& schedule,
                         int64_t element_bytes);

  static constexpr int64_t kFewRounds = 200;

 private:
  // To whom members send in a round.
  enum class Way : uint8_t { next, both, partner, up, down, inside, across, each };
  struct Rounds {
    Way way = Way::next;
    int64_t step = 1;  // between partners; the neighbours of a group
    int64_t count = 1;
    int64_t elements = 0;  // of a message
    int64_t added = 0;     // elements that a member adds in a round
  };
  struct Rate {
    double latency = 0, per_byte = 0;
  };
  struct Route {
    std::vector<uint32_t> links;
    double latency = 0;
  };
  using Members = std::vector<int32_t>;  // of the groups, one behind the other
  using RateKey = std::tuple<size_t, Way, int64_t>;

  static std::vector<Rounds> rounds_of(const Collective& collective,
                                       const CollectiveSchedule& schedule);
  // The members that one sends to; with Way::each `offsets` of them.
  static std::vector<int64_t> peers_of(const Rounds& rounds, int64_t member, int64_t members,
                                       int64_t offsets);
  const Rate& rate(const Members& members, size_t group_size, const Rounds& rounds);
  Rate counted(const Members& members, size_t group_size, const Rounds& rounds);
  const Topology& topology();
  const Route& route(int32_t from, int32_t to);

  const System& system_;
  std::optional<Topology> topology_;  // made when it is first asked for
  StepRates slowest_;                 // of all devices
  std::map<std::pair<int32_t, int32_t>, Route> routes_;
  std::map<std::pair<size_t, Members>, size_t> known_;  // groups, by their size
  std::map<RateKey, Rate> rates_;
};

}  // namespace hone
