#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace hone::tested {

// A transport whose peer sends these bytes, cut as the receives want them, and takes whatever is
// sent. The peer is lost behind the last byte.
class ScriptedTransport : public Transport {
 public:
  explicit ScriptedTransport(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  int32_t devices() const override { return 2; }
  bool owns(int32_t) const override { return true; }
  std::vector<Peer> peers() const override { return {{"a scripted peer", {0, 1}, false}}; }
  Result<Ticket> send(const Channel&, std::span<const std::byte> bytes, std::string_view) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    sent_ += bytes.size();
    return Ticket{kGood};
  }
  Result<Ticket> receive(const Channel&, std::span<std::byte> room, std::string_view) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    most_room_ = std::max(most_room_, room.size());
    if (bytes_.size() - at_ < room.size()) return Ticket{kLost};
    if (!room.empty()) std::memcpy(room.data(), bytes_.data() + at_, room.size());
    at_ += room.size();
    return Ticket{kGood};
  }
  Result<bool> test(Ticket) override { return false; }
  Status wait(Ticket ticket) override {
    if (ticket.id == kLost || is_cancelled_) return over_limit("the peer was lost");
    return {};
  }
  void cancel(const Error&) override { is_cancelled_ = true; }

  size_t most_room() const { return most_room_; }  // bytes of the largest receive

 private:
  static constexpr uint64_t kGood = 1, kLost = 2;
  const std::vector<std::byte> bytes_;
  size_t at_ = 0, sent_ = 0, most_room_ = 0;
  std::atomic<bool> is_cancelled_ = false;
  std::mutex mutex_;  // several devices of a worker may use it
};

}  // namespace hone::tested
