#include "report/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "compile/native_model.h"
#include "cost/analytic.h"
#include "cost/table_cost.h"
#include "ir/model_text.h"
#include "ir/text.h"
#include "plan/plan.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone::HONE_FILE {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kMlp = R"(
graph @g(%x: f32[16, 32], %w: f32[32, 64]) -> f32[16, 64] {
  %h = dot %x, %w {lhs_contract = [1], rhs_contract = [0]}
  %y = tanh %h
  return %y
})";

Target target() {
  Target target;
  target.name = "t";
  target.caches = {{.bytes = 32 << 10, .cores = 1, .bytes_per_second = 1e11}};
  target.memory_bytes = int64_t{1} << 30;
  target.memory_one_core = target.memory_all_cores = 1e10;
  target.peak(DType::f32) = 1e9;
  target.peak(DType::f64) = 5e8;
  return target;
}

// A plan of the graph that has these lines, and the table of a profile of it.
struct Planned {
  explicit Planned(std::string_view text, std::string_view lines = "plan @g {}")
      : graph(prepare(parse_graph(text).value()).value()),
        plan(complete(graph, parse_plan(lines).value(), target()).value()) {}

  SegmentProfile profile(const Profile& times, int64_t runs, const LayerNames& layers = {},
                         const Bindings& sizes = {}) const {
    return profile_of(times, runs, graph, plan, target(), AnalyticCost(target()), layers, sizes)
        .value();
  }
  std::string table(const Profile& times, int64_t runs, size_t most = 10) const {
    return profile_text(std::vector{profile(times, runs)}, most);
  }

  Graph graph;
  Plan plan;
};

TEST(Profile, TellsTimeShareAndRateOfSteps) {
  const Planned mlp(kMlp);
  ASSERT_EQ(mlp.plan.fuse.size(), 1u);
  const std::string& command = mlp.plan.fuse[0].kernel;
  // 2 * 16 * 32 * 64 + 16 * 64 operations in a fifth of a millisecond. The fastest of two runs of
  // each command counts
  // .
  const Profile times = {{"first", "", 2, 1e-3, 5e-5},
                         {command, "dot_tanh", 2, 5e-3, 2e-4},
                         {"again", "dot_tanh", 4, 7e-4, 1e-4},
                         {"last", "", 2, 1e-3, 5e-5}};
  const std::string text = mlp.table(times, 2);
  EXPECT_THAT(text, ContainsRegex("dot, tanh +" + command +
                                  " +f32.16, 64. +[a-z]+ +200 us +40.0% +[0-9.]+ us +33.3%\n"));
  EXPECT_THAT(text, ContainsRegex("\ndot_tanh +again x2 +200 us +40.0%\n"));
  EXPECT_THAT(text, ContainsRegex("\n.copies. +100 us +20.0%\n"));
  EXPECT_THAT(text, ContainsRegex("\nall +500 us\n"));
  EXPECT_LT(text.find("dot, tanh"), text.find("(copies)"));
}

// A table made of a profile has the measured times as prices.
TEST(Profile, OfATableCostShowsPricesThatAreTheTimes) {
  const Planned mlp(kMlp);
  const Profile times = {{mlp.plan.fuse[0].kernel, "dot_tanh", 4, 5e-3, 2e-4}};
  TableCost table(std::make_shared<AnalyticCost>(target()));
  ASSERT_TRUE(table.add(mlp.graph, mlp.plan, times).ok());
  EXPECT_EQ(table.size(), 1u);
  const SegmentProfile profile = profile_of(times, 2, mlp.graph, mlp.plan, target(), table).value();
  EXPECT_DOUBLE_EQ(profile.steps[0].seconds, 4e-4);
  EXPECT_DOUBLE_EQ(profile.steps[0].priced, 4e-4);
}

TEST(Profile, SumsUpWhatItLeavesOut) {
  const Profile times = {
      {"a", "x", 1, 1e-3, 1e-3}, {"b", "y", 1, 3e-3, 3e-3}, {"c", "z", 1, 4e-3, 4e-3}};
  const std::string text = Planned(kMlp).table(times, 1, 1);
  EXPECT_THAT(text, ContainsRegex("z +c +4.00 ms +50.0%\n2 others +4.00 ms +50.0%\n"));
  EXPECT_THAT(text, Not(HasSubstr("\ny ")));
}

