#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

// Moves bytes between devices. A process owns one device or several, and each device is driven by
// one thread at a time. A transport may be used by all these threads at once.
//
// Messages of one channel are matched in order: the third send with the third receive. Messages of
// different channels never wait for each other. A transport may hold bytes of a send until there is
// a receive, or may not: a program must be right for both (check_steps.h proves that it is).
//
// The first failure ends the whole run: each open and each later transfer of all devices gives the
// same error. It names the peer, and in front of it the own command. Nothing waits for ever for
// a peer that is gone.

namespace hone {

struct Channel {
  int32_t from = 0;  // devices, counted from 0
  int32_t to = 0;
  uint32_t tag = 0;

  auto operator<=>(const Channel&) const = default;
};

// Names a transfer that was started. It is good until test() says true, or wait() returns.
struct Ticket {
  uint64_t id = 0;  // 0: none
};

// A process that owns devices.
struct Peer {
  std::string name;  // for people: "this process", "process 4711", "10.0.0.2:5000"
  std::vector<int32_t> devices;
  bool is_here = false;
};

class Transport {
 public:
  static constexpr int32_t kMaxDevices = 1 << 16;

  virtual ~Transport() = default;

  virtual int32_t devices() const = 0;  // of all processes
  virtual bool owns(int32_t device) const = 0;
  virtual std::vector<Peer> peers() const = 0;  // this process included

  // Start a transfer. The bytes stay as they are until it is waited for, and so does the text
  // `command`, which errors name. The owner of channel.from sends, that of channel.to receives.
  // A receive of another size than its send is an error of both.
  virtual Result<Ticket> send(const Channel& channel, std::span<const std::byte> bytes,
                              std::string_view command) = 0;
  virtual Result<Ticket> receive(const Channel& channel, std::span<std::byte> bytes,
                                 std::string_view command) = 0;

  // True if the transfer is complete; the ticket is gone then, as it is after an error.
  virtual Result<bool> test(Ticket ticket) = 0;
  // Returns when the transfer is complete or has failed.
  virtual Status wait(Ticket ticket) = 0;

  // Ends the run: what is open or started later fails with this reason, here and at all peers. The
  // first reason stays. Tickets that are open are still waited for, or tested, before their bytes
  // are freed.
  virtual void cancel(const Error& reason) = 0;
};

}  // namespace hone
