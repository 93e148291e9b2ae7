#include "program/device_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/planner.h"
#include "program/device_memory.h"
#include "program/devices.h"
#include "program/run.h"
#include "program/tasks.h"
#include "target/presets.h"
#include "tests/base/says_testing.h"
#include "tests/program/lower_testing.h"
#include "tests/program/message_programs.h"
#include "tests/program/spmd_testing.h"

// Programs of devices that are not all the same: messages, and what is proved of them before a run.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::refuses;
using tested::run_by_threads;
using tested::RunDevice;
using tested::says;

// ---- Text ---------------------------------------------------------------------------------------

constexpr std::string_view kRelay =
    "program @first on 0 {\n"
    "  threads 1\n"
    "  frame @main(%x: f32[4]) -> (%y: f32[4]) {\n"
    "    0 @x = send to 1 tag 0 (%x)\n"
    "    1 @y = receive from 1 tag 7 (%y) after 0\n"
    "    2 @x = wait 0 (%x) -> () after 1\n"
    "    3 @y = wait 1 () -> (%y) after 2\n"
    "  }\n"
    "}\n"
    "program @second on 1 {\n"
    "  threads 1\n"
    "  frame @main() -> () {\n"
    "    temporary %t: f32[4]\n"
    "    0 @t = receive from 0 tag 0 (%t)\n"
    "    1 @t = wait 0 () -> (%t) after 0\n"
    "    2 @t = send to 0 tag 7 (%t) after 1\n"
    "    3 @t = wait 2 (%t) -> () after 2\n"
    "  }\n"
    "}\n";

DevicePrograms parsed(std::string_view text) {
  Result<DevicePrograms> programs = parse_device_programs(text);
  EXPECT_TRUE(programs.ok()) << programs.error().to_string();
  return programs.ok() ? *std::move(programs) : DevicePrograms();
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string made(text);
  const size_t at = made.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return made.replace(at, from.size(), to);
}

TEST(DevicePrograms, AreReadBack) {
  const DevicePrograms programs = parsed(kRelay);
  EXPECT_EQ(print(programs), kRelay);
  EXPECT_TRUE(verify(programs).ok());
  EXPECT_EQ(programs.devices(), 2);
  EXPECT_EQ(programs.of(1).name, "second");
  // One program for all says no devices.
  const std::string_view one = "program @p {\n  threads 1\n  frame @main() -> () {\n  }\n}\n";
  EXPECT_EQ(print(parsed(one)), one);
  EXPECT_EQ(parsed(one).devices(), std::nullopt);
}

TEST(DevicePrograms, TextsWithErrorsAreRefused) {
  const auto with = [](std::string_view from, std::string_view to) {
    return parse_device_programs(replaced(kRelay, from, to));
  };
  EXPECT_THAT(with("on 1", "on 0"), says("10:1 ... device 0 has two programs"));
  EXPECT_THAT(with("on 1", "on 2"), says("device 2 ... none for device 1"));
  EXPECT_THAT(with(" on 1", ""), says("'second' ... devices"));
  EXPECT_THAT(with("tag 7", "tag 2147483648"), says("5:31 ... 2147483648"));
  EXPECT_THAT(with("tag 7", "7"), says("tag"));
  EXPECT_THAT(with("send to 1", "send 1"), says("to"));
  EXPECT_THAT(with("(%x) -> ()", "(%x, %y) -> ()"), says("one buffer on each side"));
  EXPECT_THAT(with("receive from", "recieve from"), says("receive"));
  EXPECT_THAT(parse_program(kRelay), says("on"));
}

// ---- Verification -------------------------------------------------------------------------------

std::string verdict(std::string_view from, std::string_view to) {
  const Status good = verify(parsed(replaced(kRelay, from, to)));
  return good.ok() ? "" : good.error().to_string();
}

TEST(DevicePrograms, VerificationKnowsMessages) {
  EXPECT_THAT(verdict("2 @x = wait 0 (%x) -> () after 1\n    3 @y = wait 1 () -> (%y) after 2",
                      "2 @y = wait 1 () -> (%y) after 1"),
              says("waits ... program 'first' ... command 0 'x'"));
  EXPECT_THAT(verdict("2 @x = wait 0 (%x)", "2 @x = wait 0 (%y)"),
              says("command 0 ... buffers ... command 2 'x'"));
  EXPECT_THAT(verdict("wait 1 () -> (%y) after 2", "wait 0 (%x) -> () after 2"), says("command 3"));
  EXPECT_THAT(verdict("1 @t = wait 0 () -> (%t) after 0\n    2 @t = send to 0 tag 7 (%t) after 1",
                      "1 @t = send to 0 tag 7 (%t) after 0\n    2 @t = wait 0 () -> (%t) after 1"),
              says("%t is read before command 0"));
  EXPECT_THAT(verdict("wait 1 () -> (%y) after 2", "wait 1 () -> (%y) after 0"),
              says("command 3 'y' does not wait for command 1 'y'"));
  EXPECT_THAT(verdict("receive from 1 tag 7 (%y)", "receive from 1 tag 7 (%x)"), says("%x"));
  EXPECT_THAT(verdict("send to 1", "send to 0"), says("device 0 ... device 0 ... program 'first'"));
  EXPECT_THAT(verdict("send to 1", "send to 2"), says("device 2 of 2 ... command 'x'"));
}

