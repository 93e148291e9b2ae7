#include "place/problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "place/partition_json.h"
#include "place/task_text.h"
#include "place/text.h"
#include "tests/base/says_testing.h"
#include "tests/place/random_problem.h"

// Problems of placement: what is refused, and their three formats.

namespace hone::HONE_FILE {
namespace {

using tested::random_place_problem;
using tested::refuses;
using tested::says;
using testing::ElementsAre;

// Three nodes in a row on two devices.
PlaceProblem three() {
  PlaceProblem problem;
  problem.name = "three";
  problem.system = task_system(2).value();
  problem.system.devices[0].memory_bytes = 1000;
  for (int64_t i = 0; i < 3; ++i)
    problem.nodes.push_back({.id = i, .name = fmt::format("n{}", i), .seconds = {1e-3}});
  problem.tensors = {{0, {1}, 10, 0}, {1, {2}, 10, 0}};
  return problem;
}

TEST(PlaceProblem, ACircleIsNamed) {
  PlaceProblem problem = three();
  problem.tensors.push_back({2, {0}, 10, 0});
  EXPECT_THAT(check(problem), refuses(ErrorCode::bad_input, "circle ... node 0 'n0' ... node 2"));
  problem.tensors = {{1, {1}, 1, 0}};
  EXPECT_THAT(check(problem), says("circle ... node 1 'n1'"));
}

TEST(PlaceProblem, NumbersOutOfRangeAreRefused) {
  const auto with = [](auto change) {
    PlaceProblem problem = three();
    change(problem);
    return check(problem);
  };
  EXPECT_TRUE(with([](PlaceProblem&) {}).ok());
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes[1].seconds = {-1.0}; }),
              refuses(ErrorCode::bad_input, "node 1 'n1' ... -1"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes[1].seconds = {std::nan("")}; }), says("node 1"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes[1].seconds = {1, 2}; }), says("2 ... 1 targets"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes[2].pinned = 2; }),
              says("node 2 ... device 2 ... 0 to 1"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes[2].id = 0; }), says("node 0 ... id 0"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.tensors[0].users = {7}; }), says("node 7 of 3"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.tensors[0].bytes = -1; }), says("node 0 ... -1"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.tensors[0].users = {2, 1}; }), says("order"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.tensors[0].users = {}; }), says("nobody"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.nodes.clear(); }), says("no nodes"));
  EXPECT_THAT(with([](PlaceProblem& p) { p.system.devices[0].count = kMaxPlaceDevices + 1; }),
              refuses(ErrorCode::limit, "257 devices"));
}

TEST(PlaceProblem, NodesTimesDevicesAreBounded) {
  PlaceProblem problem;
  problem.system = task_system(256).value();
  for (int64_t i = 0; i < (int64_t{1} << 18) + 1; ++i)
    problem.nodes.push_back({.id = i, .name = "", .seconds = {1e-3}});
  EXPECT_THAT(check(problem), refuses(ErrorCode::limit, "262145 nodes ... 256 devices"));
}

// Their sum is above the largest integer.
TEST(PlaceProblem, BytesOfACompanyDoNotOverflow) {
  PlaceProblem problem = three();
  problem.nodes.clear();
  problem.tensors.clear();
  for (int64_t i = 0; i < 9000; ++i)
    problem.nodes.push_back(
        {.id = i, .name = "", .seconds = {1e-3}, .held = kMaxPlaceHeld, .together = 1});
  EXPECT_THAT(check(problem), refuses(ErrorCode::limit, "node 0"));
}

TEST(PlaceProblem, WhatFitsNoDeviceIsNamedWithItsBytes) {
  PlaceProblem problem = three();
  problem.nodes[1].held = 1200;
  EXPECT_THAT(check(problem), refuses(ErrorCode::limit, "node 1 'n1' ... 1200 B ... 200 B"));
  problem.nodes[1].held = 600;
  problem.nodes[2].held = 600;
  EXPECT_TRUE(check(problem).ok());
  problem.nodes[1].together = problem.nodes[2].together = 4;
  EXPECT_THAT(check(problem), refuses(ErrorCode::limit, "node 1 ... company 4 ... 200 B"));
  problem.nodes[1].together = kAnywhere;
  problem.nodes[0].held = 900;
  EXPECT_THAT(check(problem), refuses(ErrorCode::limit, "2100 ... 100 more ... 2000"));
}

