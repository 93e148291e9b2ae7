#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "ir/functional.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

// Import beyond single ops: names, functions, subgraphs, sizes that depend on data.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::HasSubstr;

// ---- Names and signatures ----------------------------------------------------------------------

TEST(OnnxImportNames, AreThoseOfTheFile) {
  File file;
  file.graph.input("image", DType::f32, {"batch", "3"});
  file.graph.node("Relu", {"image"}, {"hidden"});
  file.graph.node("Neg", {"hidden"}, {"logits"});
  file.graph.outputs({"logits"});
  Model model = file.model();
  EXPECT_EQ(model.inputs[0].name, "image");
  EXPECT_EQ(model.outputs[0].name, "logits");
  EXPECT_EQ(model.inputs[0].type.to_string(), "f32[batch, 3]");
  const Graph* graph = single_graph(model);
  ASSERT_NE(graph, nullptr);
  Strings names;
  for (NodeId n : graph->nodes()) names.emplace_back(graph->name(graph->result(n)));
  EXPECT_THAT(names, testing::ElementsAre("image", "hidden", "logits"));
}

TEST(OnnxImportNames, StandInErrors) {
  File file;
  file.graph.input("x", DType::f32, {"2", "3"});
  file.graph.node("Transpose", {"x"}, {"y"}, {{"perm", Ints{0, 5}}}).set_name("turn");
  file.graph.outputs({"y"});
  EXPECT_THAT(file.error(), HasSubstr("test.onnx, node 'turn' (Transpose)"));
}

TEST(OnnxImportDims, AreBoundByNameAndByShape) {
  File file;
  file.graph.input("x", DType::f32, {"batch", "length"});
  file.graph.node("Relu", {"x"}, {"y"});
  file.graph.outputs({"y"});
  ImportOptions by_name;
  by_name.dims["batch"] = 4;
  EXPECT_EQ(file.model(by_name).outputs[0].type.to_string(), "f32[4, length]");
  ImportOptions by_shape;
  by_shape.shapes["x"] = {2, 5};
  EXPECT_EQ(file.model(by_shape).outputs[0].type.to_string(), "f32[2, 5]");
  ImportOptions wrong;
  wrong.dims["batches"] = 4;
  EXPECT_THAT(file.error(wrong), HasSubstr("no dim 'batches'"));
  EXPECT_THAT(file.error(wrong), HasSubstr("did you mean 'batch'?"));
}

TEST(OnnxImportOutputs, MayBeInputsAndConstants) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.constant("c", reals({1}, {7}));
  file.graph.outputs({"x", "c"});
  Model model = file.model();
  EXPECT_EQ(run(model, {reals({2}, {1, 2})}, 0), (Numbers{1, 2}));
  EXPECT_EQ(run(model, {reals({2}, {1, 2})}, 1), (Numbers{7}));
}

TEST(OnnxImportShapes, ThatAreComputedStayDims) {
  // reshape(x, [shape(x)[0], -1])
  File file;
  file.graph.input("x", DType::f32, {"batch", "2", "3"});
  file.graph.constant("zero", integers({1}, {0}));
  file.graph.constant("rest", integers({1}, {-1}));
  file.graph.node("Shape", {"x"}, {"shape"});
  file.graph.node("Gather", {"shape", "zero"}, {"batch"});
  file.graph.node("Concat", {"batch", "rest"}, {"target"}, {{"axis", 0}});
  file.graph.node("Reshape", {"x", "target"}, {"y"});
  file.graph.outputs({"y"});
  Model model = file.model();
  EXPECT_EQ(model.outputs[0].type.to_string(), "f32[batch, 6]");
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(single_graph(model)->node_count(), 2u);
}

// ---- Functions ---------------------------------------------------------------------------------

