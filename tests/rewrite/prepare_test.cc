#include "rewrite/prepare.h"

#include <gtest/gtest.h>

#include "ir/functional.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "rewrite/passes.h"
#include "tests/base/says_testing.h"
#include "zoo/random/random_graph.h"

namespace hone::HONE_FILE {
namespace {

using tested::says;

void expect_all_named(const Graph& graph) {
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    EXPECT_FALSE(graph.name(ValueId{i}).empty()) << print(graph);
  for (NodeId n : graph.nodes()) {
    EXPECT_FALSE(is_composite(graph.opcode(n)));
    for (const GraphRef& region : graph.regions(n)) expect_all_named(*region);
  }
}

// All values that plans may speak of have names: constants of one element are numbers in the code.
void expect_same_names(const Graph& a, const Graph& b) {
  ASSERT_EQ(a.value_count(), b.value_count());
  for (uint32_t i = 0; i < a.value_count(); ++i)
    if (!a.type(ValueId{i}).elements().is(1) ||
        a.opcode(a.producer(ValueId{i})) != Opcode::constant)
      EXPECT_EQ(a.name(ValueId{i}), b.name(ValueId{i}));
}

Graph prepared(std::string_view text) {
  Graph graph = prepare(parse_graph(text).value()).value();
  EXPECT_TRUE(verify(graph).ok());
  return graph;
}

TEST(Prepare, NamesWhatHasNoNameAfterWhatIsComputedFromIt) {
  const Graph graph = prepared(R"(graph @g(%x: f32[4, 8], %1: f32[4, 8]) -> (f32[4, 8], f32[4]) {
    %h = softmax %x {axis = 1}
    %2 = add %h, %1
    %3 = exp %2
    %4 = reduce %3 {kind = sum, axes = [1]}
    return %3, %4
  })");
  EXPECT_EQ(print(graph), R"(graph @g(%x: f32[4, 8], %input1: f32[4, 8]) -> (f32[4, 8], f32[4]) {
  %h.reduce = reduce %x {kind = max, axes = [1]} : f32[4]
  %h.reshape = reshape %h.reduce {dims = [4, 1]} : f32[4, 1]
  %h.broadcast = broadcast %h.reshape {dims = [4, 8], map = [0, 1]} : f32[4, 8]
  %h.sub = sub %x, %h.broadcast : f32[4, 8]
  %h.exp = exp %h.sub : f32[4, 8]
  %h.reduce_2 = reduce %h.exp {kind = sum, axes = [1]} : f32[4]
  %h.reshape_2 = reshape %h.reduce_2 {dims = [4, 1]} : f32[4, 1]
  %h.broadcast_2 = broadcast %h.reshape_2 {dims = [4, 8], map = [0, 1]} : f32[4, 8]
  %h = div %h.exp, %h.broadcast_2 : f32[4, 8]
  %output0.add = add %h, %input1 : f32[4, 8]
  %output0 = exp %output0.add : f32[4, 8]
  %output1 = reduce %output0 {kind = sum, axes = [1]} : f32[4]
  return %output0, %output1
}
)");
}

TEST(Prepare, KeepsNamesAndAvoidsThem) {
  const Graph graph = prepared(R"(graph @g(%x: f32[4]) -> f32[4] {
    %y.exp = neg %x
    %1 = exp %y.exp
    %2 = exp %1
    %y = add %2, %x
    return %y
  })");
  EXPECT_EQ(graph.name(graph.result(NodeId{1})), "y.exp");
  EXPECT_EQ(graph.name(graph.result(NodeId{2})), "y.exp_2");
  EXPECT_EQ(graph.name(graph.result(NodeId{3})), "y.exp_3");
}

TEST(Prepare, ANodeElsewhereChangesNoOtherNames) {
  const Graph before = prepared(R"(graph @g(%x: f32[4], %z: f32[4]) -> (f32[4], f32[4]) {
    %a = softmax %x {axis = 0}
    %b = softmax %z {axis = 0}
    return %a, %b
  })");
  const Graph after = prepared(R"(graph @g(%x: f32[4], %z: f32[4]) -> (f32[4], f32[4]) {
    %1 = tanh %x
    %a = softmax %1 {axis = 0}
    %b = softmax %z {axis = 0}
    return %a, %b
  })");
  std::set<std::string> names;
  for (uint32_t i = 0; i < after.value_count(); ++i) names.emplace(after.name(ValueId{i}));
  for (uint32_t i = 0; i < before.value_count(); ++i)
    EXPECT_TRUE(names.contains(std::string(before.name(ValueId{i})))) << before.name(ValueId{i});
}