TEST(DevicePrograms, ADeviceOfItsOwnMayNotBranchAroundMessages) {
  const DevicePrograms programs = parsed(
      "program @p on 0 {\n  threads 1\n"
      "  frame @then(%x: f32[4]) -> () {\n"
      "    0 @x = send to 1 tag 0 (%x)\n    1 @x = wait 0 (%x) -> () after 0\n  }\n"
      "  frame @else(%x: f32[4]) -> () {\n  }\n"
      "  frame @main(%x: f32[4]) -> () {\n"
      "    constant %c = true : bool[]\n"
      "    0 @b = branch %c then @then else @else(%x) -> ()\n  }\n}\n"
      "program @q on 1 {\n  threads 1\n  frame @main() -> () {\n"
      "    temporary %t: f32[4]\n"
      "    0 @t = receive from 0 tag 0 (%t)\n    1 @t = wait 0 () -> (%t) after 0\n  }\n}\n");
  EXPECT_THAT(verify(programs), refuses(ErrorCode::unsupported, "program 'p' ... command 'b'"));
}

// ---- Deadlocks ----------------------------------------------------------------------------------

TEST(DevicePrograms, TheCheckerNamesTwoCommandsThatWaitForEachOther) {
  EXPECT_TRUE(check_no_deadlock(parsed(kRelay), 2).ok());
  EXPECT_THAT(check_no_deadlock(parsed(kRelay), 3), says("2 devices ... 3"));
  // Device 0 waits for the answer before it asks.
  const std::string circle = replaced(kRelay,
                                      "0 @x = send to 1 tag 0 (%x)\n"
                                      "    1 @y = receive from 1 tag 7 (%y) after 0\n"
                                      "    2 @x = wait 0 (%x) -> () after 1\n"
                                      "    3 @y = wait 1 () -> (%y) after 2\n",
                                      "0 @y = receive from 1 tag 7 (%y)\n"
                                      "    1 @y = wait 0 () -> (%y) after 0\n"
                                      "    2 @x = send to 1 tag 0 (%x) after 1\n"
                                      "    3 @x = wait 2 (%x) -> () after 2\n");
  ASSERT_TRUE(verify(parsed(circle)).ok());
  EXPECT_THAT(check_no_deadlock(parsed(circle), 2),
              refuses(ErrorCode::bad_input,
                      "'receive %y' of device 0 needs 'send %t' of device 1 ... 'receive %t' "
                      "... 'send %x' of device 0"));
  EXPECT_THAT(check_no_deadlock(parsed(replaced(kRelay, "tag 7 (%t)", "tag 8 (%t)")), 2),
              says("device 0, 'receive %y' ... device 1 has no send"));
  EXPECT_THAT(check_no_deadlock(parsed(replaced(kRelay, "%t: f32[4]", "%t: f32[5]")), 2),
              says("device 0, 'send %x' ... 16 ... 'receive %t' ... 20"));
}

// Frames that run the one before twice: 2^60 collectives.
std::string doubling() {
  std::string text =
      "program @p {\n  threads 1\n  frame @f0(%s: f32[4]) -> (%n: f32[4]) {\n"
      "    0 @n = start all_reduce sum in 2 by ring (%s) -> (%n)\n"
      "    1 @n = wait 0 (%s) -> (%n) after 0\n  }\n";
  for (int i = 1; i <= 60; ++i)
    text += fmt::format(
        "  frame @f{}(%s: f32[4]) -> (%n: f32[4]) {{\n    temporary %t: f32[4] at 0\n"
        "    0 @t = call @f{}(%s) -> (%t)\n    1 @n = call @f{}(%t) -> (%n) after 0\n  }}\n",
        i, i - 1, i - 1);
  return text + "}\n";
}

TEST(DevicePrograms, ProofsOfHostileTextsEnd) {
  const DevicePrograms twice = parsed(doubling());
  ASSERT_TRUE(verify(twice).ok());
  EXPECT_THAT(check_no_deadlock(twice, 2), refuses(ErrorCode::limit, "program 'p' ... steps"));
  const DeviceMemory memory = device_memory(twice.programs[0], 2).value();
  EXPECT_EQ(memory.ports, 32);
  EXPECT_GE(memory.messages, 8);
  // Rounds that exchange nothing count, too.
  const DevicePrograms rounds = parsed(
      "program @p on 0 {\n  threads 1\n  frame @body(%s: f32[4]) -> (%n: f32[4]) {\n"
      "    0 @n = start all_reduce sum in 1 by ring (%s) -> (%n)\n"
      "    1 @n = wait 0 (%s) -> (%n) after 0\n  }\n"
      "  frame @main(%x: f32[4]) -> (%y: f32[4]) {\n"
      "    0 @y = scan [1099511627776] do @body(%x over) -> (%y over)\n  }\n}\n");
  EXPECT_THAT(check_no_deadlock(rounds, 1), refuses(ErrorCode::limit, "program 'p' ... steps"));
  EXPECT_TRUE(device_memory(rounds.programs[0], 1).ok());
}

