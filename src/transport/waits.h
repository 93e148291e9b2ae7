#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

// Lists the transfers that devices of this process wait for, over all of its transports: for people
// who look at a run that takes long. Transfers themselves do nothing for it.

namespace hone {

// A transfer that has begun and is not complete.
struct OpenTransfer {
  uint64_t exchange = 0;  // the transport's number in this process
  uint64_t ticket = 0;    // the same as long as it is the same transfer
  int32_t device = 0;     // of this process
  int32_t peer = 0;       // the other device
  bool sends = false;
  std::string peer_process;  // empty: it is this one
  std::string command;
};

// In the order of transports and tickets.
std::vector<OpenTransfer> open_transfers();

// Finds the transfers that stay open. Looked at again and again, by one thread at a time.
class LongWaits {
 public:
  // Each transfer that has been seen open for this many seconds is told once, and again when that
  // time has doubled.
  explicit LongWaits(double seconds) : seconds_(seconds) {}

  // `now` is in seconds. The lines are those that are due: "device 0 has waited for device 1 of
  // process 4711 for 2.0 s: all_reduce %s".
  std::vector<std::string> look(double now, const std::vector<OpenTransfer>& open);

 private:
  struct Seen {
    double first = 0;
    double due = 0;
  };
  const double seconds_;
  std::map<std::pair<uint64_t, uint64_t>, Seen> seen_;
};

// For transports: each is listed from its beginning to its end. It gives its open transfers
// whenever it is asked, by any thread.
class ListedExchange {
 public:
  explicit ListedExchange(std::function<void(uint64_t number, std::vector<OpenTransfer>& all)> add);
  ~ListedExchange();
  ListedExchange(const ListedExchange&) = delete;

 private:
  const uint64_t number_;
};

}  // namespace hone
