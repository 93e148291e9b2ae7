#include "runtime/runnable.h"

#include <gtest/gtest.h>

#include "compile/native_model.h"
#include "ir/model_text.h"
#include "ir/text.h"
#include "runtime/loaded_model.h"
#include "session/deployed.h"

// The three that run: the code of a graph, a model, a compiled file.

namespace hone::HONE_FILE {
namespace {

constexpr std::string_view kGraph =
    "graph @double(%x: f32[{0}, 2]) -> f32[{0}, 2] {1} {{ %y = add %x, %x return %y }}";

Model open_model() {
  return model_of(parse_graph(fmt::format(kGraph, "N", "where N in 1..8")).value());
}

Model loop_model() {
  return parse_model(R"(
model @loop(%x: f32[3, 2]) -> (%y: f32[3, 2]) {
  %trips = run graph @trips() { %0 = constant 2 : i64[] return %0 }
  %y = loop trip %trips with %state = %x {
    %next = run %state graph @half(%s: f32[3, 2]) {
      %a = sqrt %s
      %h = mul %a, %a
      %c = constant 1.41421356 : f32[]
      %d = broadcast %c {dims = [3, 2], map = []}
      %n = mul %h, %d
      return %n
    }
    yield %next
  }
})")
      .value();
}

std::shared_ptr<const Runnable> loaded(const Model& model) {
  const HonecModel described = deployed_model(model, model, {}).value();
  std::vector<DeployedGraph> made;
  for (const Graph* graph : graphs_of(model))
    made.push_back(
        deployed_graph(*graph, static_cast<uint32_t>(made.size()), host_target().value(), {}, {})
            .value());
  std::vector<HonecProgram> programs;
  for (const DeployedGraph& one : made) programs.push_back(one.program());
  const auto bytes =
      std::make_shared<const std::string>(honec_bytes(described, programs, "0").value().joined());
  return LoadedModel::load(HonecFile::parse(bytes, std::as_bytes(std::span(*bytes))).value())
      .value();
}

std::shared_ptr<const Runnable> native(const Model& model) {
  return NativeModel::make(model, host_target().value()).value();
}

std::shared_ptr<const Runnable> code(std::string_view rows) {
  return Compilation(parse_graph(fmt::format(kGraph, rows, "")).value(), host_target().value())
      .executable()
      .value();
}

// Doubles three rows of two.
void expect_doubles(const Runnable& model) {
  const Type type = Type::get(DType::f32, {3, 2});
  const std::vector<Tensor> inputs = {
      Tensor::from_reals(type, std::vector<double>{1, 2, 3, 4, 5, 6})};
  ASSERT_EQ(model.inputs().size(), 1u);
  ASSERT_EQ(model.outputs().size(), 1u);
  EXPECT_EQ(model.inputs()[0].name, "x");
  EXPECT_EQ(model.inputs()[0].type.rank(), 2);
  EXPECT_GE(model.threads(), 1);
  std::vector<UnitTimes> times;
  for (int run = 1; run <= 3; ++run) {
    const auto outputs = model.run(inputs, {}, run == 1 ? nullptr : &times);
    ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
    ASSERT_EQ((*outputs)[0].type(), type);
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR((*outputs)[0].real_at(i), 2 * static_cast<double>(i + 1), 1e-4);
  }
  ASSERT_FALSE(times.empty());
  int64_t runs = 0;
  for (const UnitTimes& one : times) {
    runs += one.runs;
    EXPECT_FALSE(one.times.empty());
  }
  EXPECT_EQ(runs % 2, 0);  // both were noted alike, the first was not
  EXPECT_FALSE(model.run({}).ok());
  EXPECT_FALSE(model.run({{Tensor::zeros(Type::get(DType::f32, {3, 3}))}}).ok());
  CancelToken cancelled;
  cancelled.cancel();
  const auto stopped = model.run(inputs, {.cancel = &cancelled});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code(), ErrorCode::interrupted);
}

TEST(Runnable, AGraphAModelAndAFileRunAlike) {
  const Model three = model_of(parse_graph(fmt::format(kGraph, "3", "")).value());
  for (const auto& model : {code("3"), native(three), native(open_model()), native(loop_model()),
                            loaded(three), loaded(open_model()), loaded(loop_model())})
    expect_doubles(*model);
}

TEST(Runnable, CodeForOneChoiceOfSizesIsSingle) {
  const Model three = model_of(parse_graph(fmt::format(kGraph, "3", "")).value());
  for (const auto& model : {code("3"), loaded(three)}) EXPECT_NE(model->single(), nullptr);
  for (const auto& model : {native(three), loaded(open_model()), loaded(loop_model())})
    EXPECT_EQ(model->single(), nullptr);
}

}  // namespace
}  // namespace hone::HONE_FILE