void check_messages(uint64_t first, uint64_t count) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    ASSERT_EQ(tested::message_fault(rng), "") << "seed " << seed;
  }
}
TEST(DevicePrograms, RunsOnTheVirtualClockAreWhatTheCheckerSays) { check_messages(0, 600); }
TEST(DevicePrograms, DISABLED_SweepVirtualClock) { check_messages(10'000, 20'000); }

// ---- Memory -------------------------------------------------------------------------------------

Target sample_target() { return parse_target(kSampleTarget, "t").value(); }

TEST(DevicePrograms, TheMemoryOfEachDeviceMustSuffice) {
  const std::string text = replaced(replaced(kRelay, "%t: f32[4]",
                                             "%t: f32[4]\n"
                                             "    temporary %u: f32[1000]"),
                                    "temporary %t",
                                    "constant %w = [1, 2, 3] : f32[3]\n"
                                    "    temporary %t");
  const DevicePrograms programs = parsed(text);
  const DeviceMemory memory = device_memory(programs.of(1), 2).value();
  EXPECT_EQ(memory.weights, 12);
  EXPECT_EQ(memory.ports, 0);
  EXPECT_EQ(memory.arena, 64 + 4032);
  EXPECT_EQ(memory.messages, 16);
  EXPECT_EQ(memory.largest[0].name, "temporary %u");
  System system = preset_system("ring:2", sample_target()).value();
  EXPECT_TRUE(check_memory(programs, system).ok());
  for (DeviceRun& run : system.devices) run.memory_bytes = 4000;
  EXPECT_THAT(check_memory(programs, system),
              refuses(ErrorCode::limit,
                      "program 'second' ... device 1 ... missing ... temporary %u ... %t"));
  EXPECT_THAT(check_memory(programs, preset_system("ring:3", sample_target()).value()),
              says("2 devices ... 3"));
}

TEST(DevicePrograms, CollectivesNeedMemoryOfTheirOwn) {
  const Graph graph = prepared(
      "graph @g(%x: f32[64]) { %s = all_reduce %x {kind = sum, group_size = 2} return %s }");
  const Program program =
      lower(graph, complete(graph, {}, two_cores()).value(), two_cores()).value();
  const DeviceMemory memory = device_memory(program, 2).value();
  EXPECT_EQ(memory.ports, 512);
  EXPECT_GE(memory.messages, 256);
}

// ---- Tasks --------------------------------------------------------------------------------------

TEST(DevicePrograms, MessagesAreTasksOfLinks) {
  int64_t moved = 0, links = 0;
  const Tasks tasks = tasks_of(parsed(kRelay).of(0));
  for (const Task* task : in_order(tasks)) {
    moved += task->moved.value();
    links += task->resource == Resource::links ? 1 : 0;
  }
  EXPECT_EQ(moved, 32);
  EXPECT_EQ(links, 4);
}

// ---- Runs ---------------------------------------------------------------------------------------

RunDevice by_interpreter(const DevicePrograms& programs, const DeviceTensors& inputs) {
  return [&programs, &inputs](const DevicePlace& place) {
    return run(programs.of(place.device), inputs[static_cast<size_t>(place.device)],
               {.place = place});
  };
}

TEST(DevicePrograms, MessagesArrive) {
  const DevicePrograms programs = parsed(kRelay);
  const Tensor x = Tensor::from_reals(Type::get(DType::f32, {4}), std::vector<double>{1, 2, 3, 4});
  const DeviceTensors made = run_by_threads(2, by_interpreter(programs, {{x}, {}})).value();
  EXPECT_TRUE(made[0][0].same_bytes(x));
  EXPECT_THAT(run(programs.of(0), {{x}}), says("device 1 ... 1"));
}

TEST(DevicePrograms, AFailureEndsAllDevices) {
  const DevicePrograms programs = parsed(kRelay);
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {4}));
  EXPECT_THAT(run_by_threads(2,
                             [&](const DevicePlace& place) {
                               const bool is_first = place.device == 0;
                               return run(programs.of(place.device),
                                          is_first ? std::vector{x} : std::vector<Tensor>(),
                                          {.max_bytes = is_first ? 1 << 20 : -1, .place = place});
                             }),
              refuses(ErrorCode::limit, "... arena"));
}

}  // namespace
}  // namespace hone::HONE_FILE
