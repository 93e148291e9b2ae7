#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/reference/evaluate.h"
#include "plan/collectives.h"
#include "plan/random_plan.h"
#include "planner/planner.h"
#include "program/devices.h"
#include "program/lower/lower.h"
#include "program/run.h"
#include "program/tasks.h"
#include "tests/base/says_testing.h"
#include "tests/program/image_runner.h"
#include "tests/program/lower_testing.h"
#include "tests/program/product_testing.h"
#include "tests/program/spmd_testing.h"
#include "tests/transport/processes.h"
#include "transport/threads.h"
#include "zoo/inputs.h"

// Programs of several devices: what lowering makes of collectives, what verification refuses, and
// random ones against the reference of several devices.

namespace hone::HONE_FILE {
namespace {

using tested::DeviceTensors;
using tested::draw_product;
using tested::draw_spmd;
using tested::judge;
using tested::overlapped_by;
using tested::random_overlaps;
using tested::refuses;
using tested::run_by_threads;
using tested::run_devices;
using tested::RunDevice;
using tested::same_bits;
using tested::says;
using tested::SpmdCase;
using testing::HasSubstr;

Program lowered(const Graph& graph, const Plan& plan) {
  Result<Program> program = lower(graph, plan, two_cores());
  EXPECT_TRUE(program.ok()) << program.error().to_string() << print(graph);
  return program.ok() ? *std::move(program) : Program();
}
Program lowered(std::string_view text) {
  const Graph graph = prepared(text);
  return lowered(graph, complete(graph, {}, two_cores()).value());
}

RunDevice by_interpreter(const Program& program, const DeviceTensors& inputs, uint64_t seed = 0) {
  return [&program, &inputs, seed](const DevicePlace& place) {
    ProgramRunOptions options = {.place = place};
    if (seed != 0) options.order_seed = seed + static_cast<uint64_t>(place.device);
    return run(program, inputs[static_cast<size_t>(place.device)], options);
  };
}

// ---- Lowering -----------------------------------------------------------------------------------

constexpr std::string_view kSum =
    "graph @sum(%x: f32[4]) -> f32[4] {\n"
    "  %s = all_reduce %x {kind = sum, group_size = 2}\n"
    "  %n = neg %x\n"
    "  %y = add %s, %n\n"
    "  return %y\n"
    "}\n";

TEST(Spmd, StartsACollectiveEarlyAndWaitsLate) {
  const Graph graph = prepared(kSum);
  Plan plan;
  plan.fuse = {{"k0", {"n"}}, {"k1", {"y"}}};
  plan = complete(graph, plan, two_cores()).value();
  EXPECT_EQ(to_string(plan.collective.at("s")), "doubling");
  plan.order = {"s", "k0", "k1"};
  plan.offset.clear();
  plan = complete(graph, plan, two_cores()).value();
  plan.collective["s"] = parse_collective_schedule("ring, 2 pieces").value();
  const std::string text = print(lowered(graph, plan));
  EXPECT_THAT(text, says("0 @s = start all_reduce sum in 2 by ring, 2 pieces (%x) -> (%s) "
                         "... 1 @k0 = launch ... 2 @s = wait 0 (%x) -> (%s) after 0 "
                         "... 3 @k1 = launch"));
}

TEST(Spmd, GroupsOfOneDeviceCopy) {
  const std::string text = print(lowered(
      "graph @g(%x: f32[4]) { %d = device_index %y = all_reduce %x {kind = sum, group_size = 1} "
      "return %d, %y }"));
  EXPECT_THAT(text, testing::Not(HasSubstr("start")));
  EXPECT_THAT(text, says("device_index (%d) ... copy (%x) -> (%y)"));
}

// It gives all devices but the first zeros, and no message is sent.
TEST(Spmd, APermuteOfDevice0WithItselfDependsOnTheDevice) {
  for (const std::string_view type : {"f32[3, 5]", "bool[9]", "i4[8]", "f16[]", "u8[0]"}) {
    SCOPED_TRACE(type);
    const Graph graph = prepared(
        fmt::format("graph @g(%x: {}) {{ %y = permute %x {{pairs = [0, 0]}} return %y }}", type));
    EXPECT_FALSE(exchanges_data(graph));
    EXPECT_TRUE(knows_devices(graph));
    const Program program = lowered(graph, complete(graph, {}, two_cores()).value());
    EXPECT_FALSE(exchanges_data(program));
    DeviceTensors inputs;
    for (int32_t device = 0; device < 3; ++device)
      inputs.push_back(random_inputs(graph, static_cast<uint64_t>(device)).value());
    const DeviceTensors made = run_by_threads(3, by_interpreter(program, inputs)).value();
    EXPECT_TRUE(made[0][0].same_bytes(inputs[0][0]));
    EXPECT_TRUE(made[1][0].same_bytes(Tensor::zeros(inputs[1][0].type())));
    EXPECT_TRUE(made[2][0].same_bytes(made[1][0]));
    EXPECT_TRUE(run(program, inputs[0]).value()[0].same_bytes(inputs[0][0]));
  }
}

TEST(Spmd, AGroupOfOneNamedDeviceIsForOneDevice) {
  const Graph graph = prepared(
      "graph @g(%x: f32[4]) { %y = all_to_all %x {split_axis = 0, concat_axis = 0, "
      "group_size = 1, groups = [0]} return %y }");
  EXPECT_FALSE(knows_devices(graph));
  EXPECT_TRUE(check_devices(graph, 1).ok());
  EXPECT_THAT(check_devices(graph, 2),
              refuses(ErrorCode::bad_input, "node '%y' ... 1 devices ... 2"));
}

TEST(Spmd, HasTasksOfLinks) {
  const Program program = lowered(kSum);
  int64_t moved = 0, waits = 0;
  const Tasks tasks = tasks_of(program);
  for (const Task* task : in_order(tasks)) {
    if (task->resource != Resource::links) continue;
    moved += task->moved.value();
    waits += task->moved == Dim(0) ? 1 : 0;
  }
  EXPECT_EQ(moved, 32);
  EXPECT_EQ(waits, 1);
}

// A sum in one branch, which a condition chooses.
Result<Program> with_condition(std::string_view inputs, std::string_view condition) {
  const Graph graph = prepared(fmt::format(
      "graph @g({}%x: f32[4]) {{\n"
      "{}"
      "  %y = if %p, %x\n"
      "    then (%u: f32[4]) {{ %s = all_reduce %u {{kind = sum, group_size = 2}} return %s }}\n"
      "    else (%u: f32[4]) {{ return %u }}\n"
      "  return %y\n"
      "}}\n",
      inputs, condition));
  return lower(graph, complete(graph, {}, two_cores()).value(), two_cores());
}

TEST(Spmd, RefusesWhatDevicesMayNotAgreeOn) {
  EXPECT_THAT(with_condition("%p: bool[], ", ""),
              refuses(ErrorCode::unsupported, "command 'y' (if) ... agree ... input %p"));
  EXPECT_THAT(with_condition("",
                             "  %d = device_index\n  %c = constant 1 : i64[]\n"
                             "  %p = compare %d, %c {direction = eq}\n"),
              refuses(ErrorCode::unsupported, "(if) ... agree ... device_index"));
  // Groups of which each may go another way.
  EXPECT_THAT(with_condition("%q: bool[], ",
                             "  %p = all_reduce %q {kind = and, group_size = 2, "
                             "groups = [0, 1, 2, 3]}\n"),
              refuses(ErrorCode::unsupported, "(if) ... agree ... several groups"));
  EXPECT_THAT(with_condition("%q: bool[], ", "  %p = permute %q {pairs = [0, 1]}\n"),
              refuses(ErrorCode::unsupported, "(if) ... agree ... permute"));
  // The number of rounds may differ, and so may what they make.
  EXPECT_THAT(with_condition("%n: i32[], ",
                             "  %z = constant 0 : i32[]\n"
                             "  %i = while %z condition (%i: i32[]) {\n"
                             "      %e = constant 3 : i32[] %go = compare %i, %e {direction = lt}\n"
                             "      return %go }\n"
                             "    body (%i: i32[]) { %o = constant 1 : i32[] %j = add %i, %o "
                             "return %j }\n"
                             "  %a = add %i, %n\n"
                             "  %p = compare %a, %z {direction = eq}\n"),
              refuses(ErrorCode::unsupported, "(if) ... agree ... input %n"));
}

// Pairs first, and then all four: the last step decides.
TEST(Spmd, DevicesAgreeWhereTheLastSumIsOverAllOfThem) {
  const auto sums = [](int first, int last) {
    return with_condition("%q: bool[], ",
                          fmt::format("  %h = all_reduce %q {{kind = or, group_size = {}}}\n"
                                      "  %p = all_reduce %h {{kind = and, group_size = {}}}\n",
                                      first, last));
  };
  const Program up = sums(2, 4).value(), down = sums(4, 2).value();
  for (const Program* program : {&up, &down}) {
    EXPECT_TRUE(check_devices(*program, 4).ok());
    EXPECT_THAT(check_devices(*program, 8), refuses(ErrorCode::bad_input, "agree ... 4 ... 8"));
  }
}

TEST(Spmd, DevicesAgreeOnSumsOverAllOfThem) {
  const Result<Program> program =
      with_condition("%q: bool[], ", "  %p = all_reduce %q {kind = or, group_size = 2}\n");
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  EXPECT_TRUE(check_no_deadlock(*program, 2).ok());
  // Groups of two of four devices might go two ways.
  EXPECT_THAT(check_devices(*program, 4), refuses(ErrorCode::bad_input, "agree ... 2 ... 4"));
  const Type type = Type::get(DType::f32, {4});
  const Tensor yes = Tensor::from_integers(Type::scalar(DType::boolean), std::vector<int64_t>{1});
  const Tensor no = Tensor::from_integers(Type::scalar(DType::boolean), std::vector<int64_t>{0});
  const Tensor x = Tensor::from_reals(type, std::vector<double>{1, 2, 3, 4});
  for (const Tensor& one : {yes, no}) {
    const DeviceTensors inputs = {{no, x}, {one, x}};
    const DeviceTensors made = run_by_threads(2, by_interpreter(*program, inputs)).value();
    for (const std::vector<Tensor>& own : made)
      EXPECT_EQ(own[0].real_at(3), one.same_bytes(yes) ? 8 : 4);
  }
  // An image says the number of its devices.
  const Image image = instantiate(*program, {}, nameless_code(*program)).value();
  const auto* const start = std::get_if<image::Start>(&image.commands.front().kind);
  ASSERT_NE(start, nullptr);
  EXPECT_EQ(start->collective.groups, (std::vector<int32_t>{0, 1}));
}

// Conditions rest on it: each member gets the same bits, by any schedule.
TEST(Spmd, AllMembersOfASumGetTheSameBits) {
  Rng rng(3);
  for (int32_t devices = 2; devices <= 6; ++devices)
    for (const CollectiveSchedule& schedule :
         schedules_of(SpmdCollective{.kind = CollectiveKind::all_reduce, .group_size = devices})) {
      const Program program =
          parse_program(fmt::format("program @p {{\n  threads 1\n"
                                    "  frame @main(%x: f32[23]) -> (%y: f32[23]) {{\n"
                                    "    0 @y = start all_reduce sum in {} by {} (%x) -> (%y)\n"
                                    "    1 @y = wait 0 (%x) -> (%y) after 0\n  }}\n}}\n",
                                    devices, to_string(schedule)))
              .value();
      DeviceTensors inputs;
      for (int32_t d = 0; d < devices; ++d) {
        std::vector<double> values(23);
        for (double& value : values) value = rng.uniform(-1000, 1000);
        inputs.push_back({Tensor::from_reals(Type::get(DType::f32, {23}), values)});
      }
      const DeviceTensors made = run_by_threads(devices, by_interpreter(program, inputs)).value();
      for (const std::vector<Tensor>& own : made)
        EXPECT_TRUE(own[0].same_bytes(made[0][0])) << devices << " " << to_string(schedule);
    }
}

TEST(Spmd, RefusesPartsOfBytes) {
  const Graph graph =
      prepared("graph @g(%x: i4[3]) { %y = permute %x {pairs = [0, 1]} return %y }");
  EXPECT_THAT(lower(graph, complete(graph, {}, two_cores()).value(), two_cores()),
              refuses(ErrorCode::unsupported, "node '%y' (permute) ... i4[3] ... bytes"));
}

// ---- Decisions ----------------------------------------------------------------------------------

TEST(Spmd, APlanSaysTheSchedule) {
  const Graph graph = prepared(kSum);
  const auto with = [&](std::string_view line) {
    return check(parse_plan(fmt::format("plan @sum {{ {} }}", line)).value(), graph, two_cores());
  };
  EXPECT_TRUE(with("collective %s = ring, 4 pieces").ok());
  EXPECT_TRUE(with("collective %s = direct").ok());
  EXPECT_THAT(with("collective %n = ring"), says("collective %n ... neg"));
  EXPECT_THAT(with("collective %gone = ring"), says("collective %gone"));
  EXPECT_THAT(with("collective %s = hierarchical of 3"), says("collective %s ... 3 ... 2"));
  EXPECT_THAT(parse_plan("plan @sum { collective %s = rings }"), says("rings ... ring"));
  EXPECT_THAT(parse_plan("plan @sum { collective %s = ring, 0 pieces }"), says("0 ... 1..1024"));
  Plan open = complete(graph, {}, two_cores()).value();
  open.collective.clear();
  EXPECT_THAT(check_complete(open, graph, two_cores()), says("collective %s"));
  const Graph gather = prepared(
      "graph @g(%x: f32[4]) { %y = all_to_all %x {split_axis = 0, concat_axis = 0, "
      "group_size = 2} return %y }");
  EXPECT_THAT(check(parse_plan("plan @g { collective %y = ring }").value(), gather, two_cores()),
              says("all_to_all ... ring"));
}

TEST(Spmd, PlansAreReadBack) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const SpmdCase drawn = draw_spmd(seed, 4, true);
    const Graph graph = prepared(drawn.graph);
    const Plan plan = random_plan(graph, two_cores(), seed);
    EXPECT_EQ(parse_plan(print(plan)).value(), plan);
    const std::string text = print(lowered(graph, plan));
    EXPECT_EQ(print(parse_program(text).value()), text);
  }
}

