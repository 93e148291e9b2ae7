#include "transport/tcp_join.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <optional>

#include "base/hash.h"
#include "transport/proof.h"

namespace hone {

Result<std::vector<SocketAddress>> resolve(const HostPort& address) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const std::string port = std::to_string(address.port);
  if (const int fault = getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &first);
      fault != 0)
    return bad_input("host '{}' has no address: {}", address.host, gai_strerror(fault));
  std::vector<SocketAddress> found;
  for (const addrinfo* each = first; each != nullptr; each = each->ai_next) {
    const auto* bytes = reinterpret_cast<const std::byte*>(each->ai_addr);
    found.push_back({each->ai_family, {bytes, bytes + each->ai_addrlen}});
  }
  freeaddrinfo(first);
  return found;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kVersion = 1;                 // of hello, frames and what they mean
constexpr std::chrono::seconds kPatience(3);     // with a connection that says nothing
constexpr std::chrono::milliseconds kRetry(50);  // of a peer that does not listen yet
constexpr size_t kMaxStrangers = 64;             // connections that have proved nothing yet

// Both ends begin with it. The numbers are little-endian.
struct Hello {
  char magic[8] = {'h', 'o', 'n', 'e', '-', 't', 'c', 'p'};
  uint32_t version = kVersion;
  int32_t process = 0;   // that speaks
  int32_t listener = 0;  // that it takes the other one for, if it has connected
  uint32_t processes = 0;
  uint64_t group = 0;  // its hash
  uint64_t run = 0;
  Digest challenge = {};
};
static_assert(sizeof(Hello) == 72 && std::is_trivially_copyable_v<Hello>);

using Proof = Digest;

