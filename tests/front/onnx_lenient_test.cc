#include <gmock/gmock.h>

#include "ir/model_text.h"
#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

// Faults that real files have, and that are read all the same.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;

Strings output_names(const Model& model) {
  Strings names;
  for (const ModelValue& output : model.outputs) names.push_back(output.name);
  return names;
}

Strings notes_of(const File& file) {
  Strings notes;
  ImportOptions import;
  import.notice = [&](std::string_view note) { notes.emplace_back(note); };
  file.model(import);
  return notes;
}

// ---- Names of outputs --------------------------------------------------------------------------

TEST(OnnxOutputs, KeepTheirNamesBehindNodesWithoutEffect) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("Neg", {"x"}, {"inner"});
  file.graph.node("Identity", {"inner"}, {"middle"});
  file.graph.node("Dropout", {"middle"}, {"y"});
  file.graph.outputs({"y"});
  const Model model = file.model();
  EXPECT_THAT(output_names(model), ElementsAre("y"));
  const Graph* graph = plain_graph(model);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->name(graph->outputs()[0]), "y");
}

TEST(OnnxOutputs, KeepTheirNamesWhereTheyAreOneValue) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("Neg", {"x"}, {"a"});
  file.graph.node("Identity", {"a"}, {"b"});
  file.graph.node("Identity", {"x"}, {"same"});
  file.graph.outputs({"a", "b", "same"});
  const Model model = file.model();
  EXPECT_THAT(output_names(model), ElementsAre("a", "b", "same"));
  EXPECT_NE(single_graph(model), nullptr);
  EXPECT_EQ(model.inputs[0].name, "x");
  const std::vector<Tensor> x = {reals({2}, {1, 2})};
  EXPECT_EQ(run(model, x, 1), (Numbers{-1, -2}));
  EXPECT_EQ(run(model, x, 2), (Numbers{1, 2}));
  // The text has all of them.
  const Model again = parse_model(print(model).value()).value();
  EXPECT_THAT(output_names(again), ElementsAre("a", "b", "same"));
}

TEST(OnnxOutputs, KeepTheirNamesBehindSegments) {
  File file = if_file(false, "Identity", {"x"});
  file.graph.node("Identity", {"z"}, {"last"});
  file.graph.proto.mutable_output(0)->set_name("last");
  EXPECT_THAT(output_names(file.model()), ElementsAre("last"));
}

// ---- Declared shapes ---------------------------------------------------------------------------

onnx::TypeProto::Tensor& declare(onnx::ValueInfoProto& info, const Ints& dims) {
  onnx::TypeProto::Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
  return type;
}

File negated_twice() {
  File file;
  file.graph.input("x", DType::f32, {"2", "3"});
  file.graph.node("Neg", {"x"}, {"h"});
  file.graph.node("Neg", {"h"}, {"y"});
  file.graph.outputs({"y"});
  return file;
}

TEST(OnnxDeclared, AnOtherShapeOfAnOutputIsToldAndIgnored) {
  File file = negated_twice();
  declare(*file.graph.proto.mutable_output(0), {2, 4});
  EXPECT_EQ(file.model().outputs[0].type.to_string(), "f32[2, 3]");
  EXPECT_THAT(notes_of(file), ElementsAre(says("output 'y' ... f32[2, 4] ... f32[2, 3]")));
}

TEST(OnnxDeclared, OtherShapesOfInnerValuesAreToldOnce) {
  File file = negated_twice();
  file.graph.node("Neg", {"y"}, {"z"});
  file.graph.proto.mutable_output(0)->set_name("z");
  for (std::string_view name : {"h", "y"}) {
    onnx::ValueInfoProto& info = *file.graph.proto.add_value_info();
    info.set_name(std::string(name));
    declare(info, {6});
  }
  EXPECT_THAT(notes_of(file), ElementsAre(says("value 'h' ... f32[6] ... f32[2, 3] ... 1 more")));
}

// A scalar is carried, whatever the loop says of it; the body sees what is given.
TEST(OnnxDeclared, AnotherRankOfACarriedValueIsToldAndIgnored) {
  LoopFile file("1");
  onnx::GraphProto& body = file.body.proto;
  body.mutable_input(2)->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim();
  file.body.node("Add", {"v_in", "v_in"}, {"twice"});
  file.finish("goes_on", "twice");
  const std::vector<Tensor> trips = {integers({}, {3})};
  EXPECT_EQ(run(file, trips), (Numbers{8}));
  EXPECT_EQ(run(file, trips, 1), (Numbers{0, 1, 2}));
  EXPECT_THAT(notes_of(file), testing::Contains(HasSubstr("'v_in' is declared as f32[1, ?]")));
  // Another element type still is a fault.
  body.mutable_input(2)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::INT64);
  EXPECT_THAT(file.error(), HasSubstr("declared as i64"));
}

