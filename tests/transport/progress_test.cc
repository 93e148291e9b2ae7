#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>

#include "tests/transport/processes.h"
#include "transport/threads.h"

// A message that both ends have begun moves while its devices compute: nobody calls the transport.

namespace hone::HONE_FILE {
namespace {

constexpr size_t kBytes = 1 << 20;  // more than is sent at once without a receive

// Device 0 computes until device 1 has got the message.
void check_moves(Transport& from, Transport& to) {
  std::latch has_come(1);
  const std::vector<std::byte> sent(kBytes, std::byte{0x3c});
  std::thread sender([&] {
    const Ticket ticket = from.send({0, 1, 0}, sent, "a test").value();
    has_come.wait();
    EXPECT_TRUE(from.wait(ticket).ok());
  });
  std::vector<std::byte> received(kBytes);
  const Ticket ticket = to.receive({0, 1, 0}, received, "a test").value();
  const Status came = to.wait(ticket);
  has_come.count_down();
  sender.join();
  EXPECT_TRUE(came.ok()) << came.error().to_string();
  EXPECT_EQ(received, sent);
}

TEST(Progress, MessagesMoveWhileTheSenderComputes) {
  const auto threads = make_thread_transport(2).value();
  check_moves(*threads, *threads);
  for (const tested::JoinGroup& join : {tested::by_shared_memory({1, 1}), tested::by_tcp({1, 1})}) {
    const auto transports = tested::join_all(2, join);
    check_moves(*transports[0], *transports[1]);
  }
}

// Over a link of 20 ms a message is there when both have computed for 60 ms.
TEST(Progress, EmulatedLinksGoOnWhileBothCompute) {
  EmulatedLinks links;
  links.route = [](int32_t, int32_t) { return EmulatedRoute{{}, 0.02}; };
  links.share = [](std::span<const std::span<const uint32_t>>, std::span<double>) {};
  ExchangeOptions options;
  options.links = std::make_shared<const EmulatedLinks>(links);
  const auto transport = make_thread_transport(2, options).value();
  const std::vector<std::byte> sent(kBytes, std::byte{0x3c});
  std::vector<std::byte> received(kBytes);
  const Ticket send = transport->send({0, 1, 0}, sent, "a test").value();
  const Ticket receive = transport->receive({0, 1, 0}, received, "a test").value();
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  EXPECT_TRUE(transport->test(receive).value());
  EXPECT_TRUE(transport->wait(send).ok());
  EXPECT_EQ(received, sent);
}

}  // namespace
}  // namespace hone::HONE_FILE
