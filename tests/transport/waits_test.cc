#include "transport/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/transport/processes.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Other transports of this process are somebody else's.
std::vector<OpenTransfer> open_for(std::string_view command) {
  std::vector<OpenTransfer> open = open_transfers();
  std::erase_if(open, [&](const OpenTransfer& one) { return one.command != command; });
  return open;
}

TEST(Waits, AreThereUntilTheMessageComes) {
  constexpr std::string_view kCommand = "all_reduce %waits";
  const auto transport = make_thread_transport(3).value();
  const std::vector<std::byte> sent(8, std::byte{7});
  std::vector<std::byte> received(8);
  EXPECT_THAT(open_for(kCommand), IsEmpty());
  const Ticket receive = transport->receive({2, 1, 0}, received, kCommand).value();
  const std::vector<OpenTransfer> open = open_for(kCommand);
  ASSERT_EQ(open.size(), 1);
  EXPECT_EQ(open[0].device, 1);
  EXPECT_EQ(open[0].peer, 2);
  EXPECT_FALSE(open[0].sends);
  EXPECT_EQ(open[0].peer_process, "");
  EXPECT_EQ(open_for(kCommand)[0].ticket, open[0].ticket);
  const Ticket send = transport->send({2, 1, 0}, sent, kCommand).value();
  EXPECT_THAT(open_for(kCommand), IsEmpty());
  EXPECT_TRUE(transport->wait(send).ok());
  EXPECT_TRUE(transport->wait(receive).ok());
}

// A message over a slow link is on its way, though its bytes are here.
TEST(Waits, GoOnWhileALinkDelays) {
  constexpr std::string_view kCommand = "send %delayed";
  EmulatedLinks links;
  links.route = [](int32_t, int32_t) { return EmulatedRoute{{}, 3600}; };
  links.share = [](std::span<const std::span<const uint32_t>>, std::span<double>) {};
  ExchangeOptions options;
  options.links = std::make_shared<const EmulatedLinks>(links);
  const auto transport = make_thread_transport(2, options).value();
  const std::vector<std::byte> sent(8, std::byte{7});
  std::vector<std::byte> received(8);
  const Ticket send = transport->send({0, 1, 0}, sent, kCommand).value();
  const Ticket receive = transport->receive({0, 1, 0}, received, kCommand).value();
  ASSERT_EQ(open_for(kCommand).size(), 1);
  EXPECT_EQ(open_for(kCommand)[0].device, 1);
  transport->cancel(over_limit("the test is over"));
  EXPECT_THAT(open_for(kCommand), IsEmpty());
  EXPECT_TRUE(transport->wait(send).ok());
  EXPECT_FALSE(transport->wait(receive).ok());
}

TEST(Waits, NameTheProcessOfAPeer) {
  constexpr std::string_view kCommand = "receive %named";
  const auto transports = tested::join_all(2, tested::by_shared_memory({1, 1}));
  std::vector<std::byte> received(8);
  const Ticket receive = transports[0]->receive({1, 0, 0}, received, kCommand).value();
  ASSERT_EQ(open_for(kCommand).size(), 1);
  EXPECT_THAT(open_for(kCommand)[0].peer_process, HasSubstr("process"));
  const std::vector<std::byte> sent(8, std::byte{7});
  EXPECT_TRUE(transports[1]->wait(transports[1]->send({1, 0, 0}, sent, "a test").value()).ok());
  EXPECT_TRUE(transports[0]->wait(receive).ok());
}

OpenTransfer transfer(uint64_t ticket, int32_t device, int32_t peer) {
  OpenTransfer one;
  one.ticket = ticket;
  one.device = device;
  one.peer = peer;
  one.command = "all_reduce %s";
  return one;
}

TEST(LongWaits, AreToldWhenTheyAreLongAndWhenTheyDouble) {
  LongWaits waits(2);
  const std::vector<OpenTransfer> open = {transfer(1, 0, 1)};
  EXPECT_THAT(waits.look(10, open), IsEmpty());
  EXPECT_THAT(waits.look(11.9, open), IsEmpty());
  EXPECT_THAT(waits.look(12, open),
              ElementsAre("device 0 has waited for device 1 for 2.00 s: all_reduce %s"));
  EXPECT_THAT(waits.look(13, open), IsEmpty());
  EXPECT_THAT(waits.look(14, open),
              ElementsAre("device 0 has waited for device 1 for 4.00 s: all_reduce %s"));
  EXPECT_THAT(waits.look(17, open), IsEmpty());
  // Another transfer begins anew.
  EXPECT_THAT(waits.look(18, {transfer(2, 0, 1)}), IsEmpty());
  EXPECT_THAT(waits.look(19, {transfer(2, 0, 1)}), IsEmpty());
}

TEST(LongWaits, OfTheSameCommandAreOne) {
  LongWaits waits(1);
  OpenTransfer far = transfer(3, 1, 2);
  far.peer_process = "process 4711";
  const std::vector<OpenTransfer> open = {transfer(1, 0, 1), transfer(2, 0, 1), far};
  EXPECT_THAT(waits.look(0, open), IsEmpty());
  EXPECT_THAT(
      waits.look(1, open),
      ElementsAre("device 0 has waited for device 1 for 1.00 s: all_reduce %s",
                  "device 1 has waited for device 2 of process 4711 for 1.00 s: all_reduce %s"));
}

}  // namespace
}  // namespace hone::HONE_FILE
