#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "transport/emulated_links.h"
#include "transport/transport.h"
#include "transport/waits.h"

namespace hone {

struct ExchangeOptions {
  // How long a thread spins before it sleeps. Waking up costs tens of microseconds; spinning pays
  // if each device has a core.
  std::chrono::microseconds spin = std::chrono::microseconds(0);
  // Messages come as late as these links let them. Each process has its own view of the links: its
  // messages share them only with others that come to it.
  std::shared_ptr<const EmulatedLinks> links = nullptr;
  // Moves the bytes of a message between devices of this process; empty: the CPU does. Devices may
  // name memory then that the CPU does not reach. The error ends the run.
  std::function<Status(std::byte* to, const std::byte* from, size_t bytes)> move = {};
};

// The part of each transport that is the same: the open transfers of one process, and the matching
// of sends with receives. Transfers between devices of this process end here; a transport with
// several processes derives from it and moves the bytes of the others.
class Exchange : public Transport {
 public:
  // Owns all devices.
  Exchange(int32_t devices, const ExchangeOptions& options);

  int32_t devices() const override { return static_cast<int32_t>(is_here_.size()); }
  bool owns(int32_t device) const override;
  std::vector<Peer> peers() const override;
  Result<Ticket> send(const Channel& channel, std::span<const std::byte> bytes,
                      std::string_view command) override;
  Result<Ticket> receive(const Channel& channel, std::span<std::byte> bytes,
                         std::string_view command) override;
  Result<bool> test(Ticket ticket) override;
  Status wait(Ticket ticket) override;
  void cancel(const Error& reason) override;

 protected:
  using Clock = std::chrono::steady_clock;

  // A message that another process has sent or offered, and that no receive has met yet.
  struct Arrival {
    size_t size = 0;
    std::vector<std::byte> bytes;  // all of them, unless it is an offer
    bool is_offer = false;         // the bytes follow when they are asked for
    uint64_t offer = 0;            // its number
    int32_t process = 0;           // that sent it
  };

  enum class State : uint8_t {
    open,
    moving,  // somebody reads or writes the bytes: they must not be freed
    done,
    failed
  };

  struct Transfer {
    Channel channel;
    bool sends = false;
    std::byte* bytes = nullptr;
    size_t size = 0;
    std::string_view command;
    std::atomic<State> state = State::open;
    uint64_t flow = 0;  // over emulated links, of a receive that is done; 0: none
    uint32_t uses = 0;  // how often the slot was used: tickets of earlier uses are void
  };

  // Owns the devices for which `is_here` is true.
  Exchange(std::vector<bool> is_here, const ExchangeOptions& options);

  // The name of the process of each device, for people; empty for this one.
  void name_processes(std::vector<std::string> of_device);

  // ---- What a transport of several processes adds. All are called with the lock held.

  // A send to a device of another process has begun.
  virtual void begin_remote(uint32_t slot);
  // A receive waits for a device of another process.
  virtual void await_remote(uint32_t slot);
  // A receive has met an offer: its bytes may come. It is `moving`.
  virtual void ask_for(uint32_t slot, const Arrival& arrival);
  // A receive has met a message whose bytes are here.
  virtual void has_taken(const Arrival& arrival);
  // The run has ended for this reason; peers are to be told.
  virtual void has_failed(const Error& reason);
  // Called by a thread that spins: it may as well move bytes.
  virtual void progress() {}

  // ---- What it calls, with the lock held.

  Transfer& at(uint32_t slot) { return transfers_[slot]; }
  // A message has come for a device of this process.
  void arrive(const Channel& channel, Arrival arrival);
  void finish(uint32_t slot, State state);
  void fail(const Error& reason);
  bool is_over() const { return reason_.has_value(); }
  // True if a receive waits in a channel of these.
  template <class Is>
  bool awaits(const Is& is) const {
    for (const auto& [channel, queue] : queues_)
      if (!queue.receives.empty() && is(channel)) return true;
    return false;
  }
  std::string describe(const Transfer& transfer) const;

  std::mutex mutex_;

 private:
  struct HashChannel {
    size_t operator()(const Channel& channel) const {
      return Hasher().add(channel.from).add(channel.to).add(channel.tag).value();
    }
  };
  // The transfers that wait in one channel: either sends or receives.
  struct Queue {
    std::deque<uint32_t> sends;  // of this process
    std::deque<Arrival> arrivals;
    std::deque<uint32_t> receives;
    bool is_empty() const { return sends.empty() && arrivals.empty() && receives.empty(); }
  };

  Result<uint32_t> open(const Channel& channel, bool sends, std::byte* bytes, size_t size,
                        std::string_view command);
  Status check(const Channel& channel, bool sends, std::string_view command) const;
  void match_here(uint32_t send, uint32_t receive, std::unique_lock<std::mutex>& lock);
  void match_arrival(uint32_t receive, Arrival arrival);
  void release(uint32_t slot);
  Ticket ticket_of(uint32_t slot) const;
  uint32_t slot_of(Ticket ticket) const;
  Error error_of(const Transfer& transfer) const;
  void add_open(uint64_t number, std::vector<OpenTransfer>& all);
  void wake(int32_t device);
  void wake_all();
  void emulate(Transfer& transfer);
  Clock::time_point visible_at(const Transfer& transfer) const;
  bool sleep_until_visible(const Transfer& transfer, std::unique_lock<std::mutex>& lock);

  const ExchangeOptions options_;
  const std::vector<bool> is_here_;
  std::vector<std::unique_ptr<std::condition_variable>>
      wakes_;  // one for each device of this process
  std::deque<Transfer> transfers_;
  std::vector<uint32_t> free_;
  std::unordered_map<Channel, Queue, HashChannel> queues_;
  std::optional<Error> reason_;  // why the run has ended
  std::optional<FlowTable> flows_;
  const Clock::time_point start_ = Clock::now();  // of the table's seconds
  std::vector<std::string> process_of_;           // of each device, its name; or empty
  const ListedExchange listed_;                   // the last one: it looks at the others
};

}  // namespace hone
