#include "transport/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/checked_text.h"
#include "base/text.h"
#include "transport/tcp_join.h"

namespace hone {
namespace {

class TcpWires : public Wires {
 public:
  TcpWires(std::vector<FileDescriptor> sockets, std::vector<HostPort> addresses,
           FileDescriptor bell)
      : sockets_(std::move(sockets)), addresses_(std::move(addresses)), bell_(std::move(bell)) {}

  Result<size_t> write(int32_t process, std::span<const std::byte> bytes) override {
    return moved(::send(socket(process), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  Result<size_t> read(int32_t process, std::span<std::byte> bytes) override {
    const ssize_t count = ::recv(socket(process), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count == 0) return over_limit("it closed the connection");
    return moved(count);
  }

  Status check_alive(int32_t) override { return {}; }

  // The connection stays, so that the number of its socket is not used again while others sleep.
  void drop(int32_t process) override { shutdown(socket(process), SHUT_RDWR); }

  void sleep(const std::vector<bool>& wants_to_write, double seconds) override {
    std::vector<pollfd> files = {{bell_.get(), POLLIN, 0}};
    for (size_t i = 0; i < sockets_.size(); ++i)
      if (sockets_[i].is_open() && !has_ended(sockets_[i].get())) {
        const int events = wants_to_write[i] ? POLLIN | POLLOUT : POLLIN;
        files.push_back({sockets_[i].get(), static_cast<short>(events), 0});
      }
    poll(files.data(), files.size(), static_cast<int>(seconds * 1000));
    uint64_t rung = 0;
    (void)!::read(bell_.get(), &rung, sizeof rung);
  }

  void ring() override {
    const uint64_t one = 1;
    (void)!::write(bell_.get(), &one, sizeof one);
  }

  std::string name(int32_t process) const override {
    return to_string(addresses_[static_cast<size_t>(process)]);
  }
  bool can_be_damaged() const override { return true; }

 private:
  int socket(int32_t process) const { return sockets_[static_cast<size_t>(process)].get(); }

  static bool has_ended(int socket) {
    pollfd file = {socket, 0, 0};
    return poll(&file, 1, 0) > 0 && (file.revents & POLLHUP) != 0;
  }

  static Result<size_t> moved(ssize_t count) {
    if (count >= 0) return static_cast<size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return size_t{0};
    return over_limit("{}", std::strerror(errno));
  }

  const std::vector<FileDescriptor> sockets_;  // by process
  const std::vector<HostPort> addresses_;
  const FileDescriptor bell_;
};

Result<FileDescriptor> listen_at(const addrinfo& info) {
  FileDescriptor file(socket(info.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (!file.is_open() || setsockopt(file.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(file.get(), info.ai_addr, info.ai_addrlen) != 0 || listen(file.get(), 128) != 0)
    return over_limit("{}", std::strerror(errno));
  return file;
}

uint16_t port_of(const FileDescriptor& file) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(file.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

// Where a connection comes from.
HostPort peer_of(const FileDescriptor& file) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  if (getpeername(file.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {"unknown", 0};
  return {host, static_cast<uint16_t>(parse_int(port).value())};
}

Status check(const TcpGroup& group) {
  HONE_TRY(check(group.group));
  if (group.addresses.size() != group.group.devices.size())
    return bad_input("{} addresses for {} processes", group.addresses.size(),
                     group.group.devices.size());
  if (group.secret.size() < TcpGroup::kLeastSecret)
    return bad_input("the secret has {} bytes; it needs {} or more", group.secret.size(),
                     TcpGroup::kLeastSecret)
        .with_hint("head -c 32 /dev/urandom > FILE");
  return {};
}

}  // namespace

std::string to_string(const HostPort& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", address.host, address.port)
               : fmt::format("{}:{}", address.host, address.port);
}

Result<HostPort> parse_host_port(std::string_view text) {
  const size_t colon = text.rfind(':');
  const auto bad = [&] {
    return bad_input("'{}' is not a host and a port", excerpt(text))
        .with_hint("10.0.0.2:5000, [::1]:5000");
  };
  if (colon == std::string_view::npos || colon == 0) return bad();
  std::string_view host = text.substr(0, colon);
  const bool is_v6 = host.front() == '[';
  if (is_v6 && (host.size() < 3 || host.back() != ']')) return bad();
  if (is_v6) host = host.substr(1, host.size() - 2);
  if (!is_v6 && host.find(':') != std::string_view::npos) return bad();
  const std::string_view number = text.substr(colon + 1);
  const Result<int64_t> port = parse_int_in("the port", number, 1, 65535);
  if (!port.ok()) return Error(port.error()).as(ErrorCode::bad_input);
  return HostPort{std::string(host), static_cast<uint16_t>(*port)};
}

Result<TcpListener> TcpListener::open(const HostPort& address) {
  const std::vector<SocketAddress> found = HONE_TRY(resolve(address));
  Error last = over_limit("it has no address");
  for (const SocketAddress& each : found) {
    addrinfo info = {};
    info.ai_family = each.family;
    info.ai_addr = const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(each.bytes.data()));
    info.ai_addrlen = static_cast<socklen_t>(each.bytes.size());
    Result<FileDescriptor> file = listen_at(info);
    if (file.ok()) {
      const uint16_t port = port_of(*file);
      return TcpListener(std::move(file).value(), port);
    }
    last = file.error();
  }
  return std::move(last).about(fmt::format("cannot listen at {}", to_string(address)));
}

Result<std::unique_ptr<Transport>> join_tcp(const TcpListener& listener, const TcpGroup& group,
                                            const StreamOptions& options) {
  HONE_TRY(check(group));
  FileDescriptor bell(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!bell.is_open()) return over_limit("cannot make an eventfd: {}", std::strerror(errno));
  std::vector<FileDescriptor> sockets =
      HONE_TRY(connect_all(listener, group, options.join_seconds, options.cancel));
  std::vector<HostPort> addresses = group.addresses;
  for (size_t i = 0; i < sockets.size(); ++i) {
    const FileDescriptor& each = sockets[i];
    if (!each.is_open()) continue;
    if (addresses[i].host.empty()) addresses[i] = peer_of(each);
    const int on = 1, limit = static_cast<int>(options.silence_seconds * 1000);
    setsockopt(each.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(each.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit);
  }
  return make_stream_transport(
      std::make_unique<TcpWires>(std::move(sockets), std::move(addresses), std::move(bell)),
      group.group, options);
}

}  // namespace hone