// scaled(x) = x * scale + x, with an attribute.
void add_scaled(onnx::ModelProto& proto) {
  onnx::FunctionProto& function = *proto.add_functions();
  function.set_name("scaled");
  function.set_domain("local");
  function.add_input("x");
  function.add_output("y");
  function.add_attribute("scale");
  function.add_opset_import()->set_version(17);
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("s");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_float");
  value.set_type(onnx::AttributeProto::FLOAT);
  value.set_ref_attr_name("scale");
  for (auto [op, a, b, y] : {std::tuple{"Mul", "x", "s", "m"}, std::tuple{"Add", "m", "x", "y"}}) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type(op);
    node.add_input(a);
    node.add_input(b);
    node.add_output(y);
  }
  onnx::OperatorSetIdProto& opset = *proto.add_opset_import();
  opset.set_domain("local");
  opset.set_version(1);
}

TEST(OnnxImportFunctions, AreInlinedWithTheirAttributes) {
  File file;
  add_scaled(file.proto);
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("scaled", {"x"}, {"a"}, {{"scale", 2.0}}).set_domain("local");
  file.graph.node("scaled", {"a"}, {"b"}, {{"scale", -1.0}}).set_domain("local");
  file.graph.node("scaled", {"a"}, {"c"}, {{"scale", 0.5}}).set_domain("local");
  file.graph.outputs({"b", "c"});
  Model model = file.model();
  EXPECT_EQ(run(model, {reals({2}, {1, 2})}, 0), (Numbers{0, 0}));
  EXPECT_EQ(run(model, {reals({2}, {1, 2})}, 1), (Numbers{4.5, 9}));
}

TEST(OnnxImportFunctions, MayNotCallThemselves) {
  File file;
  add_scaled(file.proto);
  onnx::NodeProto& call = *file.proto.mutable_functions(0)->add_node();
  call.set_op_type("scaled");
  call.set_domain("local");
  call.add_input("x");
  call.add_output("z");
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("scaled", {"x"}, {"y"}, {{"scale", 2.0}}).set_domain("local");
  file.graph.outputs({"y"});
  EXPECT_THAT(file.error(), HasSubstr("function 'local.scaled' calls itself"));
}

// ---- If ----------------------------------------------------------------------------------------

Tensor flag(bool value) { return integers({}, {value ? 1 : 0}, DType::boolean); }

TEST(OnnxImportIf, WithAKnownConditionIsTheBranch) {
  Model model = if_file(true, "Slice", {"x", "start", "end"}).model();
  ASSERT_NE(single_graph(model), nullptr);
  EXPECT_EQ(single_graph(model)->node_count(), 3u);
}

TEST(OnnxImportIf, OfEqualTypesIsAnOp) {
  Model model = if_file(false, "Identity", {"x"}).model();
  ASSERT_NE(single_graph(model), nullptr);
  Tensor x = reals({3}, {-1, 2, -3});
  EXPECT_EQ(run(model, {flag(true), x}), (Numbers{1, 0, 3}));
  EXPECT_EQ(run(model, {flag(false), x}), (Numbers{0, 2, 0}));
}

TEST(OnnxImportIf, OfUnequalSizesIsASegment) {
  Model model = if_file(false, "Slice", {"x", "start", "end"}).model();
  EXPECT_EQ(single_graph(model), nullptr);
  Tensor x = reals({3}, {-1, 2, -3});
  EXPECT_EQ(run(model, {flag(true), x}), (Numbers{1, 0, 3}));
  EXPECT_EQ(run(model, {flag(false), x}), (Numbers{2, 0}));
}

// ---- Loop --------------------------------------------------------------------------------------

