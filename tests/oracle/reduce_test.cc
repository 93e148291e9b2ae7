#include "oracle/reduce.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "plan/planned.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone::HONE_FILE {
namespace {

DifferentialCase case_of(std::string_view graph, std::string_view plan = "") {
  DifferentialCase one;
  one.graph = parse_graph(graph).value();
  if (!plan.empty()) one.plan = parse_plan(plan).value();
  for (Type type : one.graph.input_types()) one.inputs.push_back(Tensor::zeros(type));
  return one;
}

// The case that is left when `fails` stands for a fault.
DifferentialCase reduced(const DifferentialCase& one,
                         const std::function<bool(const DifferentialCase&)>& fails) {
  const CaseRunner run = [&](const DifferentialCase& smaller) {
    EXPECT_TRUE(verify(smaller.graph).ok());
    EXPECT_EQ(smaller.inputs.size(), smaller.graph.inputs().size());
    return fails(smaller) ? Verdict::crashed : Verdict::passed;
  };
  EXPECT_TRUE(fails(one));
  const DifferentialCase result = reduce(one, Verdict::crashed, host_target().value(), run);
  EXPECT_TRUE(fails(result));
  return result;
}

int computed(const Graph& graph) {
  int count = 0;
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) != Opcode::parameter && graph.opcode(n) != Opcode::constant) ++count;
  return count;
}

const Graph* with_op(const Graph& graph, Opcode opcode) {
  for (NodeId n : graph.nodes()) {
    if (graph.opcode(n) == opcode) return &graph;
    for (const GraphRef& region : graph.regions(n))
      if (const Graph* found = with_op(*region, opcode)) return found;
  }
  return nullptr;
}

constexpr std::string_view kGraph = R"(graph @main(%x: f32[4, 12], %w: f32[12, 6], %b: f32[6]) {
  %s = sin %x : f32[4, 12]
  %d = dot %s, %w {lhs_contract = [1], rhs_contract = [0]} : f32[4, 6]
  %c = broadcast %b {dims = [4, 6], map = [1]} : f32[4, 6]
  %a = add %d, %c : f32[4, 6]
  %t = tanh %a : f32[4, 6]
  %e = exp %t : f32[4, 6]
  return %t, %e, %s
})";

TEST(Reduce, LeavesTheOpThatFails) {
  const DifferentialCase result = reduced(case_of(kGraph), [](const DifferentialCase& one) {
    return with_op(one.graph, Opcode::tanh);
  });
  EXPECT_EQ(computed(result.graph), 1) << print(result);
  EXPECT_EQ(result.graph.type(result.graph.outputs()[0]).static_elements(), 1) << print(result);
  EXPECT_EQ(result.plan, Plan());
}

TEST(Reduce, MakesDimsAsSmallAsTheyCanBe) {
  const DifferentialCase result = reduced(case_of(kGraph), [](const DifferentialCase& one) {
    for (NodeId n : one.graph.nodes())
      if (one.graph.opcode(n) == Opcode::dot)
        return one.graph.type(one.graph.operands(n)[1]).dim(0).value() >= 3;
    return false;
  });
  EXPECT_EQ(computed(result.graph), 1) << print(result);
  EXPECT_EQ(result.graph.input_types()[0].to_string(), "f32[1, 3]");
  EXPECT_EQ(result.graph.input_types()[1].to_string(), "f32[3, 1]");
}

TEST(Reduce, KeepsTheValuesThatWereComputed) {
  DifferentialCase one = case_of(R"(graph @main(%x: f32[2]) {
    %y = cos %x : f32[2]
    %z = exp %y : f32[2]
    return %z
  })");
  one.inputs[0] = Tensor::from_reals(one.inputs[0].type(), std::vector<double>{0, 0});
  const DifferentialCase result =
      reduced(one, [](const DifferentialCase& one) { return with_op(one.graph, Opcode::exp); });
  EXPECT_EQ(computed(result.graph), 1);
  EXPECT_EQ(result.inputs[0].real_at(0), 1);
}

