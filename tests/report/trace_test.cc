#include "report/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "ir/text.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"
#include "target/target.h"

namespace hone::HONE_FILE {
namespace {

using ::testing::HasSubstr;

std::vector<nlohmann::json> events_of(const Trace& trace) {
  const nlohmann::json parsed = nlohmann::json::parse(trace.json("hone run m"));
  std::vector<nlohmann::json> events;
  for (const nlohmann::json& event : parsed.at("traceEvents"))
    if (event.at("ph") == "X") events.push_back(event);
  return events;
}

TEST(Trace, HasEventsInMicrosecondsSinceTheFirst) {
  Trace trace;
  trace.add({"stage", "plan"}, {5'000'000, 5'001'500, 7});
  trace.add({"compile", "dot_add"}, {4'000'000, 4'250'000, 9});
  const nlohmann::json parsed = nlohmann::json::parse(trace.json("hone run m"));
  EXPECT_EQ(parsed.at("traceEvents").size(), 5u);  // the process, two threads
  EXPECT_EQ(parsed.at("traceEvents")[0].at("args").at("name"), "hone run m");
  const std::vector<nlohmann::json> events = events_of(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("name"), "plan");
  EXPECT_EQ(events[0].at("cat"), "stage");
  EXPECT_EQ(events[0].at("tid"), 7);
  EXPECT_DOUBLE_EQ(events[0].at("ts").get<double>(), 1000);
  EXPECT_DOUBLE_EQ(events[0].at("dur").get<double>(), 1.5);
  EXPECT_DOUBLE_EQ(events[1].at("ts").get<double>(), 0);
}

TEST(Trace, OfNothingIsEmpty) { EXPECT_TRUE(events_of(Trace()).empty()); }

TEST(Trace, SpellsOutAndShortensNamesOfModels) {
  Trace trace;
  trace.add({"launch", "a\"\\\n\xff</script>", {{"layers", std::string(10'000, 'x')}}}, {1, 2, 1});
  const std::vector<nlohmann::json> events = events_of(trace);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].at("name"), "a\"\\\\u{000a}\\xff</script>");
  EXPECT_LE(events[0].at("args").at("layers").get<std::string>().size(), 120u);
}

TEST(Trace, CountsWhatHasNoRoom) {
  Trace trace(2);
  for (int64_t i = 0; i < 5; ++i) trace.add({"stage", "plan"}, {i, i + 1, 1});
  EXPECT_EQ(events_of(trace).size(), 2u);
  EXPECT_EQ(trace.lost(), 3);
  EXPECT_EQ(nlohmann::json::parse(trace.json("p")).at("otherData").at("left_out"), 3);
}

TEST(Trace, TakesEventsOfManyThreads) {
  Trace trace;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&trace] {
      for (int k = 0; k < 100; ++k) trace.add({"compile", "k"}, SpanClock().span());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(events_of(trace).size(), 400u);
}

TEST(Trace, NamesLaunchesByKernelAndLayers) {
  RunTrace runs;
  runs.add(0, {10, 20, 1});
  runs.add(1, {20, 30, 1});
  runs.program = 1;
  runs.add(0, {30, 40, 1});  // of another program
  Trace trace;
  trace.add(runs, 0, {{.command = "k0", .kernel = "dot"}, {.command = "c0", .kernel = ""}},
            {{"k0", {{"layers", "conv1"}, {"moves", "8 bytes"}}}});
  const std::vector<nlohmann::json> events = events_of(trace);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].at("name"), "dot");
  EXPECT_EQ(events[0].at("args").at("layers"), "conv1");
  EXPECT_EQ(events[0].at("args").at("moves"), "8 bytes");
  EXPECT_EQ(events[0].at("args").at("command"), "k0");
  EXPECT_EQ(events[1].at("cat"), "copy");
}

// Layers of a graph under its plan, and runs of a model.
TEST(Trace, FollowsAModel) {
  const Graph graph = parse_graph(R"(
graph @g(%x: f32[16, 32], %w: f32[32, 64]) -> f32[16, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})")
                          .value();
  int kernels = 0;
  CompileOptions options;
  options.kernel_observer = [&](const std::string& kernel, const Span& span) {
    ++kernels;
    EXPECT_FALSE(kernel.empty());
    EXPECT_LE(span.begin, span.end);
  };
  const auto native = NativeModel::make(model_of(graph), host_target().value(), options).value();
  RunTrace runs;
  std::vector<UnitTimes> times;
  native->code().keep_sources();
  const std::vector<Tensor> inputs = {Tensor::zeros(graph.type(graph.inputs()[0])),
                                      Tensor::zeros(graph.type(graph.inputs()[1]))};
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(native->run(inputs, {.trace = &runs}, &times).ok());
  EXPECT_GE(kernels, 1);
  Trace trace;
  ASSERT_TRUE(add_runs(trace, runs, times, *native, {{"h", "layer one"}}).ok());
  EXPECT_EQ(events_of(trace).size(), runs.entries.size());
  EXPECT_GE(runs.entries.size(), 3u);
  EXPECT_THAT(trace.json("p"), HasSubstr(R"("layers":"layer one)"));
}

TEST(Trace, CountsLayersBehindTheFirst) {
  Graph graph = prepare(parse_graph(R"(
graph @g(%x: f32[8]) -> f32[8] {
  %a = tanh %x
  %b = neg %a
  %c = abs %b
  %d = exp %c
  %e = neg %d
  %f = abs %e
  %g = tanh %f
  %h = neg %g
  return %h
})")
                            .value())
                    .value();
  const Target target = host_target().value();
  const Plan plan = complete(graph, {}, target).value();
  LayerNames names;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"})
    names[name] = "l" + std::string(name);
  const CommandFacts facts = command_facts(graph, plan, target, names).value();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_THAT(facts.begin()->second.at("layers"), HasSubstr(" more"));
  EXPECT_EQ(facts.begin()->second.at("moves"), format_bytes(64)) << "eight numbers in, eight out";
}

}  // namespace
}  // namespace hone::HONE_FILE