TEST(OnnxImportLoop, StacksWhatEachIterationGives) {
  LoopFile file;
  file.body.node("Add", {"v_in", "v_in"}, {"twice"});
  file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
  file.finish("goes_on_out", "twice");
  Model model = file.model();
  EXPECT_EQ(run(model, {integers({}, {5})}, 0), (Numbers{32}));
  EXPECT_EQ(run(model, {integers({}, {5})}, 1), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(run(model, {integers({}, {0})}, 0), (Numbers{1}));
}

TEST(OnnxImportLoop, EndsWhenItsBodySaysSo) {
  LoopFile file;
  file.graph.constant("limit", integers({}, {2}));
  file.body.node("Add", {"v_in", "v_in"}, {"twice"});
  file.body.node("Less", {"i", "limit"}, {"goes_on_out"});
  file.finish("goes_on_out", "twice");
  Model model = file.model();
  EXPECT_EQ(run(model, {integers({}, {100})}, 0), (Numbers{8}));
  EXPECT_EQ(run(model, {integers({}, {100})}, 1), (Numbers{0, 1, 2}));
}

// Doubles v while `condition` says so at first, and then while v is below 100.
Model doubling(const std::string& condition) {
  File file;
  file.graph.input("v0", DType::f32, {});
  file.graph.input("go", DType::boolean, {});
  file.graph.constant("limit", reals({}, {100}));
  file.graph.constant("other", reals({}, {50}));
  file.graph.node("Less", {"v0", "limit"}, {"is_below"});
  file.graph.node("Less", {"v0", "other"}, {"is_far_below"});
  onnx::NodeProto& node = file.graph.node("Loop", {"", condition, "v0"}, {"v"});
  GraphText body = subgraph(node, "body");
  body.input("i", DType::i64, {});
  body.input("c", DType::boolean, {});
  body.input("v_in", DType::f32, {});
  body.node("Add", {"v_in", "v_in"}, {"twice"});
  body.node("Less", {"twice", "limit"}, {"c_out"});
  body.outputs({"c_out", "twice"});
  file.graph.outputs({"v"});
  return file.model();
}

size_t state_of_while(const Model& model) {
  const Graph& graph = *single_graph(model);
  for (NodeId n : graph.nodes())
    if (graph.opcode(n) == Opcode::while_) return graph.operands(n).size();
  return 0;
}

TEST(OnnxImportLoop, WhoseConditionIsThatBeforeItIsAWhile) {
  const Model model = doubling("is_below");
  EXPECT_EQ(state_of_while(model), 1U);
  EXPECT_EQ(run(model, {reals({}, {7}), flag(false)}), (Numbers{112}));
  EXPECT_EQ(run(model, {reals({}, {200}), flag(true)}), (Numbers{200}));
}

TEST(OnnxImportLoop, WhoseConditionIsAnotherAtFirstCarriesIt) {
  const Model free = doubling("go"), other = doubling("is_far_below"), always = doubling("");
  EXPECT_EQ(run(free, {reals({}, {7}), flag(false)}), (Numbers{7}));
  EXPECT_EQ(run(free, {reals({}, {200}), flag(true)}), (Numbers{400}));
  EXPECT_EQ(run(other, {reals({}, {60}), flag(true)}), (Numbers{60}));
  EXPECT_EQ(run(other, {reals({}, {40}), flag(true)}), (Numbers{160}));
  EXPECT_EQ(run(always, {reals({}, {200}), flag(false)}), (Numbers{400}));
  EXPECT_GT(state_of_while(free), 1U);
}

TEST(OnnxImportLoop, MayCarryWhatGrows) {
  LoopFile file("");
  file.body.node("Concat", {"v_in", "v0"}, {"longer"}, {{"axis", 0}});
  file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
  file.finish("goes_on_out", "longer");
  Model model = file.model();
  EXPECT_EQ(run(model, {integers({}, {3})}, 0), (Numbers{1, 1, 1, 1}));
}

TEST(OnnxImportLoop, LearnsAnOperandAnewWhenItsBodyIsImportedAgain) {
  // The body is imported once for a carried value of one element, and once for an open size.
  LoopFile file("");
  file.graph.input("x", DType::f32, {"2", "3"});
  file.graph.input("axes", DType::i64, {"1"});
  file.body.node("ReduceSum", {"x", "axes"}, {"sums"});
  file.body.node("ReduceMax", {"sums"}, {"most"}, {{"keepdims", 0}});
  file.body.node("Add", {"v_in", "most"}, {"raised"});
  file.body.node("Concat", {"raised", "v0"}, {"longer"}, {{"axis", 0}});
  file.body.node("Identity", {"goes_on"}, {"goes_on_out"});
  file.finish("goes_on_out", "longer");
  const Model model = file.model();
  const Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6}), twice = integers({}, {2});
  EXPECT_EQ(run(model, {twice, x, integers({1}, {0})}, 0), (Numbers{19, 10, 1}));
  EXPECT_EQ(run(model, {twice, x, integers({1}, {1})}, 0), (Numbers{31, 16, 1}));
}