TEST(Reduce, LeavesTheDecisionThatFails) {
  const Target target = host_target().value();
  const auto lanes_of_tanh = [&](const DifferentialCase& one) {
    const Result<Graph> graph = prepare(one.graph);
    if (!graph.ok() || with_op(*graph, Opcode::tanh) == nullptr) return false;
    const Result<Plan> plan = complete(*graph, one.plan, restricted(target, one.isa));
    if (!plan.ok()) return false;
    for (const auto& [hash, schedule] : plan->schedule)
      if (schedule.lanes == std::vector<Tile>{{1, 32}}) return true;
    return false;
  };
  DifferentialCase one = case_of(kGraph);
  const Graph graph = prepare(one.graph).value();
  one.plan = complete(graph, parse_plan("plan @main { fuse @k9 = {%a, %t, %e} }").value(),
                      restricted(target, one.isa))
                 .value();
  for (auto& [hash, schedule] : one.plan.schedule)
    if (schedule.algorithm() == Algorithm::nest && schedule.order.size() == 2)
      schedule = {.order = {1, 0},
                  .threads = 1,
                  .lanes = {{1, 32}},
                  .unroll = {{0, 4}},
                  .own = NestFields()};
  const DifferentialCase result = reduced(one, lanes_of_tanh);
  EXPECT_EQ(computed(result.graph), 1) << print(result);
  ASSERT_EQ(result.plan.schedule.size(), 1U) << print(result);
  const Schedule expected = {.order = {0, 1}, .lanes = {{1, 32}}, .own = NestFields()};
  EXPECT_EQ(result.plan.schedule.begin()->second, expected) << print(result);
  EXPECT_TRUE(result.plan.offset.empty());
}

// Each copy could be alone; together they give a reader two.
TEST(Reduce, TakesCopiesThatDoNotGoTogether) {
  const DifferentialCase one = case_of(kGraph, R"(plan @main {
    copy %e.c = %t for [%e]
    copy %e.d = %t for [%e]
  })");
  const DifferentialCase result = reduced(one, [](const DifferentialCase& one) {
    const Result<Graph> graph = prepare(one.graph);
    return graph.ok() && with_op(*graph, Opcode::tanh);
  });
  EXPECT_EQ(computed(result.graph), 1) << print(result);
}

TEST(Reduce, LeavesTheCopyThatFails) {
  DifferentialCase one = case_of(kGraph, R"(plan @main {
    copy %e.c = %t for [%e]
    copy %s.c = %s for [%d]
    layout %s.c = [1, 0]
  })");
  const DifferentialCase result = reduced(one, [](const DifferentialCase& one) {
    const Result<Graph> graph = prepare(one.graph);
    return graph.ok() && one.plan.copy.contains("s.c") && planned(one.plan, *graph).ok();
  });
  EXPECT_EQ(computed(result.graph), 1) << print(result);
  Plan expected;
  expected.copy["s.c"] = {"s", {"d"}};
  EXPECT_EQ(result.plan, expected) << print(result);
}

TEST(Reduce, GoesIntoRegions) {
  const DifferentialCase result = reduced(
      case_of(R"(graph @main(%x: f32[3], %n: i32[]) {
    %y, %k = while %x, %n
      condition (%a: f32[3], %i: i32[]) {
        %zero = constant 0 : i32[]
        %more = compare %i, %zero {direction = gt} : bool[]
        return %more
      }
      body (%b: f32[3], %j: i32[]) {
        %one = constant 1 : i32[]
        %less = sub %j, %one : i32[]
        %c = tanh %b : f32[3]
        %d = exp %c : f32[3]
        return %d, %less
      }
    return %y
  })"),
      [](const DifferentialCase& one) { return with_op(one.graph, Opcode::tanh) != nullptr; });
  EXPECT_EQ(computed(result.graph), 1) << print(result);
}

TEST(Reduce, GivesBackWhatCannotBeSmaller) {
  const DifferentialCase one =
      case_of("graph @main(%x: f32[]) {\n  %y = exp %x : f32[]\n  return %y\n}");
  const DifferentialCase result = reduced(
      one, [](const DifferentialCase& one) { return with_op(one.graph, Opcode::exp) != nullptr; });
  EXPECT_EQ(print(result.graph), print(one.graph));
}

}  // namespace
}  // namespace hone::HONE_FILE
