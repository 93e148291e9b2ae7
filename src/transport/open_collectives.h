#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "transport/run_steps.h"
#include "transport/spmd.h"

// The collectives and messages of one device while a program runs. One that has started goes on
// whenever the device starts, polls or waits for something, and uses no thread of its own.

namespace hone {

class OpenCollectives {
 public:
  OpenCollectives() = default;
  OpenCollectives(const OpenCollectives&) = delete;

  // A run begins: nothing is open. The steps that earlier runs worked out are kept, if the place is
  // the same.
  void enter(const DevicePlace& place);

  // Starts the collective. The key, an address of anything, names it until its wait. The same key
  // always comes with the same collective, sizes and name of the result, by which errors name the
  // command. All devices start the same collectives in the same order: the n-th of one device meets
  // the n-th of the others.
  Status start(const void* key, const SpmdCollective& collective, DType dtype,
               std::span<const std::byte> from, std::span<std::byte> to, std::string_view result);
  // Start a message. Key and name as above; the name is that of the value.
  Status send(const void* key, const Message& message, std::span<const std::byte> from,
              std::string_view value);
  Status receive(const void* key, const Message& message, std::span<std::byte> to,
                 std::string_view value);
  // Returns when it is complete. The token is looked at while it waits.
  Status wait(const void* key, const CancelToken* cancel = nullptr);
  // Lets those that are open go on as far as they can.
  Status poll();
  bool is_idle() const { return open_.empty(); }

  // The run has failed: ends that of all devices, and returns when nobody uses the memory of open
  // collectives any more.
  void give_up(const Error& reason);

 private:
  struct Prepared {
    std::string command;  // "all_reduce %g"
    DeviceProgram program;
    MovedElements moved;
    std::vector<std::byte> scratch;
  };
  Result<Prepared*> prepare(const void* key, const SpmdCollective& collective, DType dtype,
                            int64_t from, int64_t to, std::string_view result);
  Status start_message(const void* key, StepKind kind, const Message& message,
                       const StepMemory& memory, std::string_view value);
  Status begin(const void* key, Prepared& prepared, const StepMemory& memory);
  Transport& transport();

  DevicePlace place_;
  int32_t devices_ = 1;  // of the place; its transport may be gone when the next run begins
  std::unique_ptr<Transport> alone_;  // of a device without others
  uint32_t started_ = 0;              // in this run
  std::map<const void*, Prepared> prepared_;
  std::map<const void*, StepRun> open_;
};

}  // namespace hone
