#include "transport/threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/base/says_testing.h"

namespace hone::HONE_FILE {
namespace {

using tested::refuses;
using tested::says;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
std::span<std::byte> room_of(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

TEST(ThreadTransport, MatchesEachChannelInOrder) {
  const auto transport = *make_thread_transport(2);
  const Ticket a = *transport->send({0, 1, 5}, bytes_of("aa"), "s");
  const Ticket b = *transport->send({0, 1, 6}, bytes_of("bb"), "s");
  const Ticket c = *transport->send({0, 1, 5}, bytes_of("cc"), "s");
  EXPECT_FALSE(*transport->test(a));
  std::string first(2, ' '), second(2, ' '), other(2, ' ');
  const Ticket d = *transport->receive({0, 1, 6}, room_of(other), "r");
  const Ticket e = *transport->receive({0, 1, 5}, room_of(first), "r");
  const Ticket f = *transport->receive({0, 1, 5}, room_of(second), "r");
  for (const Ticket ticket : {a, b, c, d, e, f}) EXPECT_TRUE(transport->wait(ticket).ok());
  EXPECT_EQ(first + second + other, "aaccbb");
}

TEST(ThreadTransport, WaitsForTheOtherThread) {
  const auto transport = *make_thread_transport(2, {.spin = std::chrono::microseconds(20)});
  std::thread sender([&] {
    for (int i = 0; i < 2000; ++i) {
      const std::string text = fmt::format("{:05}", i);
      EXPECT_TRUE(transport->wait(*transport->send({0, 1, 0}, bytes_of(text), "s")).ok());
    }
  });
  for (int i = 0; i < 2000; ++i) {
    std::string text(5, ' ');
    EXPECT_TRUE(transport->wait(*transport->receive({0, 1, 0}, room_of(text), "r")).ok());
    EXPECT_EQ(text, fmt::format("{:05}", i));
  }
  sender.join();
}

TEST(ThreadTransport, RefusesOtherSizesOnBothSides) {
  const auto transport = *make_thread_transport(2);
  std::string room(3, ' ');
  const Ticket a = *transport->send({0, 1, 0}, bytes_of("aa"), "mine");
  const Ticket b = *transport->receive({0, 1, 0}, room_of(room), "yours");
  const auto both = "'mine' on device 0 sends 2 bytes ... 'yours' on device 1 receives 3 bytes";
  EXPECT_THAT(transport->wait(a), refuses(ErrorCode::bad_input, both));
  EXPECT_THAT(transport->wait(b), refuses(ErrorCode::bad_input, both));
  EXPECT_THAT(transport->send({0, 1, 0}, bytes_of("aa"), "later"), says("'later' ... 'mine'"));
}

TEST(ThreadTransport, EndsAllWhenItIsCancelled) {
  const auto transport = *make_thread_transport(3);
  std::string room(3, ' ');
  const Ticket ticket = *transport->receive({0, 1, 0}, room_of(room), "all_reduce %x");
  std::thread waiter([&] {
    EXPECT_THAT(transport->wait(ticket),
                refuses(ErrorCode::limit,
                        "'all_reduce %x' on device 1 receives 3 bytes from device 0 ... asleep"));
  });
  transport->cancel(over_limit("device 2 fell asleep"));
  transport->cancel(over_limit("too late"));
  waiter.join();
}

TEST(ThreadTransport, RefusesDevicesThatAreNotThere) {
  const auto transport = *make_thread_transport(2);
  EXPECT_THAT(transport->send({0, 2, 0}, {}, "c"), refuses(ErrorCode::bad_input, "device 2"));
  EXPECT_THAT(transport->send({-1, 0, 0}, {}, "c"), says("device -1"));
  EXPECT_THAT(transport->send({1, 1, 0}, {}, "c"), says("device 1 to itself"));
  EXPECT_THAT(make_thread_transport(0), says("0 devices"));
  EXPECT_EQ(transport->peers().size(), 1U);
}

}  // namespace
}  // namespace hone::HONE_FILE
