#pragma once

#include <cstdint>
#include <string>
#include <vector>

// The part of one device in a collective, or in any exchange of messages: a list of steps, one
// after another. Sends and receives only begin; a wait ends them. check_steps.h proves that the
// programs of all devices fit together.

namespace hone {

enum class StepRoom : uint8_t { input, output, scratch };

// Elements of a device's memory.
struct StepPart {
  StepRoom room = StepRoom::input;
  int64_t begin = 0;
  int64_t count = 0;

  int64_t end() const { return begin + count; }
  bool operator==(const StepPart&) const = default;
};

enum class StepKind : uint8_t {
  send,     // begins: `from` goes to the peer
  receive,  // begins: `to` comes from the peer
  wait,     // until the transfer of the ticket is complete
  copy,     // to = from
  add,      // to = from combined with other: their sum, or what the run says
  zero      // to = 0
};

struct DeviceStep {
  StepKind kind = StepKind::wait;
  int32_t peer = 0;    // send, receive: the other device
  uint32_t tag = 0;    // send, receive
  int32_t ticket = 0;  // send, receive, wait: 0 to tickets - 1, each once
  StepPart to = {};
  StepPart from = {};
  StepPart other = {};

  bool operator==(const DeviceStep&) const = default;
};

struct DeviceProgram {
  int32_t device = 0;
  int32_t tickets = 0;
  int64_t input = 0;  // elements of each room
  int64_t output = 0;
  int64_t scratch = 0;
  std::vector<DeviceStep> steps;

  bool operator==(const DeviceProgram&) const = default;
};

// "send #3 input[0:16] to device 2 by tag 7".
std::string to_string(const DeviceStep& step);
// A line for each step.
std::string to_string(const DeviceProgram& program);

}  // namespace hone
