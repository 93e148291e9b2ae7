#include "transport/collective.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <set>

#include "base/checked_math.h"
#include "base/checked_text.h"
#include "base/text.h"
#include "transport/moves.h"
#include "transport/transport.h"
#include "transport/turned.h"

namespace hone {
namespace {

constexpr std::string_view kKinds[] = {
#define HONE_COLLECTIVE(name, doc) #name,
#include "transport/collective.def"
};
constexpr std::string_view kAlgorithms[] = {
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) #name,
#include "transport/collective.def"
};

// A bit for each collective that the algorithm makes.
constexpr uint32_t mask(std::initializer_list<CollectiveKind> kinds) {
  uint32_t mask = 0;
  for (const CollectiveKind kind : kinds) mask |= uint32_t{1} << static_cast<int>(kind);
  return mask;
}
constexpr uint32_t fitting(CollectiveAlgorithm algorithm) {
  using enum CollectiveKind;
  constexpr uint32_t kMasks[] = {
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) mask({__VA_ARGS__}),
#include "transport/collective.def"
  };
  return kMasks[static_cast<int>(algorithm)];
}

using Build = void (*)(Moves& moves, const CollectiveSchedule& schedule);
constexpr Build kBuilds[] = {
#define HONE_COLLECTIVE_ALGORITHM(name, doc, ...) name##_moves,
#include "transport/collective.def"
};

constexpr std::string_view kNeighbours = "hierarchical of ";

}  // namespace

std::string_view name(CollectiveKind kind) { return kKinds[static_cast<int>(kind)]; }
std::string_view name(CollectiveAlgorithm algorithm) {
  return kAlgorithms[static_cast<int>(algorithm)];
}

std::optional<CollectiveKind> collective_kind_from_name(std::string_view text) {
  const auto* found = std::ranges::find(kKinds, text);
  if (found == std::end(kKinds)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kKinds));
}

bool fits(CollectiveAlgorithm algorithm, CollectiveKind kind) {
  return (fitting(algorithm) >> static_cast<int>(kind) & 1) != 0;
}

// ---- Text --------------------------------------------------------------------------------------

std::string to_string(const CollectiveSchedule& schedule) {
  std::string text(name(schedule.algorithm));
  if (schedule.algorithm == CollectiveAlgorithm::hierarchical)
    text += fmt::format(" of {}", schedule.neighbours);
  if (schedule.pieces != 1) text += fmt::format(", {} pieces", schedule.pieces);
  return text;
}

namespace {

Result<int32_t> parse_count(std::string_view shown, std::string_view text, int32_t most) {
  const Result<int64_t> count = parse_int_in(shown, text, 1, most);
  if (!count.ok()) return Error(count.error()).as(ErrorCode::bad_input);
  return static_cast<int32_t>(*count);
}

}  // namespace

Result<CollectiveSchedule> parse_collective_schedule(std::string_view text) {
  CollectiveSchedule schedule;
  const std::vector<std::string_view> parts = split(text, ',');
  std::string_view word = trim(parts.front());
  if (consume_prefix(word, kNeighbours)) {
    schedule.neighbours =
        HONE_TRY(parse_count("the group of a hierarchical schedule", word, Transport::kMaxDevices));
    word = "hierarchical";
  } else if (word == "hierarchical") {
    return bad_input("a hierarchical schedule says how many neighbours it has")
        .with_hint("hierarchical of 4");
  }
  const auto* found = std::ranges::find(kAlgorithms, word);
  if (found == std::end(kAlgorithms))
    return bad_input("'{}' is no schedule of a collective", excerpt(word))
        .with_hint(did_you_mean(word, kAlgorithms));
  schedule.algorithm = static_cast<CollectiveAlgorithm>(found - std::begin(kAlgorithms));
  if (parts.size() == 1) return schedule;
  const std::vector<std::string_view> words = split_words(parts[1]);
  if (parts.size() > 2 || words.size() != 2 || words[1] != "pieces")
    return bad_input("'{}' is no number of pieces", excerpt(text)).with_hint("ring, 4 pieces");
  schedule.pieces = HONE_TRY(parse_count("pieces", words[0], CollectiveSchedule::kMaxPieces));
  return schedule;
}