// ---- Verification -------------------------------------------------------------------------------

std::string verdict(std::string_view commands) {
  const Result<Program> program = parse_program(fmt::format(
      "program @p {{\n  threads 1\n  frame @main(%x: f32[4]) -> (%y: f32[4], %z: f32[4]) {{\n"
      "    temporary %t: f32[4]\n{}  }}\n}}\n",
      commands));
  if (!program.ok()) return program.error().to_string();
  const Status good = verify(*program);
  return good.ok() ? "" : good.error().to_string();
}

TEST(Spmd, VerificationKnowsCollectives) {
  const std::string start = "0 @t = start all_reduce sum in 2 by ring (%x) -> (%t)\n";
  const std::string wait = "1 @t = wait 0 (%x) -> (%t) after 0\n";
  EXPECT_EQ(verdict(start + wait +
                    "2 @y = copy (%t) -> (%y) after 1\n"
                    "3 @z = copy (%t) -> (%z) after 1\n"),
            "");
  EXPECT_THAT(verdict(start + "1 @y = copy (%t) -> (%y) after 0\n"),
              says("%t is read ... command 0 ... command 1 'y'"));
  EXPECT_THAT(verdict(start + "1 @y = copy (%x) -> (%t) after 0\n"),
              says("%t is written ... command 0 ... command 1 'y'"));
  EXPECT_THAT(verdict(start + "1 @y = copy (%x) -> (%y)\n2 @z = copy (%x) -> (%z)\n"),
              says("waits ... command 0 't'"));
  EXPECT_THAT(verdict(start + wait + "2 @t = wait 0 (%x) -> (%t) after 1\n"),
              says("command 0 ... command 2 't'"));
  EXPECT_THAT(verdict(start + "1 @t = wait 0 (%x) -> (%y) after 0\n"),
              says("command 0 ... buffers"));
  EXPECT_THAT(verdict(start + "1 @t = wait 0 (%x) -> (%t)\n2 @y = copy (%t) -> (%y) after 1\n"
                              "3 @z = copy (%t) -> (%z) after 1\n"),
              says("command 1 't' does not wait for command 0"));
  // All devices have one order of collectives.
  EXPECT_THAT(verdict(start + wait +
                      "2 @y = start all_reduce sum in 2 by ring (%x) -> (%y)\n"
                      "3 @y = wait 2 (%x) -> (%y) after 2\n"
                      "4 @z = copy (%t) -> (%z) after 1\n"),
              says("command 2 'y' does not wait for command 1"));
  EXPECT_THAT(verdict("0 @t = start all_gather in 2 by ring (%x) -> (%t)\n"), says("all_gather"));
  EXPECT_THAT(verdict("0 @t = start all_to_all in 2 by ring (%x) -> (%t)\n"),
              says("all_to_all ... ring"));
  EXPECT_THAT(verdict("0 @t = start all_reduce sum in 2 [0, 0] by ring (%x) -> (%t)\n"),
              says("device 0"));
  EXPECT_THAT(verdict("0 @t = start all_reduce and in 2 by ring (%x) -> (%t)\n"),
              says("and of f32"));
  EXPECT_THAT(verdict("0 @t = start broadcast in 2 by ring (%x) -> (%t)\n"), says("broadcast"));
  EXPECT_THAT(verdict("0 @t = start all_red sum in 2 by ring (%x) -> (%t)\n"), says("all_reduce"));
  EXPECT_THAT(verdict("0 @t = start permute [0, 1, 2] by direct (%x) -> (%t)\n"),
              says("3 devices"));
  EXPECT_THAT(verdict("0 @t = device_index (%t)\n"), says("f32[4]"));
}

