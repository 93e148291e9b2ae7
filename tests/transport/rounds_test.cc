#include "transport/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/base/says_testing.h"

// The rounds of a schedule beside its programs.

namespace hone::HONE_FILE {
namespace {

using tested::refuses;

Collective group(CollectiveKind kind, int32_t members, int64_t elements) {
  Collective made = {.kind = kind, .devices = {}, .elements = elements};
  made.devices.resize(static_cast<size_t>(members));
  std::iota(made.devices.begin(), made.devices.end(), 0);
  return made;
}

// Elements by sender and receiver; and those that a member adds, as if it sent them to itself.
using Sums = std::map<std::pair<int64_t, int64_t>, int64_t>;

Sums sums_of(const std::vector<DeviceProgram>& programs) {
  Sums sums;
  for (size_t i = 0; i < programs.size(); ++i)
    for (const DeviceStep& step : programs[i].steps) {
      const auto from = static_cast<int64_t>(i);
      if (step.kind == StepKind::send) sums[{from, step.peer}] += step.from.count;
      if (step.kind == StepKind::add) sums[{from, from}] += step.to.count;
    }
  return sums;
}

Sums sums_of(const std::vector<MessageRounds>& all, int64_t members) {
  Sums sums;
  for (const MessageRounds& rounds : all)
    for (int64_t i = 0; i < members; ++i)
      for (const int64_t peer : peers_of(rounds, i, members)) {
        sums[{i, peer}] += rounds.count * rounds.elements;
        // With `both`, one of the two messages has all that is added.
        const bool adds = rounds.way != RoundWay::both || peer == (i + 1) % members;
        if (adds && rounds.added > 0) sums[{peer, peer}] += rounds.count * rounds.added;
      }
  return sums;
}

TEST(MessageRounds, AreThoseOfThePrograms) {
  int compared = 0;
  for (const int32_t members : {2, 3, 4, 6, 7, 8, 12, 16})
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                      CollectiveKind::reduce_scatter, CollectiveKind::all_to_all}) {
      const Collective one = group(kind, members, members * int64_t{6});
      for (const CollectiveSchedule& schedule : schedules_of(one)) {
        const Result<std::vector<MessageRounds>> rounds = message_rounds(one, schedule);
        if (!rounds.ok()) continue;
        ++compared;
        EXPECT_EQ(sums_of(*rounds, members), sums_of(step_programs(one, schedule).value()))
            << name(kind) << " of " << members << " by " << to_string(schedule);
      }
    }
  EXPECT_GT(compared, 80);
}

TEST(MessageRounds, RefuseWhatHasNone) {
  const Collective six = group(CollectiveKind::all_reduce, 6, 12);
  const auto refused = [](const Collective& one, std::string_view schedule, std::string_view says) {
    EXPECT_THAT(message_rounds(one, parse_collective_schedule(schedule).value()),
                refuses(ErrorCode::limit, std::string(says)));
  };
  refused(six, "halving", "'halving' of 6 devices");
  refused(six, "doubling", "'doubling' of 6 devices");
  refused(six, "ring, 2 pieces", "pieces");
  refused(six, "direct", "all_to_all alone");
  refused(group(CollectiveKind::broadcast, 4, 8), "tree", "broadcast of 4 devices");
}

}  // namespace
}  // namespace hone::HONE_FILE