// ---- Sizes -------------------------------------------------------------------------------------

Shard shard_of(const Collective& collective, int64_t member) {
  const auto members = static_cast<int64_t>(collective.devices.size());
  const int64_t size = (collective.elements + members - 1) / members;
  const int64_t begin = std::min(member * size, collective.elements);
  return {begin, std::min(size, collective.elements - begin)};
}

int64_t input_elements(const Collective& collective, int64_t member) {
  switch (collective.kind) {
    case CollectiveKind::all_gather: return shard_of(collective, member).count;
    case CollectiveKind::broadcast: return member == collective.root ? collective.elements : 0;
    default: return collective.elements;
  }
}

int64_t output_elements(const Collective& collective, int64_t member) {
  switch (collective.kind) {
    case CollectiveKind::reduce_scatter: return shard_of(collective, member).count;
    case CollectiveKind::all_to_all:
      return shard_of(collective, member).count * static_cast<int64_t>(collective.devices.size());
    default: return collective.elements;
  }
}

Shard Moves::shards(int64_t first, int64_t behind) const {
  const int64_t begin = shard(first).begin;
  const int64_t end = behind < members() ? shard(behind).begin : collective_.elements;
  return {begin, end - begin};
}

// ---- Checks ------------------------------------------------------------------------------------

namespace {

Status check_pairs(const Collective& collective, int64_t members) {
  std::set<int32_t> from, to;
  for (const auto& [sender, receiver] : collective.pairs) {
    for (const int32_t member : {sender, receiver})
      if (member < 0 || member >= members)
        return bad_input("permute names member {} of a group of {}", member, members);
    if (!from.insert(sender).second) return bad_input("permute: member {} sends twice", sender);
    if (!to.insert(receiver).second)
      return bad_input("permute: member {} receives twice", receiver);
  }
  return {};
}

}  // namespace

Status check(const Collective& collective) {
  const auto members = static_cast<int64_t>(collective.devices.size());
  const std::string_view kind = name(collective.kind);
  if (members < 1 || members > Transport::kMaxDevices)
    return bad_input("{} of {} devices; a group has 1 to {}", kind, members,
                     Transport::kMaxDevices);
  std::set<int32_t> seen;
  for (const int32_t device : collective.devices) {
    if (device < 0 || device >= Transport::kMaxDevices)
      return bad_input("{} names device {}", kind, device);
    if (!seen.insert(device).second) return bad_input("{} names device {} twice", kind, device);
  }
  // Twice a group's elements, as an all_to_all and its scratch have, is still a number.
  constexpr int64_t kMostElements = int64_t{1} << 46;
  if (collective.elements < 0 || collective.elements > kMostElements)
    return bad_input("{} of {} elements; there are 0 to {}", kind, collective.elements,
                     kMostElements);
  if (collective.kind == CollectiveKind::broadcast &&
      (collective.root < 0 || collective.root >= members))
    return bad_input("broadcast from member {} of a group of {}", collective.root, members);
  return collective.kind == CollectiveKind::permute ? check_pairs(collective, members) : Status();
}

std::vector<CollectiveSchedule> schedules_of(const Collective& collective) {
  const auto members = static_cast<int32_t>(collective.devices.size());
  std::vector<CollectiveSchedule> schedules;
  for (int i = 0; i < kCollectiveAlgorithms; ++i) {
    const auto algorithm = static_cast<CollectiveAlgorithm>(i);
    if (!fits(algorithm, collective.kind)) continue;
    if (algorithm != CollectiveAlgorithm::hierarchical) {
      schedules.push_back({.algorithm = algorithm});
      continue;
    }
    for (int32_t m = 2; m < members; ++m)
      if (members % m == 0) schedules.push_back({.algorithm = algorithm, .neighbours = m});
  }
  return schedules;
}