// ---- Sizes that depend on data -----------------------------------------------------------------

TEST(OnnxImportSegments, EndWhereASizeDependsOnData) {
  // The elements of x above 0, negated.
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.constant("zero", reals({}, {0}));
  file.graph.node("Greater", {"x", "zero"}, {"positive"});
  file.graph.node("Compress", {"x", "positive"}, {"chosen"}, {{"axis", 0}});
  file.graph.node("Neg", {"chosen"}, {"y"});
  file.graph.outputs({"y"});
  Model model = file.model();
  EXPECT_EQ(model.segments.size(), 2u);
  EXPECT_EQ(first_deferred(model), nullptr);
  EXPECT_EQ(run(model, {reals({4}, {1, -2, 3, 0})}), (Numbers{-1, -3}));
  EXPECT_EQ(run(model, {reals({2}, {-1, -2})}), Numbers{});
}

TEST(OnnxImportDeferred, IsWhatSymbolsLeaveOpen) {
  // A size n or m of 1 decides what broadcasts.
  File file;
  file.graph.input("x", DType::f32, {"n"});
  file.graph.input("y", DType::f32, {"m"});
  file.graph.node("Neg", {"x"}, {"a"});
  file.graph.node("Add", {"a", "y"}, {"sum"});
  file.graph.node("Relu", {"sum"}, {"z"});
  file.graph.outputs({"z"});
  Model model = file.model();
  ASSERT_NE(first_deferred(model), nullptr);
  ModelRunner runner(model);
  auto sizes = [&](int64_t n, int64_t m) {
    Numbers ones(static_cast<size_t>(n), 1), threes(static_cast<size_t>(m), 3);
    Result<std::vector<Tensor>> out = runner.run(std::vector{reals({n}, ones), reals({m}, threes)});
    EXPECT_TRUE(out.ok()) << out.error().to_string();
    return out.ok() ? numbers(out->front()) : Numbers{};
  };
  EXPECT_EQ(sizes(1, 3), (Numbers{2, 2, 2}));
  EXPECT_EQ(sizes(2, 1), (Numbers{2, 2}));
  EXPECT_EQ(sizes(2, 2), (Numbers{2, 2}));
  EXPECT_EQ(sizes(1, 3), (Numbers{2, 2, 2}));
  EXPECT_EQ(runner.specialized(), 3);
  ImportOptions bound;
  bound.dims = {{"n", 1}, {"m", 3}};
  EXPECT_EQ(first_deferred(file.model(bound)), nullptr);
}

