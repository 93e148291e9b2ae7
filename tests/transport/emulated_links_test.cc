#include "transport/emulated_links.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "base/rng.h"
#include "target/presets.h"
#include "tests/target/target_testing.h"
#include "tests/transport/collective_cases.h"
#include "tests/transport/processes.h"
#include "transport/run_steps.h"
#include "transport/threads.h"
#include "transport/virtual_network.h"

namespace hone::HONE_FILE {
namespace {

// All devices share link 0, of 1,000 bytes a second. Messages to and from device 9 share link 1,
// too, of 500 bytes a second. Each flow has the least of its equal parts.
EmulatedLinks links(double latency) {
  return {.route =
              [=](int32_t from, int32_t to) {
                return EmulatedRoute{
                    from == 9 || to == 9 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{0},
                    latency};
              },
          .share =
              [](std::span<const std::span<const uint32_t>> flows, std::span<double> rates) {
                double on[] = {0, 0};
                for (const auto& flow : flows)
                  for (const uint32_t link : flow) ++on[link];
                for (size_t i = 0; i < flows.size(); ++i) {
                  rates[i] = 1000 / on[0];
                  if (flows[i].size() > 1) rates[i] = std::min(rates[i], 500 / on[1]);
                }
              }};
}

TEST(FlowTable, LetsOneMessageHaveTheLink) {
  FlowTable table(links(0.25));
  const uint64_t a = table.start(1, 0, 1, 500);
  EXPECT_DOUBLE_EQ(table.visible_at(a), 1.75);
  table.forget(a);
  EXPECT_DOUBLE_EQ(table.visible_at(table.start(10, 0, 1, 0)), 10.25);
}

TEST(FlowTable, SharesTheLinkWhileTwoAreOnTheirWay) {
  FlowTable table(links(0));
  const uint64_t a = table.start(0, 0, 1, 1000);
  EXPECT_DOUBLE_EQ(table.visible_at(a), 1);
  const uint64_t b = table.start(0.5, 2, 3, 250);
  // Both have 500 a second: b drains at 1.0, when a has 250 left.
  EXPECT_DOUBLE_EQ(table.visible_at(b), 1);
  EXPECT_DOUBLE_EQ(table.visible_at(a), 1.25);
  table.forget(b);
  const uint64_t c = table.start(1.25, 2, 3, 1000);
  EXPECT_DOUBLE_EQ(table.visible_at(a), 1.25);
  EXPECT_DOUBLE_EQ(table.visible_at(c), 2.25);
}

// Steps of a microsecond, in which each flow moves by its rate.
TEST(FlowTable, AgreesWithASimulationInSmallSteps) {
  Rng rng(31);
  for (int turn = 0; turn < 20; ++turn) {
    const EmulatedLinks emulated = links(0);
    FlowTable table(emulated);
    constexpr int kCount = 6;
    constexpr double kStep = 1e-4;
    std::vector<double> starts(kCount), left(kCount), ends(kCount, 0);
    std::vector<int32_t> to(kCount);
    std::vector<uint64_t> flows(kCount);
    for (int i = 0; i < kCount; ++i) {
      const auto k = static_cast<size_t>(i);
      starts[k] = std::round(rng.uniform(0, 1) / kStep) * kStep;
      left[k] = std::floor(rng.uniform(1, 500));
      to[k] = rng.chance(0.5) ? 9 : 1;
    }
    std::ranges::sort(starts);
    for (size_t i = 0; i < kCount; ++i)
      flows[i] = table.start(starts[i], 0, to[i], static_cast<int64_t>(left[i]));
    std::vector<std::vector<uint32_t>> routes;
    for (const int32_t each : to) routes.push_back(emulated.route(0, each).links);
    for (int64_t step = 0; std::ranges::find(ends, 0) != ends.end(); ++step) {
      const double now = static_cast<double>(step) * kStep;
      std::vector<std::span<const uint32_t>> open;
      std::vector<size_t> numbers;
      for (size_t i = 0; i < kCount; ++i)
        if (starts[i] <= now + kStep / 2 && ends[i] == 0)
          open.emplace_back(routes[i]), numbers.push_back(i);
      std::vector<double> rates(open.size());
      emulated.share(open, rates);
      for (size_t i = 0; i < open.size(); ++i) {
        left[numbers[i]] -= rates[i] * kStep;
        if (left[numbers[i]] <= 0) ends[numbers[i]] = now + kStep;
      }
    }
    for (size_t i = 0; i < kCount; ++i)
      EXPECT_NEAR(table.visible_at(flows[i]), ends[i], 20 * kStep) << "flow " << i;
  }
}

// A copy of a table has room of its own to compute in.
TEST(FlowTable, TakesTheLinksOfASystem) {
  System ring = preset_system("ring:4", parse_target(kSampleTarget, "t").value()).value();
  ring.links[0].bytes_per_second = 1000;
  ring.links[0].latency = 0.25;
  for (const bool shared : {true, false}) {
    ring.links[0].shared = shared;
    const EmulatedLinks emulated = emulated_links(Topology(ring));
    FlowTable first(emulated), table(emulated);
    first.start(0, 0, 1, 10);
    // Both cross the link from 1 to 2.
    const uint64_t a = table.start(0, 0, 2, 500);
    const uint64_t b = table.start(0, 1, 2, 1000);
    EXPECT_DOUBLE_EQ(table.visible_at(a), shared ? 1.5 : 1.0);
    EXPECT_DOUBLE_EQ(table.visible_at(b), shared ? 1.75 : 1.25);
    EXPECT_DOUBLE_EQ(table.visible_at(table.start(2, 3, 3, 7)), 2);
  }
}

// ---- Over transports ---------------------------------------------------------------------------

struct Timed {
  std::vector<tested::Bytes> outputs;
  double seconds = 0;
};

Timed run_timed(const tested::CollectiveCase& drawn, const std::shared_ptr<EmulatedLinks>& links) {
  const auto transport = *make_thread_transport(9, {.links = links});
  const auto begin = std::chrono::steady_clock::now();
  Timed timed;
  timed.outputs = tested::run_case(drawn, [&](int32_t) -> Transport& { return *transport; });
  timed.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return timed;
}

double virtual_seconds(const tested::CollectiveCase& drawn, const EmulatedLinks& links) {
  const std::vector<DeviceProgram> programs = *step_programs(drawn.collective, drawn.schedule);
  const auto size = static_cast<size_t>(bits(drawn.dtype) / 8);
  std::vector<tested::Bytes> outputs, scratch;
  std::vector<StepMemory> memory;
  for (const DeviceProgram& each : programs) {
    outputs.emplace_back(static_cast<size_t>(each.output) * size);
    scratch.emplace_back(static_cast<size_t>(each.scratch) * size);
  }
  for (size_t k = 0; k < programs.size(); ++k)
    memory.push_back({drawn.dtype, drawn.inputs[k], outputs[k], scratch[k]});
  VirtualNetwork network(9, {.links = links});
  const Status status = run_virtually(programs, network, memory);
  EXPECT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(tested::judge(drawn, outputs), "");
  return network.now();
}

// The bytes of all messages, which one link carries.
double sent_bytes(const tested::CollectiveCase& drawn) {
  double bytes = 0;
  const std::vector<DeviceProgram> programs = *step_programs(drawn.collective, drawn.schedule);
  for (const DeviceProgram& each : programs)
    for (const DeviceStep& step : each.steps)
      if (step.kind == StepKind::send)
        bytes += static_cast<double>(step.from.count * bits(drawn.dtype) / 8);
  return bytes;
}

// The same bits as without, and the link carries all bytes at its speed, as it does on the virtual
// clock.
TEST(EmulatedLinks, DeliverNothingEarly) {
  Rng rng(32);
  for (int i = 0; i < 25; ++i) {
    const tested::CollectiveCase drawn = tested::draw_case(rng, 5);
    auto slow = std::make_shared<EmulatedLinks>(links(1e-4));
    slow->share = [](auto flows, std::span<double> rates) {
      for (double& rate : rates) rate = 1e5 / static_cast<double>(flows.size());
    };
    const Timed timed = run_timed(drawn, slow);
    EXPECT_EQ(timed.outputs, run_timed(drawn, nullptr).outputs) << drawn.text();
    const double least = sent_bytes(drawn) / 1e5 * 0.999;
    EXPECT_GE(timed.seconds, least) << drawn.text();
    EXPECT_GE(virtual_seconds(drawn, *slow), least) << drawn.text();
  }
}

// The bytes have left long before they are visible, and the thread that waits for them sleeps.
TEST(EmulatedLinks, UseNoProcessorWhileTheyWait) {
  const auto emulated = std::make_shared<EmulatedLinks>(links(0.05));
  const auto transport = *make_thread_transport(6, {.links = emulated});
  std::vector<std::byte> bytes(100), room(100);
  std::vector<Ticket> tickets;
  const auto begin = std::chrono::steady_clock::now();
  timespec used_before = {}, used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used_before);
  const int slack = prctl(PR_GET_TIMERSLACK);
  const Ticket sent = *transport->send({0, 1, 0}, bytes, "s");
  const Ticket received = *transport->receive({0, 1, 0}, room, "r");
  EXPECT_TRUE(transport->wait(sent).ok());  // the bytes have left
  EXPECT_FALSE(*transport->test(received));
  EXPECT_TRUE(transport->wait(received).ok());
  EXPECT_EQ(prctl(PR_GET_TIMERSLACK), slack);  // the thread is as it was
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GE(seconds, 0.15);
  EXPECT_LT(static_cast<double>(used.tv_sec - used_before.tv_sec) +
                static_cast<double>(used.tv_nsec - used_before.tv_nsec) * 1e-9,
            0.05);
}

TEST(EmulatedLinks, EndWithTheRun) {
  const auto transport =
      *make_thread_transport(2, {.links = std::make_shared<EmulatedLinks>(links(1000))});
  std::vector<std::byte> bytes(10), room(10);
  (void)*transport->send({0, 1, 0}, bytes, "s");
  const Ticket received = *transport->receive({0, 1, 0}, room, "r");
  std::thread other([&] { transport->cancel(over_limit("enough")); });
  EXPECT_FALSE(transport->wait(received).ok());
  other.join();
}

TEST(EmulatedLinks, WorkBetweenProcesses) {
  StreamOptions options;
  options.exchange.links = std::make_shared<EmulatedLinks>(links(0.02));
  const auto transports = tested::join_all(2, tested::by_shared_memory({1, 1}, options));
  std::vector<std::byte> bytes(10, std::byte{7}), room(10);
  const auto begin = std::chrono::steady_clock::now();
  const Ticket sent = *transports[0]->send({0, 1, 0}, bytes, "s");
  const Ticket received = *transports[1]->receive({0, 1, 0}, room, "r");
  EXPECT_TRUE(transports[1]->wait(received).ok());
  EXPECT_TRUE(transports[0]->wait(sent).ok());
  EXPECT_EQ(room, bytes);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(30));
}

}  // namespace
}  // namespace hone::HONE_FILE