TEST(Prepare, NamesEveryResultAndWhatIsInRegions) {
  const Graph graph = prepared(R"(graph @g(%p: bool[], %x: f32[4], %k: i32[4])
      -> (f32[4], i32[4], f32[4]) {
    %1, %2 = sort %k, %x {axis = 0}
    %3 = if %p, %x then (%1: f32[4]) {
      %2 = exp %1
      %3 = neg %2
      return %3
    } else (%x: f32[4]) {
      return %x
    }
    %4 = neg %2
    return %4, %1, %3
  })");
  expect_all_named(graph);
}

TEST(Prepare, EqualElementsAreOneElementInTheCode) {
  Builder b;
  const Value x = b.parameter("x", DType::f32, {3, 5});
  const Value c = b.constant(
      Tensor::from_reals(Type::get(DType::f32, {3, 5}), std::vector<double>(15, 2.5)), "c");
  const Graph graph = prepare(b.finish({x * c}).value()).value();
  EXPECT_EQ(print(graph), R"(graph @main(%x: f32[3, 5]) -> f32[3, 5] {
  %c.constant = constant 2.5 : f32[]
  %c = broadcast %c.constant {dims = [3, 5], map = []} : f32[3, 5]
  %output0 = mul %x, %c : f32[3, 5]
  return %output0
}
)");
}

// Results may differ as far as 16-bit reals allow it.
void expect_same_meaning(const Graph& a, const Graph& b, uint64_t seed) {
  const std::vector<Tensor> inputs = random_graph_inputs(a, seed);
  const Result<std::vector<Tensor>> want = evaluate(a, inputs), got = evaluate(b, inputs);
  if (!want.ok()) return;
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  for (size_t i = 0; i < want->size(); ++i) {
    if (!is_real((*want)[i].dtype())) {
      EXPECT_TRUE((*want)[i].same_bytes((*got)[i]));
      continue;
    }
    for (int64_t e = 0; e < (*want)[i].elements(); ++e)
      ASSERT_NEAR((*want)[i].real_at(e), (*got)[i].real_at(e),
                  0.02 * (1 + std::abs((*want)[i].real_at(e))));
  }
}

TEST(Prepare, TwiceIsOnceAndTheMeaningStays) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = random_graph({.seed = seed, .symbolic = seed % 3 == 0});
    Result<Graph> once = prepare(graph);
    ASSERT_TRUE(once.ok()) << once.error().to_string();
    ASSERT_TRUE(verify(*once).ok()) << verify(*once).error().to_string();
    expect_all_named(*once);
    const Graph twice = prepare(*once).value();
    EXPECT_EQ(structural_hash(twice), structural_hash(*once));
    expect_same_names(twice, *once);
    if (!graph.is_static()) continue;
    expect_same_meaning(graph, *once, seed);
  }
}

TEST(Prepare, IsAListOfPassesThatCanBeWatched) {
  std::vector<std::string> seen;
  PrepareOptions options;
  options.passes.observer = [&](const PassReport& report, const Graph& after) {
    seen.emplace_back(report.name);
    EXPECT_EQ(report.nodes_after, after.node_count());
  };
  const Graph graph = random_graph({.seed = 3});
  EXPECT_EQ(print(prepare(graph, options).value()), print(prepare(graph).value()));
  EXPECT_EQ(seen, std::vector<std::string>(std::begin(kPreparation), std::end(kPreparation)));
}

TEST(Prepare, MeansTheSameWithoutEachOptionalPass) {
  std::vector<std::vector<std::string>> choices = {{}};
  for (const Pass& pass : all_passes()) {
    if (pass.use != PassUse::optional) continue;
    choices.push_back({std::string(pass.name)});
    choices[0].emplace_back(pass.name);
  }
  ASSERT_EQ(choices.size(), 14U);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = random_graph({.seed = seed});
    for (const std::vector<std::string>& without : choices) {
      SCOPED_TRACE(testing::Message() << seed << " " << testing::PrintToString(without));
      const Graph left = prepare(graph, {.without = without, .passes = {}}).value();
      expect_all_named(left);
      expect_same_meaning(graph, left, seed);
    }
  }
}

TEST(Prepare, SaysWhichPassesCanBeLeftOut) {
  const std::string list =
      "integers, phases, bytes, fold, sink, splats, spelled, late, between, "
      "cse, first, unshare, donate";
  EXPECT_THAT(check_can_leave_out("flod"), says("pass 'flod' ... " + list));
  EXPECT_THAT(check_can_leave_out("expand"), says("pass 'expand' ... required ... " + list));
  EXPECT_THAT(check_can_leave_out("dce"), says("pass 'dce' ... " + list));
  EXPECT_TRUE(check_can_leave_out("cse").ok());
  EXPECT_EQ(prepare(random_graph({}), {.without = {"names"}, .passes = {}}).error().code(),
            ErrorCode::usage);
}

}  // namespace
}  // namespace hone::HONE_FILE