// ---- Numbers of devices -------------------------------------------------------------------------

TEST(Spmd, SaysHowManyDevicesItIsFor) {
  const Program program = lowered(kSum);
  EXPECT_TRUE(exchanges_data(program));
  EXPECT_TRUE(check_devices(program, 4).ok());
  EXPECT_THAT(check_devices(program, 3),
              refuses(ErrorCode::bad_input, "command 's' ... 2 devices ... 3"));
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {4}));
  EXPECT_THAT(run(program, {{x}}), says("command 's' ... 2 devices ... 1"));
}

TEST(Spmd, ProvesThatNobodyWaitsForEver) {
  EXPECT_TRUE(check_no_deadlock(lowered(kSum), 2).ok());
  EXPECT_TRUE(check_no_deadlock(lowered(kSum), 6).ok());
  // A start that one of two has not: it takes a program that is not the same on all devices.
  const Program program = lowered(kSum);
  EXPECT_THAT(check_no_deadlock(program, 3), says("2 devices"));
}

// ---- Runs ---------------------------------------------------------------------------------------

TEST(Spmd, AFailureEndsAllDevices) {
  const Program program = lowered(kSum);
  const DeviceTensors inputs(2, {Tensor::zeros(Type::get(DType::f32, {4}))});
  const auto run_one = [&](const DevicePlace& place) {
    // Device 1 has no memory, and never comes to the collective.
    const ProgramRunOptions options = {.max_bytes = place.device == 1 ? -1 : 1 << 20,
                                       .place = place};
    return run(program, inputs[0], options);
  };
  EXPECT_THAT(run_by_threads(2, run_one), refuses(ErrorCode::limit, "all_reduce %s ... arena"));
}

