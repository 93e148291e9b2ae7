#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "transport/streams.h"

// Devices of this machine over each transport that it has, for measurements and tests of the
// transports.

namespace hone {

enum class TransportKind : uint8_t { threads, shared_memory, tcp, mpi };
// The ones that need no mpirun.
inline constexpr TransportKind kLocalTransports[] = {
    TransportKind::threads, TransportKind::shared_memory, TransportKind::tcp};
std::string_view name(TransportKind kind);

// The transports of a group whose processes are all threads of this process.
class LocalGroup {
 public:
  // One device for each process; all devices share one transport if the kind is threads. The kind
  // is one of kLocalTransports.
  static Result<LocalGroup> join(TransportKind kind, int32_t devices,
                                 const StreamOptions& options = {});

  Transport& of(int32_t device) const {
    return *transports_[transports_.size() == 1 ? 0 : static_cast<size_t>(device)];
  }

 private:
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace hone
