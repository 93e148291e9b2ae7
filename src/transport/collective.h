#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "transport/steps.h"

// Collectives as plain data: what a group of devices computes together, and the schedule of
// messages that computes it. The schedule fixes the order of additions, so the result has the same
// bits on each transport and at each timing. Another schedule may give other bits; the number of
// pieces changes none.

namespace hone {

enum class CollectiveKind : uint8_t {
#define HONE_COLLECTIVE(name, doc) name,
#include "transport/collective.def"
};
#define HONE_COLLECTIVE(name, doc) +1
inline constexpr int kCollectiveKinds = 0
#include "transport/collective.def"
    ;

// The whole is cut into shards, one for each member: shard i begins at i * ceil(n / members), and
// the last ones may be shorter or empty.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::vector<int32_t> devices;  // the members, in order; member i is devices[i]
  int64_t elements = 0;          // n, of the whole
  int32_t root = 0;              // broadcast: the member that has the input
  // permute: the members that send and receive. Each sends at most once, and receives at most once;
  // who receives nothing gets zeros.
  std::vector<std::pair<int32_t, int32_t>> pairs = {};
};

struct Shard {
  int64_t begin = 0;
  int64_t count = 0;
};
Shard shard_of(const Collective& collective, int64_t member);
// The elements that a member has and gets. all_to_all gives a shard of this member's size from each
// member, one behind the other.
int64_t input_elements(const Collective& collective, int64_t member);
int64_t output_elements(const Collective& collective, int64_t member);

enum class CollectiveAlgorithm : uint8_t {
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) name,
#include "transport/collective.def"
};
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) +1
inline constexpr int kCollectiveAlgorithms = 0
#include "transport/collective.def"
    ;

struct CollectiveSchedule {
  static constexpr int32_t kMaxPieces = 1024;

  CollectiveAlgorithm algorithm = CollectiveAlgorithm::ring;
  int32_t neighbours = 0;  // hierarchical: how many members one group of neighbours has
  int32_t pieces = 1;      // that each message is cut into, so that they overlap

  bool operator==(const CollectiveSchedule&) const = default;
};

std::string_view name(CollectiveKind kind);
std::string_view name(CollectiveAlgorithm algorithm);
std::optional<CollectiveKind> collective_kind_from_name(std::string_view text);
bool fits(CollectiveAlgorithm algorithm, CollectiveKind kind);

// "ring", "two_rings, 4 pieces", "hierarchical of 4, 2 pieces". One piece is not said.
std::string to_string(const CollectiveSchedule& schedule);
Result<CollectiveSchedule> parse_collective_schedule(std::string_view text);

Status check(const Collective& collective);
Status check(const Collective& collective, const CollectiveSchedule& schedule);
// All schedules with one piece that the collective may have.
std::vector<CollectiveSchedule> schedules_of(const Collective& collective);

// The program of each member, in order. The tag is that of all messages. An error says why the
// schedule does not fit the collective.
Result<std::vector<DeviceProgram>> step_programs(const Collective& collective,
                                                 const CollectiveSchedule& schedule,
                                                 uint32_t tag = 0);

}  // namespace hone