TEST(Spmd, RefusesPlacesThatAreNotThere) {
  const Program program = lowered(kSum);
  const std::unique_ptr<Transport> two = make_thread_transport(2).value();
  const Tensor x = Tensor::zeros(Type::get(DType::f32, {4}));
  EXPECT_THAT(run(program, {{x}}, {.place = {2, two.get()}}), says("device 2 ... 2 devices"));
}

// ---- Random programs ----------------------------------------------------------------------------

// Links with latencies of their own, so that messages come in other orders.
ExchangeOptions slow_links() {
  EmulatedLinks links;
  links.route = [](int32_t from, int32_t to) {
    return EmulatedRoute{{static_cast<uint32_t>(from)}, 2e-5 * ((3 * from + 5 * to) % 7)};
  };
  links.share = [](std::span<const std::span<const uint32_t>> /*flows*/, std::span<double> rates) {
    for (double& rate : rates) rate = 1e9;
  };
  ExchangeOptions options;
  options.links = std::make_shared<const EmulatedLinks>(links);
  return options;
}

// Over processes, of which the first has several devices.
Result<DeviceTensors> run_by_processes(int32_t devices, bool by_tcp, const RunDevice& run) {
  std::vector<int32_t> owned(static_cast<size_t>(std::max(devices - 1, 1)), 1);
  if (devices > 1) owned[0] = 2;
  const std::vector<std::unique_ptr<Transport>> transports = tested::join_all(
      owned.size(), by_tcp ? tested::by_tcp(owned) : tested::by_shared_memory(owned));
  return run_devices(
      devices,
      [&](int32_t device) -> Transport& {
        return *transports[static_cast<size_t>(device < 2 ? 0 : device - 1)];
      },
      run);
}