// A connection until both ends have proved themselves.
struct Pending {
  FileDescriptor file;
  bool connected = false;  // by this process; else it was accepted
  int32_t process = -1;    // the peer
  bool is_open = false;    // connect() has succeeded
  Hello own;
  Hello theirs;
  bool has_hello = false;
  bool has_proof = false;
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  Clock::time_point end;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

class Joining {
 public:
  Joining(const TcpListener& listener, const TcpGroup& group, double seconds,
          const CancelToken* cancel)
      : listener_(listener),
        group_(group),
        cancel_(cancel),
        end_(Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))),
        sockets_(group.addresses.size()),
        retry_(group.addresses.size(), Clock::now()) {}

  Result<std::vector<FileDescriptor>> run() {
    for (int32_t i = 0; i < own(); ++i) addresses_.push_back(HONE_TRY(resolve(address(i))));
    while (const std::optional<int32_t> missing = first_missing()) {
      if (Clock::now() > end_) return too_late(*missing);
      if (cancel_ != nullptr) HONE_TRY(cancel_->check());
      HONE_TRY(connect_missing());
      wait();
      accept_new();
      HONE_TRY(attend_all());
    }
    return std::move(sockets_);
  }

 private:
  int32_t own() const { return group_.group.process; }
  const HostPort& address(int32_t process) const {
    return group_.addresses[static_cast<size_t>(process)];
  }
  bool is_joined(int32_t process) const {
    return process == own() || sockets_[static_cast<size_t>(process)].is_open();
  }

  // A connection that was accepted has the place.
  bool is_taken(int32_t process) const {
    return is_joined(process) || std::ranges::any_of(pending_, [&](const Pending& each) {
             return !each.connected && each.has_proof && each.process == process;
           });
  }

  std::optional<int32_t> first_missing() const {
    for (int32_t i = 0; i < group_.group.processes(); ++i)
      if (!is_joined(i)) return i;
    return std::nullopt;
  }

  Error too_late(int32_t missing) const {
    return over_limit("process {} ({}) did not join in time{}", missing,
                      to_string(address(missing)),
                      last_refusal_.empty() ? "" : fmt::format("; {}", last_refusal_));
  }

  // ---- Connections

  Result<Hello> hello(int32_t listener) const {
    Hello hello;
    hello.process = own();
    hello.listener = listener;
    hello.processes = static_cast<uint32_t>(group_.group.processes());
    hello.group = group_.group.hash();
    hello.run = group_.run;
    hello.challenge = HONE_TRY(random_digest());
    return hello;
  }

  Status connect_missing() {
    for (int32_t i = 0; i < own(); ++i) {
      const bool is_trying = std::ranges::any_of(
          pending_, [&](const Pending& each) { return each.connected && each.process == i; });
      if (is_joined(i) || is_trying || Clock::now() < retry_[static_cast<size_t>(i)]) continue;
      retry_[static_cast<size_t>(i)] = Clock::now() + kRetry;
      // The addresses of a host take turns.
      std::vector<SocketAddress>& addresses = addresses_[static_cast<size_t>(i)];
      std::ranges::rotate(addresses, addresses.begin() + 1);
      Pending pending;
      pending.file = FileDescriptor(
          socket(addresses.back().family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!pending.file.is_open()) return over_limit("no more sockets: {}", std::strerror(errno));
      const auto* at = reinterpret_cast<const sockaddr*>(addresses.back().bytes.data());
      if (connect(pending.file.get(), at, static_cast<socklen_t>(addresses.back().bytes.size())) !=
              0 &&
          errno != EINPROGRESS)
        continue;
      pending.connected = true;
      pending.process = i;
      pending.end = Clock::now() + kPatience;
      pending.own = HONE_TRY(hello(i));
      say(pending, bytes_of(pending.own));
      pending_.push_back(std::move(pending));
    }
    return {};
  }

  void accept_new() {
    while (true) {
      FileDescriptor file(
          accept4(listener_.file().get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!file.is_open()) return;
      const auto strangers =
          std::ranges::count_if(pending_, [](const Pending& each) { return !each.connected; });
      if (static_cast<size_t>(strangers) >= kMaxStrangers)  // the oldest one goes
        pending_.erase(
            std::ranges::find_if(pending_, [](const Pending& each) { return !each.connected; }));
      Pending& pending = pending_.emplace_back();
      pending.file = std::move(file);
      pending.is_open = true;
      pending.end = Clock::now() + kPatience;
    }
  }

  void wait() const {
    std::vector<pollfd> files = {{listener_.file().get(), POLLIN, 0}};
    for (const Pending& each : pending_)
      files.push_back(
          {each.file.get(), static_cast<short>(each.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    poll(files.data(), files.size(), 20);
  }

  static void say(Pending& pending, std::span<const std::byte> bytes) {
    pending.out.insert(pending.out.end(), bytes.begin(), bytes.end());
  }

  // ---- What they say

  // A connection that fails is dropped. An error is about a peer that this process itself has
  // called, and that will not do.
  Status attend_all() {
    for (size_t i = 0; i < pending_.size();) {
      Pending& pending = pending_[i];
      Result<bool> is_done = attend(pending);
      if (is_done.ok() && !*is_done && Clock::now() <= pending.end) {
        ++i;
        continue;
      }
      const int32_t process = pending.process;
      if (is_done.ok() && *is_done && !is_joined(process))
        sockets_[static_cast<size_t>(process)] = std::move(pending.file);
      const bool is_called = pending.connected;
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
      if (is_done.ok()) continue;
      const Error& error = is_done.error();
      last_refusal_ =
          fmt::format("{} was turned away: {}",
                      is_called ? to_string(address(process)) : "a connection", error.what());
      if (is_called && error.code() == ErrorCode::bad_input)
        return Error(error).about(
            fmt::format("process {} ({})", process, to_string(address(process))));
    }
    return {};
  }

  // True: both ends have proved themselves.
  Result<bool> attend(Pending& pending) {
    if (!pending.is_open) {
      pollfd file = {pending.file.get(), POLLOUT, 0};
      if (poll(&file, 1, 0) == 0) return false;
      int fault = 0;
      socklen_t size = sizeof fault;
      getsockopt(pending.file.get(), SOL_SOCKET, SO_ERROR, &fault, &size);
      if (fault != 0) return over_limit("{}", std::strerror(fault));
      pending.is_open = true;
    }
    HONE_TRY(send(pending));
    if (!pending.has_hello) {
      if (!HONE_TRY(receive(pending, sizeof(Hello)))) return false;
      std::memcpy(static_cast<void*>(&pending.theirs), pending.in.data(), sizeof(Hello));
      pending.in.clear();
      HONE_TRY(take_hello(pending));
      HONE_TRY(send(pending));
    }
    if (!pending.has_proof) {
      if (!HONE_TRY(receive(pending, sizeof(Proof)))) return false;
      Proof proof;
      std::memcpy(proof.data(), pending.in.data(), sizeof proof);
      if (!are_equal(proof, proof_of(pending, !pending.connected)))
        return bad_input("it does not know the secret of the group");
      // The answer makes it a member, so two that want the same place do not both get one.
      if (!pending.connected && is_taken(pending.process))
        return over_limit("process {} has just joined", pending.process);
      pending.has_proof = true;
      if (!pending.connected) say(pending, proof_of(pending, false));
      HONE_TRY(send(pending));
    }
    return pending.out.empty();
  }

  Status take_hello(Pending& pending) {
    const Hello& theirs = pending.theirs;
    const Hello expected;
    if (std::memcmp(theirs.magic, expected.magic, sizeof expected.magic) != 0)
      return bad_input("it does not speak for hone");
    if (theirs.version != kVersion)
      return bad_input("it has version {} of the transport, and this is version {}", theirs.version,
                       kVersion);
    const bool is_member = theirs.process >= 0 && theirs.process < group_.group.processes();
    if (theirs.processes != static_cast<uint32_t>(group_.group.processes()) ||
        theirs.group != group_.group.hash() || !is_member)
      return bad_input("it belongs to another group of devices");
    if (theirs.run != group_.run)
      return bad_input("it runs {:016x}, and this process {:016x}", theirs.run, group_.run);
    if (pending.connected ? theirs.process != pending.process
                          : theirs.process <= own() || theirs.listener != own())
      return bad_input("it is process {}, which was not expected there", theirs.process);
    if (!pending.connected && is_joined(theirs.process))
      return bad_input("process {} has joined before", theirs.process);
    pending.has_hello = true;
    pending.process = theirs.process;
    if (pending.connected) {
      say(pending, proof_of(pending, true));
    } else {
      pending.own = HONE_TRY(hello(own()));
      say(pending, bytes_of(pending.own));
    }
    return {};
  }

  // The proof of the end that connected, or of the other one, about both hellos.
  Proof proof_of(const Pending& pending, bool of_connected) const {
    const Hello& first = pending.connected ? pending.own : pending.theirs;
    const Hello& second = pending.connected ? pending.theirs : pending.own;
    std::vector<std::byte> message = {of_connected ? std::byte{'c'} : std::byte{'l'}};
    for (const Hello* each : {&first, &second}) {
      const auto bytes = bytes_of(*each);
      message.insert(message.end(), bytes.begin(), bytes.end());
    }
    return hmac_sha256(std::as_bytes(std::span(group_.secret.data(), group_.secret.size())),
                       message);
  }

  // ---- Bytes

  static Status send(Pending& pending) {
    while (!pending.out.empty()) {
      const ssize_t count = ::send(pending.file.get(), pending.out.data(), pending.out.size(),
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return {};
      if (count < 0) return over_limit("{}", std::strerror(errno));
      pending.out.erase(pending.out.begin(), pending.out.begin() + count);
    }
    return {};
  }

  // True: the bytes are in, and not one more.
  static Result<bool> receive(Pending& pending, size_t bytes) {
    while (pending.in.size() < bytes) {
      const size_t had = pending.in.size();
      pending.in.resize(bytes);
      const ssize_t count =
          recv(pending.file.get(), pending.in.data() + had, bytes - had, MSG_DONTWAIT);
      const int fault = errno;
      pending.in.resize(had + (count > 0 ? static_cast<size_t>(count) : 0));
      if (count == 0) return over_limit("it closed the connection");
      if (count > 0) continue;
      if (fault == EAGAIN || fault == EWOULDBLOCK || fault == EINTR) return false;
      return over_limit("{}", std::strerror(fault));
    }
    return true;
  }

  const TcpListener& listener_;
  const TcpGroup& group_;
  const CancelToken* const cancel_;
  const Clock::time_point end_;
  std::vector<FileDescriptor> sockets_;
  std::vector<std::vector<SocketAddress>> addresses_;  // of those that this process calls
  std::vector<Clock::time_point> retry_;
  std::deque<Pending> pending_;
  std::string last_refusal_;
};

}  // namespace

Result<std::vector<FileDescriptor>> connect_all(const TcpListener& listener, const TcpGroup& group,
                                                double seconds, const CancelToken* cancel) {
  return Joining(listener, group, seconds, cancel).run();
}

}  // namespace hone
