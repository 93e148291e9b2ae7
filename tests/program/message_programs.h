#pragma once

#include <string>
#include <vector>

#include "base/rng.h"

// Random programs of several devices that only exchange messages.

namespace hone::tested {

struct DrawnMessage {
  int32_t from = 0;
  int32_t to = 0;
  uint32_t tag = 0;
  int64_t bytes = 1;
};

struct MessagePrograms {
  int32_t devices = 2;
  std::vector<DrawnMessage> messages;
  // The messages that each device sends and that it takes, in the order in which it begins them.
  std::vector<std::vector<size_t>> sent;
  std::vector<std::vector<size_t>> taken;
  bool is_right = false;  // all begin before the first is waited for, so nobody waits for ever
  std::string text;
};

// 2 or 3 devices and up to `most` messages.
MessagePrograms draw_message_programs(Rng& rng, int64_t most);

// Draws programs, and compares what the checker says with runs on the virtual clock: without
// buffers, and in every order of events with them. An empty text: all is well.
std::string message_fault(Rng& rng);

}  // namespace hone::tested