TEST(PlaceProblem, ContradictionsAreNamedAsAChain) {
  PlaceProblem problem = three();
  problem.nodes[0].together = problem.nodes[2].together = 1;
  problem.nodes[0].pinned = 0;
  problem.nodes[2].pinned = 1;
  EXPECT_THAT(check(problem),
              refuses(ErrorCode::bad_input, "node 0 ... device 0 ... node 2 ... device 1"));
  problem = three();
  problem.nodes[1].seconds = {kCannotRun};
  EXPECT_THAT(check(problem), refuses(ErrorCode::bad_input, "no device can run node 1 'n1'"));
}

TEST(PlaceProblem, PlacementsAreChecked) {
  PlaceProblem problem = three();
  problem.nodes[0].pinned = 1;
  problem.nodes[1].together = problem.nodes[2].together = 0;
  EXPECT_TRUE(check(problem, {{1, 0, 0}, {}}).ok());
  EXPECT_THAT(check(problem, {{0, 0, 0}, {}}), says("node 0 ... device 0 ... device 1"));
  EXPECT_THAT(check(problem, {{1, 0, 1}, {}}), says("node 2 ... device 1 ... node 1"));
  EXPECT_THAT(check(problem, {{1, 2, 2}, {}}), says("node 1 ... device 2"));
  EXPECT_THAT(check(problem, {{1, 0}, {}}), says("2 ... 3"));
  EXPECT_THAT(check(problem, {{1, 0, 0}, {1}}), says("1 priorities"));
}

// ---- hone's text -------------------------------------------------------------------------------

TEST(PlaceText, IsReadBackAsItWas) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    PlaceProblem problem = random_place_problem(
        {.devices = rng.between(1, 4), .two_targets = rng.chance(0.5), .backward = rng.chance(0.3)},
        rng);
    if (rng.chance(0.3)) problem.ports.assign(problem.system.targets.size(), 0.1 / 3);
    if (!check(problem).ok()) continue;
    const std::string text = print(problem);
    const Result<PlaceProblem> again = parse_place_text(text, "p.place");
    ASSERT_TRUE(again.ok()) << again.error().to_string() << text;
    EXPECT_EQ(*again, problem) << text;
  }
}

TEST(PlaceText, ErrorsHaveAPlace) {
  const std::string text = print(three());
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string changed = text;
    const size_t at = changed.find(from);
    EXPECT_NE(at, changed.npos) << from;
    return parse_place_text(changed.replace(at, from.size(), to), "p.place");
  };
  const auto lines = static_cast<int64_t>(std::ranges::count(text, '\n'));
  const int64_t tensor = lines - 2;  // the first of two
  EXPECT_THAT(with("tensor 0 to 1", "tensor 0 to 9"),
              refuses(ErrorCode::bad_input, fmt::format("p.place:{}:15 ... node 9", tensor)));
  EXPECT_THAT(with("node 1", "node 0"), says("p.place ... node 0"));
  EXPECT_THAT(with("1 ms", "-1 ms"), says("p.place ... -1"));
  EXPECT_THAT(with("\n  node 1", ", on 5\n  node 1"), says("p.place ... 5"));
  EXPECT_THAT(with("tensor", "tenser"), says("p.place ... tensor"));
  EXPECT_THAT(with("cores = 1", "cores = 0"), says("p.place:5"));
  EXPECT_THAT(parse_place_text("placement \"x\" {\n  system \"s\" {\n", "p.place"),
              says("p.place:3"));
  EXPECT_THAT(parse_place_text("placement \"x\" {\n  node 1 = 1 ms\n", "p.place"),
              says("p.place:2:3 ... system"));
}

// ---- JSON --------------------------------------------------------------------------------------

constexpr std::string_view kGraph = R"({"maxSizePerFPGA": 100.0, "maxFPGAs": 2, "maxCPUs": 1,
  "nodes": [
    {"id": 4, "name": "a", "supportedOnFpga": 1, "cpuLatency": 20, "fpgaLatency": 2, "size": 60,
     "isBackwardNode": false, "colorClass": 3},
    {"id": 9, "supportedOnFpga": true, "cpuLatency": 10.5, "fpgaLatency": 1.5, "size": 50.0,
     "isBackwardNode": 0},
    {"id": 7, "supportedOnFpga": false, "cpuLatency": 1, "fpgaLatency": 0, "size": 0,
     "isBackwardNode": 1}],
  "edges": [{"sourceId": 4, "destId": 9, "cost": 0.5, "size": 1000},
            {"sourceId": 4, "destId": 7, "cost": 0.5, "size": 1000}]})";

Result<PlaceProblem> graph_with(std::string_view from, std::string_view to) {
  std::string text(kGraph);
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return parse_partition_json(text.replace(at, from.size(), to), "g.json");
}