// Values have the names of the file's values, and those on the way to them longer ones.
TEST(Profile, NamesStepsByTheLayersOfTheModel) {
  const Planned mlp(kMlp);
  const Profile times = {{mlp.plan.fuse[0].kernel, "dot_tanh", 1, 1e-3, 1e-3}};
  EXPECT_EQ(mlp.profile(times, 1).steps[0].label(), "dot, tanh");
  EXPECT_EQ(mlp.profile(times, 1, {{"y", "act"}}).steps[0].label(), "act: dot, tanh");
  const StepTime both = mlp.profile(times, 1, {{"y", "act"}, {"h", "fc"}}).steps[0];
  EXPECT_EQ(both.label(), "fc +1: dot, tanh");  // that of the contraction first
  EXPECT_THAT(both.layers, testing::ElementsAre("fc", "act"));

  const Planned softmax(
      "graph @g(%x: f32[4, 9]) -> f32[4, 9] { "
      "%y = softmax %x {axis = 1} return %y }");
  const Profile inner = {{softmax.plan.fuse[0].kernel, "k", 1, 1e-3, 1e-3}};
  EXPECT_THAT(softmax.profile(inner, 1, {{"y", "/head/Softmax"}}).steps[0].label(),
              testing::StartsWith("/head/Softmax: "));
}

TEST(Profile, NamesStepsByWeightsWhereValuesHaveNoNames) {
  const Planned zoo(R"(
    graph @g(%x: f32[16, 2]) -> f32[16, 2] {
      %"fc1/weight" = constant [1, 2, 3, 4] : f32[2, 2]
      %0 = dot %x, %"fc1/weight" {lhs_contract = [1], rhs_contract = [0]}
      return %0
    })");
  const Profile times = {{zoo.plan.fuse[0].kernel, "dot", 1, 1e-3, 1e-3}};
  EXPECT_EQ(zoo.profile(times, 1).steps[0].label(), "fc1: dot");
}

// A step without weights is where the step before it is.
TEST(Profile, NamesStepsWithoutLayersByTheOneBefore) {
  const Planned net(R"(
    graph @g(%x: f32[16, 2]) -> f32[2, 16] {
      %"fc1/weight" = constant [1, 2, 3, 4] : f32[2, 2]
      %0 = dot %x, %"fc1/weight" {lhs_contract = [1], rhs_contract = [0]}
      %1 = sort %0 {axis = 0}
      %2 = transpose %1 {permutation = [1, 0]}
      %3 = exp %2
      return %3
    })");
  Profile times;
  for (const std::string& step : net.plan.order) times.push_back({step, "k", 1, 1e-3, 1e-3});
  const SegmentProfile profile = net.profile(times, 1);
  const auto has = [&](std::string_view label) {
    return std::ranges::any_of(profile.steps,
                               [&](const StepTime& step) { return step.label() == label; });
  };
  EXPECT_TRUE(has("fc1: dot"));
  EXPECT_TRUE(has("after fc1: exp"));
}

// A loop's body is where the loop is.
TEST(Profile, NamesStepsOfLoopsByTheOneBefore) {
  const Planned net(R"(
    graph @g(%x: f32[16, 2], %xs: f32[5, 2]) -> f32[16, 2] {
      %"fc1/weight" = constant [1, 2, 3, 4] : f32[2, 2]
      %0 = dot %x, %"fc1/weight" {lhs_contract = [1], rhs_contract = [0]}
      %f = scan %0, %xs {carried = 1} body (%s: f32[16, 2], %r: f32[2]) {
        %b = broadcast %r {dims = [16, 2], map = [1]}
        %m = add %s, %b
        return %m
      }
      return %f
    })",
                    "plan @g { region %f.body { fuse @inner = {%b, %m} } }");
  const Profile times = {{net.plan.fuse[0].kernel, "dot", 1, 1e-3, 1e-3},
                         {"inner", "add", 5, 1e-3, 1e-4}};
  const SegmentProfile profile = net.profile(times, 1);
  ASSERT_EQ(profile.steps.size(), 2u);
  EXPECT_EQ(profile.steps[1].after, "fc1");
  EXPECT_EQ(profile.steps[1].bytes, 5 * (16 * 2 + 2 + 16 * 2) * 4) << "of five launches";
}

TEST(Profile, FitsInto100Columns) {
  const Planned mlp(kMlp);
  const Profile times = {{mlp.plan.fuse[0].kernel, "dot_tanh", 3000, 1e-3, 1e-3},
                         {"other", std::string(300, 'k'), 1, 1e-3, 1e-3}};
  const SegmentProfile profile =
      mlp.profile(times, 1, {{"y", "/a" + std::string(300, 'x') + "/b"}});
  const std::string text = profile_text(std::vector{profile}, 10);
  for (std::string_view line : split_lines(text)) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(text, ContainsRegex("\n/[.][.]b: dot, tanh +" + mlp.plan.fuse[0].kernel + " x3000 "));
  const auto json = nlohmann::json::parse(profile_json(std::vector{profile}));
  EXPECT_EQ(json[0]["steps"][0]["layers"][0].get<std::string>().size(), 304u);
  EXPECT_EQ(json[0]["steps"][0]["launches"], 3000);
}

