#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/file.h"
#include "transport/tcp.h"

namespace hone {

struct SocketAddress {
  int family = 0;
  std::vector<std::byte> bytes;  // a sockaddr
};
// Error: the name has no address.
Result<std::vector<SocketAddress>> resolve(const HostPort& address);

// A socket to each other process, by number; none at the own one. Each process connects to those of
// lower numbers. Both ends say hello, then the one that connected proves that it knows the secret,
// and then the other one does. Null: nobody cancels it.
Result<std::vector<FileDescriptor>> connect_all(const TcpListener& listener, const TcpGroup& group,
                                                double seconds,
                                                const CancelToken* cancel = nullptr);

}  // namespace hone
