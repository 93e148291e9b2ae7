#include "transport/tcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>

#include "base/rng.h"
#include "tests/base/says_testing.h"
#include "tests/transport/hostile_peer.h"
#include "tests/transport/processes.h"
#include "transport/tcp_join.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

TEST(HostPort, IsReadAsItIsWritten) {
  for (const char* text : {"10.0.0.2:5000", "localhost:1", "[::1]:65535"})
    EXPECT_EQ(to_string(*parse_host_port(text)), text);
  EXPECT_EQ(parse_host_port("[::1]:5")->host, "::1");
}

TEST(HostPort, RefusesWhatIsNone) {
  for (const char* text :
       {"", ":5", "host", "host:", "host:0", "host:65536", "host:x", "::1:5", "[::1:5", "[]:5"})
    EXPECT_THAT(parse_host_port(text), refuses(ErrorCode::bad_input, "port")) << text;
}

// Two processes that differ in what `change` does to the second one.
std::pair<std::string, std::string> join_both(const std::function<void(TcpGroup&)>& change) {
  std::vector<TcpListener> listeners;
  TcpGroup group = {.group = {0, {1, 1}}, .addresses = {}, .secret = tested::kSecret};
  for (int i = 0; i < 2; ++i) {
    listeners.push_back(*TcpListener::open());
    group.addresses.push_back({"127.0.0.1", listeners.back().port()});
  }
  const StreamOptions options = {.join_seconds = 0.3};
  const auto text = [](const auto& joined) {
    return joined.ok() ? std::string() : joined.error().to_string();
  };
  std::string first;
  std::thread thread(
      [&, group] { first = text(join_tcp(std::move(listeners[0]), group, options)); });
  group.group.process = 1;
  change(group);
  const std::string second = text(join_tcp(std::move(listeners[1]), group, options));
  thread.join();
  return {first, second};
}

TEST(Tcp, RefusesPeersThatDiffer) {
  auto [first, second] =
      join_both([](TcpGroup& group) { group.secret = "another secret, a wrong one"; });
  EXPECT_THAT(first, says("process 1 (127.0.0.1 ... did not join in time ... the secret"));
  EXPECT_THAT(second, says("process 0 (127.0.0.1 ... did not join"));
  std::tie(first, second) = join_both([](TcpGroup& group) { group.run = 0xabc; });
  EXPECT_THAT(first, says("0000000000000abc"));
  std::tie(first, second) = join_both([](TcpGroup& group) { group.group.devices = {1, 2}; });
  EXPECT_THAT(first, says("another group"));
  std::tie(first, second) = join_both([](TcpGroup& group) { group.secret = "short"; });
  EXPECT_THAT(second, says("5 bytes ... 16"));
  std::tie(first, second) = join_both([](TcpGroup& group) { group.addresses.pop_back(); });
  EXPECT_THAT(second, says("1 addresses for 2 processes"));
  std::tie(first, second) = join_both([](TcpGroup&) {});
  EXPECT_EQ(first + second, "");
}

TEST(Tcp, NamesAHostThatHasNoAddress) {
  EXPECT_THAT(TcpListener::open({"no.such.host.invalid", 0}), says("'no.such.host.invalid'"));
}