// Whole words stay; one alone may be cut.
TEST(Profile, LeavesOutWholeWords) {
  const Planned mlp(kMlp);
  const Profile times = {{mlp.plan.fuse[0].kernel, "dot_tanh", 1, 1e-3, 1e-3}};
  const std::string layer = "encoder/layer.11/attention/output/dense/projection";
  const std::string text = profile_text(std::vector{mlp.profile(times, 1, {{"y", layer}})}, 10);
  const std::string label =
      text.substr(text.find("\n") + 1, text.find("  ", text.find("\n")) - text.find("\n") - 1);
  const size_t gap = label.find("..");
  ASSERT_NE(gap, std::string::npos) << label;
  const std::string whole = layer + ": dot, tanh";
  const std::string front = label.substr(0, gap), back = label.substr(gap + 2);
  EXPECT_TRUE(whole.starts_with(front) && whole.ends_with(back)) << label;
  EXPECT_THAT(front, testing::AnyOf(testing::EndsWith("/"), testing::EndsWith(".")));
  EXPECT_THAT(whole[whole.size() - back.size() - 1], testing::AnyOf('/', '.', ' '));
}

// Under a plan for all sizes, a kernel is told as it is for those that ran.
TEST(Profile, OfOpenSizesIsOfThoseThatRan) {
  const Planned open(
      "graph @g(%x: f32[N, 64]) -> f32[N, 64] where N in 1..512 { %y = exp %x return %y }");
  const Profile times = {{open.plan.fuse[0].kernel, "exp", 1, 1e-3, 1e-3}};
  const auto step = [&](int64_t rows) {
    return open.profile(times, 1, {}, {{"N", Dim(rows)}}).steps[0];
  };
  EXPECT_EQ(step(500).writes, "f32[500, 64]");
  EXPECT_NE(step(500).rate, step(50).rate);
}

TEST(Profile, OfSeveralGraphsAndSizesTellsEach) {
  const auto graph = [](std::string_view name) {
    return fmt::format(
        "graph @{}(%x: f32[M, 64]) -> f32[M, 64] where M in 1..512 {{ "
        "%y = exp %x return %y }}",
        name);
  };
  const Model model = parse_model(fmt::format(R"(
model @two(%p: bool[], %x: f32[N, 64]) -> (%y: f32[N, 64]) where N in 1..512 {{
  %y = if %p {{
    %a = run %x {}
    yield %a
  }} else {{
    %b = run %x {}
    yield %b
  }}
}})",
                                              graph("first"), graph("second")))
                          .value();
  const auto native = NativeModel::make(model, host_target().value()).value();
  native->code().keep_sources();
  std::vector<UnitTimes> profile;
  const auto run = [&](bool is_first, int64_t rows, int times, std::vector<UnitTimes>* profile) {
    const int64_t flag = is_first ? 1 : 0;
    const std::vector<Tensor> inputs = {
        Tensor::from_integers(Type::scalar(DType::boolean), {&flag, 1}),
        Tensor::zeros(Type::get(DType::f32, {rows, 64}))};
    for (int i = 0; i < times; ++i) ASSERT_TRUE(native->run(inputs, {}, profile).ok());
  };
  run(false, 100, 1, nullptr);
  run(true, 100, 6, &profile);
  const auto text_of = [&] {
    return profile_text(profile_of(profile, 3, *native, host_target().value()).value(), 10);
  };
  EXPECT_THAT(text_of(), testing::StartsWith("layer "));
  run(true, 500, 3, &profile);  // by code for all sizes
  run(false, 200, 3, &profile);
  const std::string text = text_of();
  EXPECT_THAT(text, testing::StartsWith("segment "));
  EXPECT_THAT(text, ContainsRegex("\nfirst +M = 100 +2 +[0-9.]+ [a-z]+ +[0-9.]+%\n"));
  EXPECT_THAT(text, ContainsRegex("\nfirst +M = 500 +1 "));
  EXPECT_THAT(text, ContainsRegex("\nsecond +M = 200 +1 "));
  EXPECT_THAT(text, Not(HasSubstr("second  M = 100")));
  EXPECT_THAT(text, ContainsRegex("\n# segment first, M = 500\nlayer .*\nexp .* f32.500, 64. "
                                  ".*[0-9]+ [mun]s .*%\n"));
}

}  // namespace
}  // namespace hone::HONE_FILE
