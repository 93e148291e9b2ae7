#pragma once

#include <algorithm>
#include <vector>

#include "base/rng.h"
#include "transport/steps.h"

// Programs of steps by hand, and random ones.

namespace hone::tested {

constexpr StepPart in(int64_t begin) { return {StepRoom::input, begin, 1}; }
constexpr StepPart out(int64_t begin) { return {StepRoom::output, begin, 1}; }

inline DeviceStep send(int32_t peer, int32_t ticket, int64_t from, uint32_t tag = 0) {
  return {.kind = StepKind::send, .peer = peer, .tag = tag, .ticket = ticket, .from = in(from)};
}
inline DeviceStep receive(int32_t peer, int32_t ticket, int64_t to, uint32_t tag = 0) {
  return {.kind = StepKind::receive, .peer = peer, .tag = tag, .ticket = ticket, .to = out(to)};
}
inline DeviceStep wait(int32_t ticket) { return {.kind = StepKind::wait, .ticket = ticket}; }

inline DeviceProgram program(int32_t device, std::vector<DeviceStep> steps) {
  int32_t tickets = 0;
  for (const DeviceStep& step : steps) tickets = std::max(tickets, step.ticket + 1);
  return {device, tickets, 8, 8, 0, std::move(steps)};
}

// Messages between 2 to 4 devices; each device begins its transfers in an order of its own and
// waits for them at any place behind. Now and then a step is lost, or two are swapped.
inline std::vector<DeviceProgram> draw_programs(Rng& rng) {
  const auto devices = static_cast<int32_t>(rng.between(2, 4));
  std::vector<DeviceProgram> programs;
  for (int32_t i = 0; i < devices; ++i) programs.push_back(program(i, {}));
  const int64_t messages = rng.between(1, 7);
  const bool in_order = rng.chance(0.5);
  for (int64_t m = 0; m < messages; ++m) {
    const auto from = static_cast<int32_t>(rng.below(static_cast<uint64_t>(devices)));
    const auto to = static_cast<int32_t>((from + rng.between(1, devices - 1)) % devices);
    const auto tag = static_cast<uint32_t>(rng.below(2));
    for (const int32_t device : {from, to}) {
      DeviceProgram& each = programs[static_cast<size_t>(device)];
      const int32_t ticket = each.tickets++;
      DeviceStep begin = device == from ? send(to, ticket, m, tag) : receive(from, ticket, m, tag);
      size_t at = each.steps.size();
      if (!in_order) at = rng.below(at + 1);
      each.steps.insert(each.steps.begin() + static_cast<ptrdiff_t>(at), begin);
    }
  }
  for (DeviceProgram& each : programs) {
    for (int32_t ticket = 0; ticket < each.tickets; ++ticket) {
      size_t at = 0;
      while (each.steps[at].kind == StepKind::wait || each.steps[at].ticket != ticket) ++at;
      at += 1 + rng.below(each.steps.size() - at);
      each.steps.insert(each.steps.begin() + static_cast<ptrdiff_t>(at), wait(ticket));
    }
  }
  return programs;
}

}  // namespace hone::tested
