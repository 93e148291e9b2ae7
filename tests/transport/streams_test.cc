#include "transport/streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "base/forked.h"
#include "tests/base/says_testing.h"
#include "tests/transport/collective_cases.h"
#include "tests/transport/message_cases.h"
#include "tests/transport/processes.h"
#include "transport/run_steps.h"
#include "transport/threads.h"

namespace hone::HONE_FILE {
namespace {

using tested::Bytes;
using tested::JoinGroup;
using tested::refuses;
using tested::says;

const std::vector<int32_t> kDevices = {2, 1, 3};  // of each process

class Streams : public testing::TestWithParam<bool> {
 protected:
  static JoinGroup group(const std::vector<int32_t>& devices, const StreamOptions& options = {}) {
    return GetParam() ? tested::by_tcp(devices, options)
                      : tested::by_shared_memory(devices, options);
  }
};
INSTANTIATE_TEST_SUITE_P(Of, Streams, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "tcp" : "shared_memory"; });

std::span<std::byte> room_of(std::string& text) {
  return std::as_writable_bytes(std::span(text.data(), text.size()));
}

// The same bits as threads give.
void expect_cases(const JoinGroup& join, uint64_t seed, int cases) {
  const auto transports = tested::join_all(kDevices.size(), join);
  const int32_t owner[] = {0, 0, 1, 2, 2, 2};
  const auto local = *make_thread_transport(6);
  Rng rng(seed);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    const tested::CollectiveCase drawn = tested::draw_case(rng, 6);
    const std::vector<Bytes> outputs = tested::run_case(drawn, [&](int32_t device) -> Transport& {
      return *transports[static_cast<size_t>(owner[device])];
    });
    EXPECT_EQ(tested::judge(drawn, outputs), "");
    EXPECT_EQ(outputs, tested::run_case(drawn, [&](int32_t) -> Transport& { return *local; }))
        << drawn.text();
  }
}

TEST_P(Streams, GiveTheBitsThatThreadsGive) { expect_cases(group(kDevices), 11, 100); }
TEST_P(Streams, DISABLED_SweepOfCases) { expect_cases(group(kDevices), 12, 3000); }

TEST_P(Streams, GiveRoomForSmallMessagesBackAndKeepTheirOrder) {
  const auto transports = tested::join_all(2, group({1, 1}));
  Rng rng(14);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(tested::order_fault(*transports[0], *transports[1], rng), "");
  EXPECT_EQ(tested::room_fault(*transports[0], *transports[1]), "");
}

// Messages of all sizes, many at once, in channels that overtake each other.
TEST_P(Streams, CarryMessagesOfAllSizes) {
  const auto transports = tested::join_all(2, group({1, 1}));
  Rng rng(13);
  std::vector<std::string> sent, got;
  for (const size_t size : {0, 1, 4096, 4097, 262144, 262145, 3000000}) {
    for (int i = 0; i < 30; ++i) sent.emplace_back(size > 5000 && i > 2 ? 3 : size, 'a' + i % 26);
  }
  rng.shuffle(sent);
  for (const std::string& each : sent) got.emplace_back(each.size(), ' ');
  std::thread sender([&] {
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < sent.size(); ++i)
      tickets.push_back(
          *transports[0]->send({0, 1, static_cast<uint32_t>(i % 3)}, room_of(sent[i]), "sends"));
    for (const Ticket ticket : tickets) EXPECT_TRUE(transports[0]->wait(ticket).ok());
  });
  std::vector<Ticket> tickets(sent.size());
  for (const size_t channel : {2, 0, 1})
    for (size_t i = channel; i < sent.size(); i += 3)
      tickets[i] = *transports[1]->receive({0, 1, static_cast<uint32_t>(channel)}, room_of(got[i]),
                                           "receives");
  for (const Ticket ticket : tickets) EXPECT_TRUE(transports[1]->wait(ticket).ok());
  sender.join();
  EXPECT_EQ(got, sent);
}

TEST_P(Streams, TellAllWhyARunHasEnded) {
  const auto transports = tested::join_all(3, group({1, 1, 1}));
  std::string room(10000, ' '), small(3, ' ');
  const Ticket waits = *transports[1]->receive({0, 1, 0}, room_of(room), "all_gather %w");
  const Ticket offers = *transports[2]->send({2, 1, 0}, room_of(room), "sends %w");
  transports[0]->cancel(over_limit("device 0 has no memory left"));
  EXPECT_THAT(
      transports[1]->wait(waits),
      refuses(ErrorCode::limit, "'all_gather %w' on device 1 ... (device 0) ... no memory left"));
  EXPECT_THAT(transports[2]->wait(offers), says("'sends %w' on device 2 ... no memory left"));
  EXPECT_THAT(transports[0]->send({0, 1, 0}, room_of(small), "later"), says("no memory left"));
}

