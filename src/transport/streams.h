#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "transport/exchange.h"

// The transports between processes. Each pair of processes has a stream of bytes both ways, which
// carries frames (frame.h). One thread of each process moves the bytes. It notices peers that are
// gone: their stream has ended, or not even a heartbeat came from them for a while.

namespace hone {

// Devices are counted on, process by process.
struct ProcessGroup {
  int32_t process = 0;                // this one
  std::vector<int32_t> devices = {};  // how many each process owns

  int32_t processes() const { return static_cast<int32_t>(devices.size()); }
  int32_t first_device(int32_t of_process) const;
  uint64_t hash() const;  // the same in all processes of the group
};
// Error: no process, no device, or too many.
Status check(const ProcessGroup& group);

struct StreamOptions {
  ExchangeOptions exchange = {};
  double beat_seconds = 0.5;            // between heartbeats
  double silence_seconds = 3;           // after which a peer counts as lost
  double join_seconds = 30;             // until all have to be there
  const CancelToken* cancel = nullptr;  // of the joining
};

// The streams to all other processes.
class Wires {
 public:
  virtual ~Wires() = default;

  // Moves as many bytes as can be moved now, perhaps none. Error: the peer is gone.
  virtual Result<size_t> write(int32_t process, std::span<const std::byte> bytes) = 0;
  virtual Result<size_t> read(int32_t process, std::span<std::byte> bytes) = 0;
  // Error: the peer is gone, by another sign than its stream.
  virtual Status check_alive(int32_t process) = 0;
  // Nothing is read from it or written to it any more.
  virtual void drop(int32_t process) = 0;
  // Returns when something can be read, or be written to one of those that want it, or ring() was
  // called, or the time has passed.
  virtual void sleep(const std::vector<bool>& wants_to_write, double seconds) = 0;
  virtual void ring() = 0;  // by any thread

  virtual std::string name(int32_t process) const = 0;  // "process 4711", "10.0.0.2:5000"
  virtual bool can_be_damaged() const = 0;              // payloads need checksums
};

// Its destructor tells the peers that this process has ended in peace.
std::unique_ptr<Transport> make_stream_transport(std::unique_ptr<Wires> wires,
                                                 const ProcessGroup& group,
                                                 const StreamOptions& options);

}  // namespace hone