// ---- Programs ----------------------------------------------------------------------------------

namespace {

// A member that sends and receives nothing, or keeps its own.
void keep_own(Moves& moves) {
  moves.next_round();
  const Shard whole = moves.whole();
  moves.copy(0, {StepRoom::input, 0, whole.count}, {StepRoom::output, 0, whole.count});
}

// A permute gives zeros to those who receive nothing.
void add_zeros(const Collective& collective, std::vector<DeviceProgram>& programs) {
  for (size_t i = 0; i < programs.size(); ++i) {
    const bool receives = std::ranges::any_of(
        collective.pairs, [&](const auto& pair) { return pair.second == static_cast<int>(i); });
    if (!receives && collective.elements > 0)
      programs[i].steps.push_back(
          {.kind = StepKind::zero, .to = {StepRoom::output, 0, collective.elements}});
  }
}

}  // namespace

Status check(const Collective& collective, const CollectiveSchedule& schedule) {
  if (!fits(schedule.algorithm, collective.kind))
    return bad_input("{} has no schedule '{}'", name(collective.kind), name(schedule.algorithm));
  if (schedule.pieces < 1 || schedule.pieces > CollectiveSchedule::kMaxPieces)
    return bad_input("a schedule of {} pieces; there are 1 to {}", schedule.pieces,
                     CollectiveSchedule::kMaxPieces);
  const auto members = static_cast<int64_t>(collective.devices.size());
  const int64_t m = schedule.neighbours;
  if (schedule.algorithm == CollectiveAlgorithm::hierarchical && (m < 1 || members % m != 0))
    return bad_input("groups of {} neighbours do not divide {} devices", m, members);
  return {};
}

namespace {

// The first program is all that is asked for if `first_alone`.
Result<std::vector<DeviceProgram>> woven(const Collective& collective,
                                         const CollectiveSchedule& schedule, uint32_t tag,
                                         bool first_alone) {
  HONE_TRY(check(collective));
  HONE_TRY(check(collective, schedule));
  Moves moves(collective, first_alone);
  const bool is_alone = collective.devices.size() == 1;
  if (is_alone && collective.kind != CollectiveKind::permute)
    keep_own(moves);
  else
    kBuilds[static_cast<int>(schedule.algorithm)](moves, schedule);
  std::vector<DeviceProgram> programs = weave(moves, schedule.pieces, tag);
  if (collective.kind == CollectiveKind::permute) add_zeros(collective, programs);
  return programs;
}

}  // namespace

Result<std::vector<DeviceProgram>> step_programs(const Collective& collective,
                                                 const CollectiveSchedule& schedule, uint32_t tag) {
  return woven(collective, schedule, tag, false);
}

Result<DeviceProgram> first_program(const Collective& collective,
                                    const CollectiveSchedule& schedule) {
  return HONE_TRY(woven(collective, schedule, 0, true)).front();
}

bool turns(const Collective& collective, const CollectiveSchedule& schedule) {
  using enum CollectiveAlgorithm;
  if (collective.kind == CollectiveKind::broadcast || collective.kind == CollectiveKind::permute)
    return false;
  if (collective.elements % std::ssize(collective.devices) != 0) return false;
  return schedule.algorithm == ring || schedule.algorithm == two_rings ||
         schedule.algorithm == direct;
}

int64_t most_messages(const Collective& collective, const CollectiveSchedule& schedule) {
  using enum CollectiveAlgorithm;
  const auto members = static_cast<int64_t>(collective.devices.size());
  const int64_t rounds = 2 * (std::bit_width(static_cast<uint64_t>(members)) + 1);
  const bool has_few = schedule.algorithm == halving || schedule.algorithm == doubling ||
                       schedule.algorithm == tree || collective.kind == CollectiveKind::broadcast ||
                       collective.kind == CollectiveKind::permute;
  return members * (has_few ? rounds : 2 * members) * schedule.pieces;
}

}  // namespace hone