FileDescriptor call(uint16_t port) {
  FileDescriptor file(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  (void)connect(file.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  return file;
}

// Strangers that say nothing, or nonsense, neither crash nor delay a group.
TEST(Tcp, IgnoresStrangers) {
  std::vector<TcpListener> listeners;
  TcpGroup group = {.group = {0, {1, 1}}, .addresses = {}, .secret = tested::kSecret};
  for (int i = 0; i < 2; ++i) {
    listeners.push_back(*TcpListener::open());
    group.addresses.push_back({"127.0.0.1", listeners.back().port()});
  }
  const uint16_t port = listeners[0].port();
  Rng rng(21);
  std::vector<FileDescriptor> strangers;
  const auto call_often = [&](int count) {
    for (int i = 0; i < count; ++i) {
      strangers.push_back(call(port));
      std::string text(rng.below(200), ' ');
      for (char& c : text) c = static_cast<char>(rng.below(256));
      if (rng.chance(0.3)) text = "hone-tcp" + text;
      if (rng.chance(0.7))
        (void)!send(strangers.back().get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (rng.chance(0.3)) strangers.pop_back();
    }
  };
  call_often(60);
  const auto begin = std::chrono::steady_clock::now();
  std::thread first([&, group] {
    EXPECT_TRUE(join_tcp(std::move(listeners[0]), group, {.join_seconds = 20}).ok());
  });
  call_often(60);
  group.group.process = 1;
  EXPECT_TRUE(join_tcp(std::move(listeners[1]), group, {.join_seconds = 20}).ok());
  first.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
}

// A peer that has proved itself, and then sends what it likes.
TEST(Tcp, SurvivesAHostilePeer) {
  Rng rng(22);
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::byte> bytes(rng.below(rng.chance(0.5) ? 40 : 2000));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    tested::meet_hostile_peer(tested::hostile_stream(bytes, i % 8 != 0));
  }
}

// Offers of device 2 by the same number, each for a receive of its own.
TEST(Tcp, RefusesAnOfferThatIsMadeTwice) {
  constexpr uint8_t kOffers[] = {1, 3, 1, 0, 0, 1, 0, 0, 1, 3, 1, 1, 0, 1, 0, 0};
  const std::unique_ptr<Transport> transport =
      make_stream_transport(std::make_unique<tested::HostileWires>(
                                tested::hostile_stream(std::as_bytes(std::span(kOffers)), true)),
                            {0, {1, 2}}, {});
  std::vector<std::byte> room(200'000);
  const Result<Ticket> first =
      transport->receive({2, 0, 0}, std::span(room).first(100'000), "receives one");
  const Result<Ticket> second =
      transport->receive({2, 0, 1}, std::span(room).subspan(100'000), "receives another one");
  for (const Result<Ticket>& ticket : {first, second}) {
    const Status status = ticket.ok() ? transport->wait(*ticket) : Status(ticket.error());
    EXPECT_THAT(status, refuses(ErrorCode::limit, "offer 1 again"));
  }
}

// The same over a socket: it is told why the run has ended, and the others are, too.
TEST(Tcp, ReportsNonsense) {
  std::vector<TcpListener> listeners;
  TcpGroup group = {.group = {0, {1, 1}}, .addresses = {}, .secret = tested::kSecret};
  for (int i = 0; i < 2; ++i) {
    listeners.push_back(*TcpListener::open());
    group.addresses.push_back({"127.0.0.1", listeners.back().port()});
  }
  std::thread hostile([&, own = group]() mutable {
    own.group.process = 1;
    const auto sockets = connect_all(listeners[1], own, 20);
    ASSERT_TRUE(sockets.ok());
    const std::string text(1000, 'x');
    (void)!send((*sockets)[0].get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::string told(2000, ' ');
    size_t got = 0;
    while (got < 100) {
      const ssize_t count = recv((*sockets)[0].get(), told.data() + got, told.size() - got, 0);
      if (count <= 0) break;
      got += static_cast<size_t>(count);
    }
  });
  const auto transport = join_tcp(std::move(listeners[0]), group);
  ASSERT_TRUE(transport.ok());
  std::vector<std::byte> room(4);
  const Result<Ticket> ticket = (*transport)->receive({1, 0, 0}, room, "all_reduce %x");
  EXPECT_THAT(ticket.ok() ? (*transport)->wait(*ticket) : Status(ticket.error()),
              refuses(ErrorCode::limit,
                      "'all_reduce %x' on device 0 ... 127.0.0.1 ... 78787878 ... no frame"));
  hostile.join();
}

}  // namespace
}  // namespace hone::HONE_FILE
