#pragma once

#include <cstdint>
#include <vector>

#include "transport/collective.h"

// Schedules as rounds of equal messages, for callers that count bytes and need no single step. They
// say in short what NAME_moves() does, and a test holds both together.

namespace hone {

// To whom members send in a round.
enum class RoundWay : uint8_t {
  next,     // the next member
  both,     // the next one and the one before
  partner,  // the member `step` away in the binary number
  up,       // of twice `step` members the second half to the first
  down,     // and back
  inside,   // the next one of `step` neighbours
  across,   // the member `step` further on
  each,     // each other one
};

// Some equal rounds, one behind the other.
struct MessageRounds {
  RoundWay way = RoundWay::next;
  int64_t step = 1;
  int64_t count = 1;
  int64_t elements = 0;  // of a message
  int64_t added = 0;     // that a member adds in a round
};

// Shards are all as long as the first one. Over the limit for what has no rounds here: broadcasts,
// permutes, pieces, `direct` but for an all_to_all, and halving or doubling of members that are no
// power of two.
Result<std::vector<MessageRounds>> message_rounds(const Collective& collective,
                                                  const CollectiveSchedule& schedule);
// The members that a member sends to.
std::vector<int64_t> peers_of(const MessageRounds& rounds, int64_t member, int64_t members);

}  // namespace hone