void check_random(uint64_t first, uint64_t count, uint64_t every_process) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(seed);
    const bool is_exact = seed % 3 != 0;
    const bool is_product = seed % 4 == 1;
    const SpmdCase drawn =
        is_product ? draw_product(seed, 5, is_exact) : draw_spmd(seed, 5, is_exact);
    const Graph graph = prepared(
        is_product ? overlapped_by(drawn.graph, random_overlaps(drawn.graph, seed)) : drawn.graph);
    const Plan plan = seed % 5 == 0 ? complete(graph, {}, two_cores()).value()
                                    : random_plan(graph, two_cores(), seed);
    const Program program = lowered(graph, plan);
    const Status proof = check_no_deadlock(program, drawn.devices);
    ASSERT_TRUE(proof.ok()) << proof.error().to_string() << print(program);
    const Result<DeviceTensors> made =
        run_by_threads(drawn.devices, by_interpreter(program, drawn.inputs));
    ASSERT_TRUE(made.ok()) << made.error().to_string() << print(program);
    if (is_exact) ASSERT_EQ(judge(drawn, *made), "") << print(program);
    // In other orders, at other timings.
    const std::unique_ptr<Transport> slow =
        make_thread_transport(drawn.devices, slow_links()).value();
    const Result<DeviceTensors> again = run_devices(
        drawn.devices, [&](int32_t) -> Transport& { return *slow; },
        by_interpreter(program, drawn.inputs, seed + 1));
    ASSERT_TRUE(again.ok()) << again.error().to_string() << print(program);
    ASSERT_EQ(same_bits(*made, *again), "") << print(program);
    if (seed % every_process != 0) continue;
    const Result<DeviceTensors> by_processes = run_by_processes(
        drawn.devices, seed / every_process % 2 == 0, by_interpreter(program, drawn.inputs));
    ASSERT_TRUE(by_processes.ok()) << by_processes.error().to_string();
    ASSERT_EQ(same_bits(*made, *by_processes), "") << print(program);
  }
}

TEST(Spmd, RandomProgramsOnEachTransport) { check_random(0, 150, 10); }
// A condition over all four devices, made of what pairs have in common.
TEST(Spmd, RandomProgramThatSumsPairsBeforeAll) { check_random(11'438, 1, 1); }
// Its only collective is a permute of device 0 with itself, on two devices.
TEST(Spmd, RandomProgramThatExchangesNothing) { check_random(11'956, 1, 1); }
TEST(Spmd, DISABLED_SweepRandomProgramsOnEachTransport) { check_random(10'000, 1'500, 2); }
TEST(Spmd, DISABLED_SweepMoreRandomProgramsOnEachTransport) { check_random(11'500, 1'500, 2); }
TEST(Spmd, DISABLED_SweepYetMoreRandomProgramsOnEachTransport) { check_random(13'000, 2'000, 2); }

}  // namespace
}  // namespace hone::HONE_FILE
