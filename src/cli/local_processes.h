#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/local_group.h"
#include "transport/tcp.h"

namespace hone::cli {

// Copies of this process that make a group with it, of one device each. They are made before the
// process has other threads that it needs. They die with it, and print nothing.
class LocalProcesses {
 public:
  // `serve` is the work of each copy. The kind is shared memory or TCP.
  static Result<std::unique_ptr<LocalProcesses>> start(
      TransportKind kind, int32_t processes, const std::function<Status(Transport&)>& serve);
  // Waits a moment for those that have done their work, and kills those that have not.
  ~LocalProcesses();
  LocalProcesses(const LocalProcesses&) = delete;

  // This process as the first of the group.
  Result<std::unique_ptr<Transport>> join() const { return join_as(0); }

 private:
  LocalProcesses() = default;
  Result<std::unique_ptr<Transport>> join_as(int32_t process) const;
  [[noreturn]] void serve_as(int32_t process, pid_t parent,
                             const std::function<Status(Transport&)>& serve) const;

  std::vector<int32_t> devices_;        // by process
  std::string name_;                    // of shared memory; empty: they use TCP
  std::vector<TcpListener> listeners_;  // by process
  TcpGroup group_;
  std::vector<pid_t> started_;
};

}  // namespace hone::cli