TEST(PartitionJson, IsRead) {
  const PlaceProblem problem = parse_partition_json(kGraph, "g.json").value();
  EXPECT_EQ(problem.devices(), 3U);
  EXPECT_EQ(problem.nodes[0].name, "a");
  EXPECT_EQ(problem.nodes[0].together, 3);
  EXPECT_EQ(problem.nodes[1].together, kAnywhere);
  EXPECT_THAT(problem.nodes[1].seconds, ElementsAre(1.5e-3, 10.5e-3));
  EXPECT_THAT(problem.nodes[2].seconds, ElementsAre(kCannotRun, 1e-3));
  EXPECT_TRUE(problem.nodes[2].backward);
  ASSERT_EQ(problem.tensors.size(), 1U);
  EXPECT_THAT(problem.tensors[0].users, ElementsAre(1, 2));
  // 1000 bytes take half a millisecond on each accelerator, and nothing on a host.
  EXPECT_DOUBLE_EQ(problem.tensors[0].bytes * problem.ports[0], 0.5e-3);
  EXPECT_EQ(problem.ports[1], 0);
  EXPECT_DOUBLE_EQ(problem.tensors[0].bytes, 1000);
}

TEST(PartitionJson, IsWrittenBack) {
  const PlaceProblem problem = parse_partition_json(kGraph, "g.json").value();
  const std::string text = print_partition_json(problem).value();
  EXPECT_EQ(parse_partition_json(text, "g.json").value(), problem) << text;
  PlaceProblem pinned = problem;
  pinned.nodes[0].pinned = 0;
  EXPECT_THAT(print_partition_json(pinned), refuses(ErrorCode::unsupported, "pins"));
  EXPECT_THAT(print_partition_json(three()), refuses(ErrorCode::unsupported, "accelerators"));
}

TEST(PartitionJson, ErrorsNameTheItem) {
  EXPECT_THAT(graph_with("\"id\": 9", "\"id\": 4"),
              refuses(ErrorCode::bad_input, "g.json, item 1 of 'nodes' ... id 4"));
  EXPECT_THAT(graph_with("\"fpgaLatency\": 2", "\"fpgaLatency\": -2"),
              says("item 0 of 'nodes' ... 'fpgaLatency' ... -2"));
  EXPECT_THAT(graph_with("\"fpgaLatency\": 2", "\"fpgaLatency\": \"2\""), says("'fpgaLatency'"));
  EXPECT_THAT(graph_with("\"cpuLatency\": 20, ", ""), says("item 0 ... 'cpuLatency'"));
  EXPECT_THAT(graph_with("\"destId\": 7", "\"destId\": 8"), says("item 1 of 'edges' ... 8"));
  EXPECT_THAT(graph_with("\"cost\": 0.5, \"size\": 1000}]", "\"cost\": 0.6}]"),
              says("item 1 of 'edges' ... 0.6 ... 0.5"));
  EXPECT_THAT(graph_with("\"maxFPGAs\": 2", "\"maxFPGAs\": 2000"), says("'maxFPGAs'"));
  EXPECT_THAT(graph_with("\"maxFPGAs\": 2, \"maxCPUs\": 1", "\"maxFPGAs\": 0, \"maxCPUs\": 0"),
              says("0 accelerators"));
  EXPECT_THAT(graph_with("\"size\": 60", "\"size\": 1e30"), says("item 0 ... 'size'"));
  EXPECT_THAT(graph_with("\"maxSizePerFPGA\": 100.0, \"maxFPGAs\": 2, \"maxCPUs\": 1",
                         "\"maxSizePerFPGA\": 100.0, \"maxFPGAs\": 2, \"maxCPUs\": 0"),
              says("node 7"));
  EXPECT_THAT(parse_partition_json("[1]", "g.json"), says("g.json"));
  EXPECT_THAT(parse_partition_json("{", "g.json"), says("g.json ... JSON"));
}

TEST(PartitionJson, ObjectsOfManyFieldsAreRefused) {
  std::string text = "{";
  for (int i = 0; i < 300; ++i) text += fmt::format("\"k{}\": 0, ", i);
  EXPECT_THAT(parse_partition_json(text + "\"nodes\": []}", "p"),
              refuses(ErrorCode::limit, "p ... 256 fields"));
}

