#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "transport/emulated_links.h"
#include "transport/run_steps.h"

// All devices in one thread, on a clock that jumps from event to event. The same seed gives the
// same run, and a caller that chooses the next event sees every order that is possible.

namespace hone {

enum class MessageFault : uint8_t { lost, doubled, swapped, corrupt };

struct VirtualOptions {
  // A send is complete at once; else when its receive has begun and the message has come.
  bool buffers = true;
  // How long a message is on its way. Messages of a channel stay in order.
  std::function<double(const Channel& channel, size_t bytes)> seconds = nullptr;
  // Or links that messages share, from when they have both left and met a receive.
  std::optional<EmulatedLinks> links = std::nullopt;
  // The fault that a message meets, by its number. `swapped` is with the next one of its
  // channel.
  std::map<int64_t, MessageFault> faults = {};
};

// The transport of such a run. wait() is for threads, and not to be called.
class VirtualNetwork : public Transport {
 public:
  explicit VirtualNetwork(int32_t devices, VirtualOptions options = {});

  int32_t devices() const override { return devices_; }
  bool owns(int32_t device) const override { return device >= 0 && device < devices_; }
  std::vector<Peer> peers() const override;
  Result<Ticket> send(const Channel& channel, std::span<const std::byte> bytes,
                      std::string_view command) override;
  Result<Ticket> receive(const Channel& channel, std::span<std::byte> bytes,
                         std::string_view command) override;
  Result<bool> test(Ticket ticket) override;
  Status wait(Ticket ticket) override;
  void cancel(const Error& reason) override;

  double now() const { return now_; }

  // A message that can come next: it is on its way, and its receive has begun.
  struct Event {
    Channel channel;
    double time = 0;
    int64_t number = 0;  // of the message
  };
  std::vector<Event> events() const;  // by time, then by number
  void happen(const Event& event);

  // Messages that nobody has received, and receives that got none: "message 3 from device 0 to 1".
  std::vector<std::string> leftovers() const;

 private:
  struct Message {
    int64_t number = 0;
    int64_t sequence = 0;  // in its channel
    uint64_t hash = 0;     // of the bytes as they were sent
    std::vector<std::byte> bytes;
    double comes = 0;
    uint64_t ticket = 0;  // of its send, if that waits
    uint64_t flow = 0;    // over links
  };
  struct Waiting {
    std::span<std::byte> bytes;
    uint64_t ticket = 0;
    std::string_view command;
  };
  struct Line {
    std::deque<Message> messages;
    std::deque<Waiting> receives;
    int64_t sent = 0;
    int64_t received = 0;
    double last = 0;  // when the last message comes
  };
  Status check(const Channel& channel) const;
  double time_of(const Message& message) const;
  void start_flows(const Channel& channel, Line& line);
  void add_message(Line& line, Message message);
  void apply_fault(Line& line, MessageFault fault);

  const int32_t devices_;
  const VirtualOptions options_;
  double now_ = 0;
  int64_t messages_ = 0;
  uint64_t tickets_ = 0;
  std::map<Channel, Line> lines_;
  std::map<uint64_t, bool> complete_;  // by ticket
  std::optional<Error> reason_;
  std::optional<FlowTable> flows_;
};

// Chooses among the events that may come next, which are `count`; the first one is that of the
// least time. Devices that can go on come before all messages.
using ChooseEvent = std::function<size_t(size_t count)>;

// Runs the programs of all devices to their end. Error: of the network, or that no event is left
// and some devices wait; it names two of them. A message that nobody receives is an error, too.
Status run_virtually(std::span<const DeviceProgram> programs, VirtualNetwork& network,
                     std::span<const StepMemory> memory, const ChooseEvent& choose = nullptr);

struct Exploration {
  int64_t runs = 0;
  bool is_whole = false;  // all orders of events were seen
};

// Runs a small program in each order of events that there is, or in `most` of them. `run` makes a
// fresh network and memory, runs them by the choice that it is given, and judges the outcome.
Result<Exploration> explore(int64_t most, const std::function<Status(const ChooseEvent&)>& run);

}  // namespace hone