TEST(OnnxImportDeferred, LearnsOperandsThatMustBeNumbers) {
  File file;
  file.graph.input("x", DType::f32, {"2", "3"});
  file.graph.input("axes", DType::i64, {"1"});
  file.graph.node("ReduceSum", {"x", "axes"}, {"y"}, {{"keepdims", 0}});
  file.graph.outputs({"y"});
  Model model = file.model();
  Tensor x = reals({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run(model, {x, integers({1}, {0})}), (Numbers{5, 7, 9}));
  EXPECT_EQ(run(model, {x, integers({1}, {-1})}), (Numbers{6, 15}));
}

// y has as many dims as `target` has elements.
File open_rank_file() {
  File file;
  file.graph.input("x", DType::f32, {"6"});
  file.graph.input("target", DType::i64, {"k"});
  file.graph.node("Reshape", {"x", "target"}, {"y"});
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxImportDeferred, DoesNotGuessRanks) {
  File file = open_rank_file();
  EXPECT_THAT(file.error(), HasSubstr("output 'y' is f32"));
  EXPECT_THAT(file.error(), says("rank ... sizes ... open"));
  EXPECT_THAT(file.error(), HasSubstr("--dim"));
  Tensor x = reals({6}, {1, 2, 3, 4, 5, 6});
  ImportOptions bound;
  bound.dims = {{"k", 2}};
  EXPECT_EQ(run(file.model(bound), {x, integers({2}, {2, 3})}), numbers(x));
  // The file may say it.
  onnx::TypeProto::Tensor& type =
      *file.graph.proto.mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (int i = 0; i < 2; ++i) type.mutable_shape()->add_dim();
  Model model = file.model();
  EXPECT_EQ(model.outputs[0].type.rank(), 2);
  EXPECT_EQ(run(model, {x, integers({2}, {2, 3})}), numbers(x));
  Result<std::vector<Tensor>> other =
      evaluate_model(model, std::vector{x, integers({3}, {1, 2, 3})});
  ASSERT_FALSE(other.ok());
  EXPECT_THAT(other.error().to_string(), HasSubstr("output '%y'"));
}

TEST(OnnxImportDetector, SpecializesNothingForNewCounts) {
  Model model = detector_file().model();
  ModelRunner runner(model);
  int64_t after_ten = 0;
  for (int64_t count = 1; count <= 200; ++count) {
    // Boxes apart from each other; `count` of them are good enough.
    Numbers boxes, scores;
    for (int i = 0; i < 256; ++i) {
      boxes.insert(boxes.end(), {2.0 * i, 0, 2.0 * i + 1, 1});
      scores.push_back(i < count ? 0.9 : 0.1);
    }
    Result<std::vector<Tensor>> out =
        runner.run(std::vector{reals({1, 256, 4}, boxes), reals({1, 1, 256}, scores)});
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    ASSERT_EQ((*out)[0].type().static_dims(), (Ints{count, 4}));
    if (count == 10) after_ten = runner.specialized();
  }
  EXPECT_EQ(runner.specialized(), after_ten);
}

TEST(OnnxImportDecoder, GrowsItsCacheInOneForm) {
  ModelRunner runner(decoder_file().model());
  Tensor cache = reals({0, 4}, {});
  for (int step = 0; step < 256; ++step) {
    Result<std::vector<Tensor>> out = runner.run(std::vector{reals({1, 4}, {1, 1, 1, 1}), cache});
    ASSERT_TRUE(out.ok()) << out.error().to_string();
    cache = (*out)[1];
    ASSERT_EQ(cache.type().static_dims(), (Ints{step + 1, 4}));
    EXPECT_NEAR((*out)[0].real_at(0), 1, 1e-6);  // all rows are equal
  }
  EXPECT_LE(runner.specialized(), 2);
}

// ---- Faults ------------------------------------------------------------------------------------

TEST(OnnxImportFaults, AreNamed) {
  auto check = [](const std::function<void(File&)>& change, std::string_view text) {
    File file;
    file.graph.input("x", DType::f32, {"2"});
    file.graph.node("Relu", {"x"}, {"y"});
    file.graph.outputs({"y"});
    change(file);
    EXPECT_THAT(file.error(), says(std::string(text)));
  };
  check([](File& f) { f.graph.node("Relu", {"nothing"}, {"z"}); },
        "value 'nothing' is used before");
  check([](File& f) { f.graph.node("Relu", {"x"}, {"y"}); }, "value 'y' is given twice");
  check([](File& f) { f.graph.node("Rely", {"x"}, {"z"}); }, "did you mean 'Relu'?");
  check([](File& f) { f.graph.node("Relu", {"x"}, {"z"}, {{"alpha", 1.0}}); },
        "attribute 'alpha' is not known");
  check([](File& f) { f.graph.outputs({"z"}); }, "value 'z'");
  check([](File& f) { f.proto.mutable_opset_import(0)->set_version(99); },
        "opset 99 of domain 'ai.onnx' is newer than 28");
  check([](File& f) { f.proto.clear_opset_import(); }, "opset");
  check(
      [](File& f) {
        auto& tensor = *f.proto.mutable_graph()->mutable_output(0)->mutable_type();
        tensor.mutable_tensor_type()->set_elem_type(7);
      },
      "declared as i64, but is f32[2]");
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
