#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.h"
#include "transport/transport.h"

// Messages from device 0, which owns one transport, to device 1, which owns another one or the
// same. The texts say what went wrong; empty: nothing.

namespace hone::tested {

// Messages of a channel that are all sent before any is received come in their order.
inline std::string order_fault(Transport& from, Transport& to, Rng& rng) {
  const Channel channel = {0, 1, static_cast<uint32_t>(rng.below(3))};
  std::vector<int64_t> sent(static_cast<size_t>(rng.between(2, 5))), got(sent.size());
  std::vector<Ticket> tickets, receives;
  for (int64_t& each : sent) {
    each = rng.between(0, 1000000);
    tickets.push_back(*from.send(channel, std::as_bytes(std::span(&each, 1)), "sends"));
  }
  for (int64_t& each : got)
    receives.push_back(
        *to.receive(channel, std::as_writable_bytes(std::span(&each, 1)), "receives"));
  for (const Ticket ticket : receives)
    if (const Status good = to.wait(ticket); !good.ok()) return good.error().to_string();
  for (const Ticket ticket : tickets)
    if (const Status good = from.wait(ticket); !good.ok()) return good.error().to_string();
  for (size_t i = 0; i < sent.size(); ++i)
    if (sent[i] != got[i])
      return fmt::format("message {} of {} is {} for {}", i, sent.size(), got[i], sent[i]);
  return "";
}

// Small messages leave at once again some time after those before were received, however many.
inline std::string room_fault(Transport& from, Transport& to) {
  constexpr int kMessages = 100, kMoreTries = 60;
  std::byte byte{7}, room{0};
  for (int i = 0; i < kMessages + kMoreTries; ++i) {
    const Ticket sent = *from.send({0, 1, 9}, {&byte, 1}, "sends");
    const bool has_left = *from.test(sent);
    const Status good = to.wait(*to.receive({0, 1, 9}, {&room, 1}, "receives"));
    if (!good.ok()) return good.error().to_string();
    if (!has_left) (void)from.wait(sent);
    if (i < kMessages) continue;
    if (has_left) return "";
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return fmt::format("{} messages were received, and no more leave at once", kMessages);
}

}  // namespace hone::tested
