#include <gtest/gtest.h>

#include "compile/native_model.h"
#include "ir/reference/evaluate.h"
#include "ir/text.h"
#include "oracle/compare.h"
#include "tests/front/onnx_file.h"

// Models whose sizes change from run to run.

namespace hone::HONE_FILE {
namespace {

Tensor reals(Dims dims, const std::vector<double>& numbers) {
  return Tensor::from_reals(Type::get(DType::f32, dims), numbers);
}

void expect_equal(std::span<const Tensor> actual, std::span<const Tensor> expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    Result<Comparison> comparison = compare(actual[i], expected[i], {1e-5, 1e-6});
    ASSERT_TRUE(comparison.ok()) << comparison.error().to_string();
    EXPECT_TRUE(comparison->passed()) << comparison->to_string();
  }
}

TEST(NativeSizes, AGrowingCacheIsCompiledOnce) {
  const Model model = onnx_testing::decoder_file().model();
  const auto native = NativeModel::make(model, host_target().value()).value();
  Tensor cache = reals({0, 4}, {});
  for (int step = 0; step < 256; ++step) {
    const double x = 0.1 * (step % 7);
    const std::vector<Tensor> inputs = {reals({1, 4}, {1, x, -x, 0.5}), cache};
    Result<std::vector<Tensor>> out = native->run(inputs);
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    if (step % 50 < 3) expect_equal(*out, evaluate_model(model, inputs).value());
    cache = (*out)[1];
  }
  EXPECT_EQ(native->code().compiled(), 1);
}

TEST(NativeSizes, WhatGrowsInALoopIsCompiledOnce) {
  onnx_testing::LoopFile file("n");
  file.body.node("Concat", {"v_in", "v0"}, {"next"}, {{"axis", 0}});
  file.finish("goes_on", "next");
  const Model model = file.model();
  const auto native = NativeModel::make(model, host_target().value()).value();
  for (int64_t trips : {9, 5, 12}) {
    const auto out = native->run(std::vector{onnx_testing::integers({}, {trips})});
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    EXPECT_EQ((*out)[0].type().static_dims(), Ints{trips + 1});
  }
  EXPECT_LE(native->code().compiled(), static_cast<int64_t>(graphs_of(model).size()));
}

TEST(NativeSizes, OnlyAnInputThatGetsLongerGrows) {
  const auto grows_as = [](std::string_view before, std::string_view after) {
    Graph graph("g");
    const std::vector<Symbol> symbols = {Symbol::get("N", 0, 64), Symbol::get("M", 0, 64)};
    const auto type = [&](std::string_view dim) {
      return Type::get(DType::f32, {2, *parse_dim(dim, symbols)});
    };
    graph.add_parameter(type(before));
    const ValueId other = graph.add_parameter(type(after));
    graph.set_outputs({other});
    return grows(graph);
  };
  EXPECT_TRUE(grows_as("N", "N + 1"));
  EXPECT_TRUE(grows_as("N", "N + M"));
  EXPECT_FALSE(grows_as("N", "N"));
  EXPECT_FALSE(grows_as("N", "2*N"));
  EXPECT_FALSE(grows_as("N + 1", "N"));
  EXPECT_FALSE(grows_as("3", "4"));
}

// 256 boxes of which `count` are good enough, apart from each other.
std::vector<Tensor> boxes_of(int64_t count) {
  std::vector<double> boxes, scores;
  for (int i = 0; i < 256; ++i) {
    boxes.insert(boxes.end(), {2.0 * i, 0, 2.0 * i + 1, 1});
    scores.push_back(i < count ? 0.9 : 0.1);
  }
  return {reals({1, 256, 4}, boxes), reals({1, 1, 256}, scores)};
}

TEST(NativeSizes, NothingIsCompiledAfterTheTenthCountOfDetections) {
  const Model model = onnx_testing::detector_file().model();
  const auto native = NativeModel::make(model, host_target().value()).value();
  int64_t after_ten = 0;
  for (int64_t count = 1; count <= 200; ++count) {
    const std::vector<Tensor> inputs = boxes_of(count);
    Result<std::vector<Tensor>> out = native->run(inputs);
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    ASSERT_EQ((*out)[0].type().static_dims(), (Ints{count, 4}));
    if (count % 50 == 3) expect_equal(*out, evaluate_model(model, inputs).value());
    if (count == 10) after_ten = native->code().compiled();
  }
  EXPECT_EQ(native->code().compiled(), after_ten);
}

GraphRef open_graph(std::string_view op) {
  return std::make_shared<Graph>(parse_graph(fmt::format(R"(
graph @g(%x: f32[N]) -> f32[N] where N in 1..64 {{
  %y = {} %x
  return %y
}})",
                                                         op))
                                     .value());
}

void run_with(NativeCode& code, const GraphRef& graph, int64_t size) {
  const std::vector<Tensor> inputs = {
      reals({size}, std::vector<double>(static_cast<size_t>(size), 0.5))};
  const auto executable = code.executable(graph, inputs);
  ASSERT_TRUE(executable.ok()) << executable.error().to_string();
  const Result<std::vector<Tensor>> out = (*executable)->run(inputs);
  ASSERT_TRUE(out.ok()) << out.error().to_string();
  expect_equal(*out, evaluate(*graph, inputs).value());
}

TEST(NativeSizes, APlanForOpenSizesServesAllAtOnce) {
  const Target target = host_target().value();
  const GraphRef planned = open_graph("exp"), other = open_graph("tanh");
  const Plan plan = *Compilation(*planned, target).plan().value();
  NativeCode code(target);
  code.set_plan(planned.get(), {plan, "p:1"});
  for (int64_t size = 1; size <= 3; ++size) run_with(code, planned, size);
  EXPECT_EQ(code.compiled(), 1);
  for (int64_t size = 1; size <= 3; ++size) run_with(code, other, size);
  EXPECT_EQ(code.compiled(), 3);

  NativeCode wrong(target);
  wrong.set_plan(other.get(), {plan, "p:7"});
  const std::vector<Tensor> inputs = {reals({1}, {1})};
  EXPECT_EQ(wrong.executable(other, inputs).error().where(), "p:7");
}

TEST(NativeSizes, ThoseUsedLastAreKept) {
  NativeCode code(host_target().value(), {}, {.graphs = 1, .executables = 2});
  const GraphRef first = open_graph("exp"), second = open_graph("tanh");
  for (int64_t size = 1; size <= 20; ++size) run_with(code, first, size);
  EXPECT_EQ(code.executables(), 2);
  EXPECT_EQ(code.compiled(), 2);  // for the first size, then for all
  run_with(code, first, 1);
  EXPECT_EQ(code.compiled(), 2);  // its sizes are bound anew, no code is made
  run_with(code, second, 1);
  EXPECT_EQ(code.compiled(), 3);
  run_with(code, first, 2);  // forgotten for the second
  EXPECT_EQ(code.compiled(), 4);
  EXPECT_EQ(code.executables(), 2);
}

}  // namespace
}  // namespace hone::HONE_FILE
