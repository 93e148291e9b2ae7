#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "transport/frame.h"
#include "transport/streams.h"

// A peer that sends any bytes, over streams that exist in memory only.

namespace hone::tested {

class HostileWires : public Wires {
 public:
  explicit HostileWires(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  Result<size_t> write(int32_t, std::span<const std::byte> bytes) override { return bytes.size(); }
  Result<size_t> read(int32_t, std::span<std::byte> bytes) override {
    const size_t count = std::min(bytes.size(), bytes_.size() - at_);
    if (count == 0) return over_limit("it closed the connection");
    std::memcpy(bytes.data(), bytes_.data() + at_, count);
    at_ += count;
    return count;
  }
  Status check_alive(int32_t) override { return {}; }
  void drop(int32_t) override {}
  void sleep(const std::vector<bool>&, double) override { std::this_thread::yield(); }
  void ring() override {}
  std::string name(int32_t) const override { return "a hostile peer"; }
  bool can_be_damaged() const override { return true; }

 private:
  const std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

// The bytes as a stream. If `is_sealed`, they are numbers of frames, which get the magic and the
// checksums that a peer who knows the format gives them.
inline std::vector<std::byte> hostile_stream(std::span<const std::byte> bytes, bool is_sealed) {
  if (!is_sealed) return {bytes.begin(), bytes.end()};
  std::vector<std::byte> stream;
  while (bytes.size() >= 8) {
    const std::span<const std::byte> head = bytes.first(8);
    bytes = bytes.subspan(8);
    const auto number = [&](size_t i) { return std::to_integer<uint32_t>(head[i]); };
    Frame frame;
    frame.kind = static_cast<FrameKind>(number(0) % kFrameKinds);
    frame.from = static_cast<int32_t>(number(1) % 4) - 1;
    frame.to = static_cast<int32_t>(number(2) % 4) - 1;
    frame.tag = number(3) % 3;
    frame.size = number(4) % 8 == 0 ? 100000 : number(4) % 16;
    frame.number = number(5) % 4;
    frame.offset = number(6) % 4 * 25000;
    std::vector<std::byte> payload;
    if (frame.kind == FrameKind::data) payload.resize(25000);
    if (frame.kind == FrameKind::small || frame.kind == FrameKind::end) {
      const size_t count = std::min<size_t>(bytes.size(), number(7) % 16);
      payload.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(count));
      bytes = bytes.subspan(count);
    }
    if (frame.kind == FrameKind::small) frame.size = payload.size();
    frame.payload = static_cast<uint32_t>(payload.size());
    frame.checksum = crc32c(payload);
    std::array<std::byte, Frame::kHeaderBytes> header;
    encode(frame, header);
    stream.insert(stream.end(), header.begin(), header.end());
    stream.insert(stream.end(), payload.begin(), payload.end());
  }
  return stream;
}

// A process that wants this and that of the peer. All its transfers end.
inline void meet_hostile_peer(std::vector<std::byte> stream) {
  const std::unique_ptr<Transport> transport =
      make_stream_transport(std::make_unique<HostileWires>(std::move(stream)), {0, {1, 2}}, {});
  std::vector<std::byte> small(10), large(100000), offered(100000);
  std::vector<Ticket> tickets;
  const auto keep = [&](const Result<Ticket>& ticket) {
    if (ticket.ok()) tickets.push_back(*ticket);
  };
  for (const uint32_t tag : {0u, 1u}) {
    keep(transport->receive({1, 0, tag}, small, "receives a little"));
    keep(transport->receive({2, 0, tag}, std::span(large), "receives much"));
    keep(transport->send({0, 1, tag}, offered, "sends"));
    for (const Ticket ticket : tickets) (void)transport->wait(ticket);
    tickets.clear();
  }
}

}  // namespace hone::tested