TEST(PartitionJson, WhatItCannotSayIsRefused) {
  PlaceProblem problem = parse_partition_json(R"({"maxSizePerFPGA": 9, "maxFPGAs": 2, "nodes": [
        {"id": 0, "cpuLatency": 9, "fpgaLatency": 1, "size": 1}], "edges": []})",
                                              "p")
                             .value();
  EXPECT_TRUE(print_partition_json(problem).ok());
  problem.system.devices[0].count = 1;
  problem.system.devices.push_back(problem.system.devices[0]);
  problem.system.devices[1].memory_bytes = 5;
  EXPECT_THAT(print_partition_json(problem), refuses(ErrorCode::unsupported, "differ"));
}

TEST(PartitionJson, SplitsSayWhereNodesAre) {
  const PlaceProblem problem = parse_partition_json(kGraph, "g.json").value();
  const std::string text = print_split(problem, {{1, 1, 2}, {}}, std::vector<uint32_t>{1, 0, 2},
                                       std::vector<double>{0, 4e-3, 1e-3});
  EXPECT_THAT(text, says("\"maxLoad\": 4 ... \"fpgas\" ... \"nodes\": [] ... \"nodes\": [9, 4] ... "
                         "\"cpus\" ... \"load\": 1 ... [7]"));
  const DevicePlacement placement = parse_split(text, "s.json", problem).value();
  EXPECT_THAT(placement.device, ElementsAre(1, 1, 2));
  EXPECT_GT(placement.priority[1], placement.priority[0]);
  const auto bad = [&](std::string_view split) { return parse_split(split, "s.json", problem); };
  EXPECT_THAT(bad(R"({"fpgas": [{"nodes": [4, 9]}]})"),
              refuses(ErrorCode::bad_input, "s.json ... node 7"));
  EXPECT_THAT(bad(R"({"fpgas": [{"nodes": [4, 4, 9, 7]}]})"), says("node 4 ... twice"));
  EXPECT_THAT(bad(R"({"fpgas": [{"nodes": [5]}]})"), says("item 0 of 'fpgas' ... '5'"));
  EXPECT_THAT(bad(R"({"cpus": [{"nodes": []}, {"nodes": [4]}]})"), says("item 1 of 'cpus' ... 1"));
}

// ---- Tasks -------------------------------------------------------------------------------------

constexpr std::string_view kTasks =
    "5\n0, 1, \n0,1 , 0,\n2, 2, 1,\n"
    "10000000000,40000000000\n20000000000,5\n30000000000, 0,formation\n";

TEST(TaskText, IsReadAndWritten) {
  const PlaceProblem problem = parse_task_text(kTasks, "t.txt", task_system(4).value()).value();
  ASSERT_EQ(problem.nodes.size(), 3U);
  EXPECT_EQ(problem.devices(), 4U);
  EXPECT_THAT(problem.nodes[1].seconds, ElementsAre(2e-3));
  EXPECT_EQ(problem.nodes[2].name, "formation");
  ASSERT_EQ(problem.tensors.size(), 2U);
  EXPECT_THAT(problem.tensors[0].users, ElementsAre(1, 2));
  EXPECT_EQ(problem.tensors[0].bytes, 4e10);
  const std::string text = print_task_text(problem).value();
  EXPECT_EQ(parse_task_text(text, "t.txt", problem.system).value(), problem) << text;
  PlaceProblem held = problem;
  held.nodes[0].held = 1;
  EXPECT_THAT(print_task_text(held), refuses(ErrorCode::unsupported, "memory"));
}

TEST(TaskText, ErrorsNameTheLine) {
  const auto with = [](std::string_view from, std::string_view to) {
    std::string text(kTasks);
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    return parse_task_text(text.replace(at, from.size(), to), "t.txt", task_system(2).value());
  };
  EXPECT_THAT(with("5\n", "x\n"), refuses(ErrorCode::bad_input, "t.txt:1 ... 'x'"));
  EXPECT_THAT(with("5\n", "2\n"), says("t.txt:1 ... no task"));
  EXPECT_THAT(with("5\n", "6\n"), says("t.txt:7 ... task 3"));
  EXPECT_THAT(with("5\n", "4\n"), says("t.txt:7 ... 2 tasks"));
  EXPECT_THAT(with("2, 2, 1", "2, 9, 1"), says("t.txt:4 ... 9"));
  EXPECT_THAT(with("2, 2, 1", "2, 2"), says("t.txt:4 ... 2 edges"));
  EXPECT_THAT(with("2, 2, 1", "2, 0, 1"), says("t.txt ... circle"));
  EXPECT_THAT(with(",5\n", "\n"), says("t.txt:6 ... task 1"));
  EXPECT_THAT(with(",5\n", ",-5\n"), says("t.txt:6 ... '-5'"));
}

}  // namespace
}  // namespace hone::HONE_FILE