TEST_P(Streams, RefuseOtherSizes) {
  for (const size_t size : {size_t{10}, size_t{100000}}) {
    const auto transports = tested::join_all(2, group({1, 1}));
    std::string sent(size, 'x'), room(size + 1, ' ');
    const Ticket receives = *transports[1]->receive({0, 1, 0}, room_of(room), "r");
    (void)*transports[0]->send({0, 1, 0}, room_of(sent), "s");
    EXPECT_THAT(transports[1]->wait(receives),
                refuses(ErrorCode::bad_input,
                        fmt::format("receives {} bytes ... device 0 sends {}", size + 1, size)));
  }
}

// Who ends in peace is missed only by those who still want something.
TEST_P(Streams, NoticeThatAPeerHasEnded) {
  auto transports = tested::join_all(2, group({1, 1}));
  std::string sent = "abc", room(3, ' ');
  EXPECT_TRUE(transports[0]->wait(*transports[0]->send({0, 1, 0}, room_of(sent), "s")).ok());
  transports[0].reset();
  EXPECT_TRUE(transports[1]->wait(*transports[1]->receive({0, 1, 0}, room_of(room), "r")).ok());
  EXPECT_EQ(room, "abc");
  const Result<Ticket> more = transports[1]->receive({0, 1, 0}, room_of(room), "more");
  EXPECT_THAT(more.ok() ? transports[1]->wait(*more) : Status(more.error()),
              refuses(ErrorCode::limit, "'more' ... (device 0) has ended"));
}

// ---- Processes that are killed or stopped ------------------------------------------------------

// One process of three is lost in the middle of its work. The others end, and name it.
void expect_loss(const JoinGroup& join, int signal, int32_t victim, int64_t microseconds) {
  std::vector<ForkedWork> works;
  for (int32_t process = 0; process < 3; ++process)
    works.push_back([=](const Tell& tell) {
      const JoinGroup own = join;
      const Result<std::unique_ptr<Transport>> transport = own(process);
      if (!transport.ok()) return tell(transport.error().to_string());
      if (process == victim)
        std::thread([=] {
          std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
          kill(getpid(), signal);
        }).detach();
      const Collective collective = {
          .kind = CollectiveKind::all_reduce, .devices = {0, 1, 2}, .elements = 100000};
      const std::vector<DeviceProgram> programs = *step_programs(collective, {});
      std::vector<float> memory(100000, 1.0f);
      const auto bytes = std::as_writable_bytes(std::span(memory));
      std::chrono::steady_clock::time_point last = std::chrono::steady_clock::now();
      Status status;
      while (status.ok()) {
        last = std::chrono::steady_clock::now();
        status = run_steps(programs[static_cast<size_t>(process)], **transport, DType::f32, bytes,
                           bytes, "all_reduce %grad");
      }
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - last).count();
      tell(fmt::format("{} {:.2f} {}", static_cast<int>(status.error().code()), seconds,
                       status.error().to_string()));
    });
  std::vector<std::string> told(3);
  const auto ends = run_forked(works, {.silence_seconds = signal == SIGSTOP ? 3.0 : 12.0},
                               [&](size_t i, std::string_view text) { told[i] = text; });
  ASSERT_TRUE(ends.ok());
  for (size_t i = 0; i < 3; ++i) {
    if (static_cast<int32_t>(i) == victim) continue;
    EXPECT_TRUE((*ends)[i].is_done()) << "signal " << (*ends)[i].signal;
    EXPECT_THAT(told[i],
                says(fmt::format("5 ... 'all_reduce %grad' on device {} ... (device {}) was lost",
                                 i, victim)));
    const std::vector<std::string_view> words = split_words(told[i]);
    ASSERT_GE(words.size(), 2U);
    EXPECT_LT(*parse_double(words[1]), 5) << told[i];
  }
}

void expect_losses(const std::function<JoinGroup()>& join, uint64_t seed, int count) {
  Rng rng(seed);
  for (int i = 0; i < count && !testing::Test::HasFailure(); ++i)
    expect_loss(join(), SIGKILL, static_cast<int32_t>(rng.below(3)), rng.between(0, 30000));
}

TEST_P(Streams, EndAllWhenAProcessIsKilled) {
  expect_losses([] { return group({1, 1, 1}); }, 14, 5);
}
TEST_P(Streams, DISABLED_SweepOfKills) {
  expect_losses([] { return group({1, 1, 1}); }, 15, 150);
}

// It still has its sockets and its memory, but says nothing.
TEST_P(Streams, EndAllWhenAProcessIsStopped) {
  expect_loss(group({1, 1, 1}, {.beat_seconds = 0.1, .silence_seconds = 1}), SIGSTOP, 1, 3000);
}

}  // namespace
}  // namespace hone::HONE_FILE
