#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "transport/streams.h"

// Processes of several hosts: a connection for each pair. Before anything else, both ends prove
// that they know the group's secret, and that they run the same version of the transport with the
// same group. Frames are not encrypted: the network itself must be trusted not to change them.

namespace hone {

struct HostPort {
  std::string host;
  uint16_t port = 0;
  bool operator==(const HostPort&) const = default;
};
// "10.0.0.2:5000", "localhost:5000", "[::1]:5000".
Result<HostPort> parse_host_port(std::string_view text);
std::string to_string(const HostPort& address);

// A socket that takes connections.
class TcpListener {
 public:
  // An address of this host; the loopback unless it is said otherwise. Port 0: any free one.
  static Result<TcpListener> open(const HostPort& address = {"127.0.0.1", 0});

  const FileDescriptor& file() const { return file_; }
  uint16_t port() const { return port_; }

 private:
  TcpListener(FileDescriptor file, uint16_t port) : file_(std::move(file)), port_(port) {}
  FileDescriptor file_;
  uint16_t port_;
};

struct TcpGroup {
  static constexpr size_t kLeastSecret = 16;  // bytes

  ProcessGroup group;
  // Where each process listens. An address of a higher number than the own one may be empty: that
  // process calls, and errors name it by where it comes from.
  std::vector<HostPort> addresses;
  std::string secret;  // the same in all of them
  uint64_t run = 0;    // what they are to run, such as the hash of a program: it must agree
};

// Returns when this process is connected with all others. Strangers that connect meanwhile are
// turned away, and delay nobody. Error: the group is not whole in time, or a peer differs. The
// listener is free for another group afterwards.
Result<std::unique_ptr<Transport>> join_tcp(const TcpListener& listener, const TcpGroup& group,
                                            const StreamOptions& options = {});

}  // namespace hone