TEST(OnnxDomains, ThatAreNotImportedHaveTheirNewestVersion) {
  File file;
  file.graph.input("x", DType::f32, {"2", "2"});
  file.graph.node("Scaler", {"x"}, {"y"}, {{"scale", Numbers{.5}}}).set_domain("ai.onnx.ml");
  file.graph.outputs({"y"});
  EXPECT_EQ(run(file, {reals({2, 2}, {1, 2, 3, 4})}), (Numbers{.5, 1, 1.5, 2}));
  EXPECT_THAT(notes_of(file), testing::Contains(HasSubstr("domain 'ai.onnx.ml' is used")));
  // Nothing is known of others, or of a file that imports nothing.
  file.graph.proto.mutable_node(0)->set_domain("org.else");
  EXPECT_THAT(file.error(), says("domain 'org.else' ... opset"));
  file.graph.proto.mutable_node(0)->set_domain("ai.onnx.ml");
  file.proto.clear_opset_import();
  EXPECT_THAT(file.error(), says("opset"));
}

TEST(OnnxDeclared, AnOtherElementTypeIsRefused) {
  File file = negated_twice();
  declare(*file.graph.proto.mutable_output(0), {2, 3}).set_elem_type(onnx::TensorProto::INT64);
  EXPECT_THAT(file.error(), HasSubstr("declared as i64, but is f32[2, 3]"));
}

// ---- The order of nodes ------------------------------------------------------------------------

TEST(OnnxOrder, NodesAreSorted) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.input("flag", DType::boolean, {});
  onnx::NodeProto& node = file.graph.node("If", {"flag"}, {"y"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Neg", {"inner"}, {"a"});
  yes.node("Abs", {"doubled"}, {"inner"});  // of the graph around, which computes it later
  yes.outputs({"a"});
  GraphText no = subgraph(node, "else_branch");
  no.node("Identity", {"x"}, {"b"});
  no.outputs({"b"});
  file.graph.node("Add", {"negated", "negated"}, {"doubled"});
  file.graph.node("Neg", {"x"}, {"negated"});
  file.graph.outputs({"y"});
  const Tensor x = reals({2}, {1, 2});
  const auto truth = [](bool value) { return integers({}, {value}, DType::boolean); };
  // Inputs that only one branch reads come first.
  EXPECT_EQ(run(file.model(), {x, truth(true)}), (Numbers{-2, -4}));
  EXPECT_EQ(run(file.model(), {x, truth(false)}), (Numbers{1, 2}));
}

TEST(OnnxOrder, ACycleIsAFault) {
  File file;
  file.graph.input("x", DType::f32, {"2"});
  file.graph.node("Add", {"x", "b"}, {"a"});
  file.graph.node("Neg", {"a"}, {"b"});
  file.graph.outputs({"b"});
  EXPECT_THAT(file.error(), says("value 'b'"));
}

// ---- Old attributes ----------------------------------------------------------------------------

TEST(OnnxAttributes, HintsForEvaluationInPlaceAreRead) {
  const Tensor x = reals({2}, {-1, 2});
  EXPECT_EQ(numbers(run_node("Relu", 9, {x}, {{"consumed_inputs", Ints{0}}})), (Numbers{0, 2}));
}

TEST(OnnxAttributes, OldCastsHaveNumbersForTypes) {
  const Tensor x = reals({2}, {-1.5, 2.5});
  for (int version : {1, 5})
    EXPECT_EQ(run_node("Cast", version, {x}, {{"to", 6}}).dtype(), DType::i32);
  EXPECT_EQ(run_node("Cast", 1, {x}, {{"to", "INT64"}}).dtype(), DType::i64);
}

TEST(OnnxAttributes, MasksOfIntegersAreAdded) {
  const Tensor q = reals({1, 1, 1, 1}, {1}), k = reals({1, 1, 2, 1}, {1, 1});
  const Tensor v = reals({1, 1, 2, 1}, {3, 5});
  for (DType dtype : {DType::i32, DType::i64}) {
    const Tensor mask = integers({1, 2}, {0, -100}, dtype);
    EXPECT_EQ(numbers(run_node("Attention", 23, {q, k, v, mask})), (Numbers{3}));
  }
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
