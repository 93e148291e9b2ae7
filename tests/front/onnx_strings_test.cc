#include <gmock/gmock.h>

#include "tests/base/says_testing.h"
#include "tests/front/onnx_file.h"

// Strings as places in a table of the file, and the labels of columns.

namespace hone::onnx_testing::HONE_FILE {
namespace {

using tested::says;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr const char* kMl = "ai.onnx.ml";

onnx::NodeProto& ml_node(GraphText graph, std::string_view op, const Strings& inputs,
                         const Strings& outputs, const Attributes& attributes) {
  onnx::NodeProto& node = graph.node(op, inputs, outputs, attributes);
  node.set_domain(kMl);
  return node;
}

void string_input(File& file, const std::string& name, const Strings& dims) {
  file.graph.input(name, DType::i64, dims);
  onnx::GraphProto& graph = file.graph.proto;
  graph.mutable_input(graph.input_size() - 1)
      ->mutable_type()
      ->mutable_tensor_type()
      ->set_elem_type(onnx::TensorProto::STRING);
}

void string_constant(onnx::GraphProto& graph, const std::string& name, const Strings& texts) {
  onnx::TensorProto& tensor = *graph.add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::STRING);
  tensor.add_dims(static_cast<int64_t>(texts.size()));
  for (const std::string& text : texts) tensor.add_string_data(text);
}

OnnxLabels labels_of(const File& file) {
  OnnxLabels labels;
  ImportOptions import;
  import.labels = &labels;
  file.model(import);
  return labels;
}

// A classifier of strings behind a lookup of strings, with maps of probabilities.
File classifier_file() {
  File file;
  string_input(file, "color", {"N", "1"});
  string_constant(file.graph.proto, "spare", {"pine", "beech"});
  ml_node(file.graph, "OneHotEncoder", {"color"}, {"hot"},
          {{"cats_strings", Strings{"red", "oak"}}});
  file.graph.constant("flat", integers({2}, {-1, 2}));
  file.graph.node("Reshape", {"hot", "flat"}, {"x"});
  ml_node(file.graph, "LinearClassifier", {"x"}, {"label", "score"},
          {{"classlabels_strings", Strings{"pine", "oak"}},
           {"coefficients", Numbers{1, 0, 0, 1}},
           {"intercepts", Numbers{.25, 0}}});
  ml_node(file.graph, "ZipMap", {"score"}, {"map"},
          {{"classlabels_strings", Strings{"pine", "oak"}}});
  file.graph.outputs({"label", "map"});
  return file;
}

TEST(OnnxStrings, ClassesComeFirstInTheTable) {
  const OnnxLabels labels = labels_of(classifier_file());
  EXPECT_THAT(labels.strings, ElementsAre("pine", "oak", "beech", "red"));
  EXPECT_THAT(labels.values, ElementsAre("color", "label"));
  ASSERT_EQ(labels.columns.size(), 1u);
  EXPECT_THAT(labels.columns.at("map").names, ElementsAre("pine", "oak"));
  EXPECT_FALSE(labels.columns.at("map").are_numbers);
}

TEST(OnnxStrings, GoInAndOutAsPlaces) {
  const File file = classifier_file();
  const Model model = file.model();
  EXPECT_EQ(model.inputs[0].type.dtype(), DType::i64);
  // red, oak, and one that no table has.
  const std::vector<Tensor> colors = {integers({3, 1}, {3, 1, -1})};
  EXPECT_EQ(run(model, colors), (Numbers{0, 1, 0}));
  EXPECT_EQ(run(model, colors, 1), (Numbers{1.25, 0, .25, 1, .25, 0}));
}

TEST(OnnxStrings, AreMovedAndCompared) {
  File file;
  string_input(file, "x", {"2"});
  string_constant(file.graph.proto, "list", {"b", "a", "c"});
  file.graph.constant("places", integers({2}, {2, 1}));
  file.graph.node("Gather", {"list", "places"}, {"picked"});
  file.graph.node("Concat", {"x", "picked"}, {"all"}, {{"axis", 0}});
  file.graph.node("Constant", {}, {"same"}, {{"value_strings", Strings{"a", "b", "c", "a"}}});
  file.graph.node("Equal", {"all", "same"}, {"equal"});
  file.graph.outputs({"all", "equal"});
  const std::vector<Tensor> x = {integers({2}, {1, 1})};
  EXPECT_EQ(run(file, x), (Numbers{1, 1, 2, 1}));
  EXPECT_EQ(run(file, x, 1), (Numbers{1, 0, 1, 1}));
  EXPECT_THAT(labels_of(file).values, UnorderedElementsAre("x", "all"));
}

TEST(OnnxStrings, AreMappedBothWays) {
  File file;
  file.proto.add_opset_import()->set_domain(kMl);
  file.proto.mutable_opset_import(1)->set_version(1);
  string_input(file, "x", {"3"});
  file.graph.input("k", DType::i64, {"3"});
  const Attributes mapper = {{"cats_strings", Strings{"a", "b"}},
                             {"cats_int64s", Ints{10, 20}},
                             {"default_int64", -5},
                             {"default_string", "none"}};
  ml_node(file.graph, "CategoryMapper", {"x"}, {"numbers"}, mapper);
  ml_node(file.graph, "CategoryMapper", {"k"}, {"texts"}, mapper);
  const Attributes encoder = {{"classes_strings", Strings{"b", "a"}}, {"default_int64", -7}};
  ml_node(file.graph, "LabelEncoder", {"x"}, {"codes"}, encoder);
  ml_node(file.graph, "LabelEncoder", {"k"}, {"names"}, encoder);
  file.graph.outputs({"numbers", "texts", "codes", "names"});
  const OnnxLabels labels = labels_of(file);
  ASSERT_THAT(labels.strings, ElementsAre("a", "b", "none", "_Unused"));
  EXPECT_THAT(labels.values, UnorderedElementsAre("x", "texts", "names"));
  const std::vector<Tensor> inputs = {integers({3}, {1, 9, 0}), integers({3}, {20, 1, 10})};
  EXPECT_EQ(run(file, inputs, 0), (Numbers{20, -5, 10}));
  EXPECT_EQ(run(file, inputs, 1), (Numbers{1, 2, 0}));
  EXPECT_EQ(run(file, inputs, 2), (Numbers{0, -7, 1}));
  EXPECT_EQ(run(file, inputs, 3), (Numbers{3, 0, 3}));
}

TEST(OnnxStrings, ColumnsOfNumbersAreToldApart) {
  File file;
  file.graph.input("x", DType::f32, {"2", "2"});
  ml_node(file.graph, "ZipMap", {"x"}, {"map"}, {{"classlabels_int64s", Ints{5, -1}}});
  file.graph.outputs({"map"});
  onnx::TypeProto::Map& map = *file.graph.proto.mutable_output(0)
                                   ->mutable_type()
                                   ->mutable_sequence_type()
                                   ->mutable_elem_type()
                                   ->mutable_map_type();
  map.set_key_type(onnx::TensorProto::INT64);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  const OnnxLabels labels = labels_of(file);
  EXPECT_THAT(labels.columns.at("map").names, ElementsAre("5", "-1"));
  EXPECT_TRUE(labels.columns.at("map").are_numbers);
  EXPECT_THAT(labels.values, IsEmpty());
  EXPECT_EQ(run(file, {reals({2, 2}, {1, 2, 3, 4})}), (Numbers{1, 2, 3, 4}));
  // A map of doubles is none of floats.
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::DOUBLE);
  EXPECT_THAT(file.error(), HasSubstr("declared as f64"));
}

// Whatever would compute with places as if they were numbers is refused.
TEST(OnnxStrings, AreNoNumbers) {
  const auto error = [](std::string_view op, const Attributes& attributes) {
    File file;
    string_input(file, "x", {"2"});
    file.graph.node(op, {"x"}, {"y"}, attributes);
    file.graph.outputs({"y"});
    return file.error();
  };
  EXPECT_THAT(error("Cast", {{"to", 1}}), HasSubstr("it computes with strings"));
  EXPECT_THAT(error("Neg", {}), HasSubstr("it computes with strings"));
  EXPECT_THAT(error("ArgMax", {}), HasSubstr("it computes with strings"));
  EXPECT_EQ(error("Identity", {}), "");
}

TEST(OnnxStrings, AreDeclaredAsWhatTheyAre) {
  File file;
  string_input(file, "x", {"2"});
  file.graph.node("Identity", {"x"}, {"y"});
  file.graph.outputs({"y"});
  auto& type = *file.graph.proto.mutable_output(0)->mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::INT64);
  EXPECT_THAT(file.error(), HasSubstr("declared without strings, but has some"));
  type.set_elem_type(onnx::TensorProto::STRING);
  EXPECT_EQ(file.error(), "");
  file.graph.node("Shape", {"x"}, {"size"});
  file.graph.proto.mutable_output(0)->set_name("size");
  EXPECT_THAT(file.error(), HasSubstr("declared to have strings, but has numbers"));
}

TEST(OnnxStrings, StayOutOfSubgraphsAndFunctions) {
  File file = if_file(false, "Identity", {"x"});
  string_constant(*file.graph.proto.mutable_node(0)->mutable_attribute(1)->mutable_g(), "b2",
                  {"a"});
  onnx::GraphProto& branch = *file.graph.proto.mutable_node(0)->mutable_attribute(1)->mutable_g();
  branch.mutable_output(0)->set_name("b2");
  EXPECT_THAT(file.error(), HasSubstr("a subgraph gives strings"));

  File call;
  call.graph.input("x", DType::i64, {"2"});
  onnx::FunctionProto& function = *call.proto.add_functions();
  function.set_name("F");
  function.set_domain("mine");
  function.add_output("y");
  function.add_opset_import()->set_version(17);
  onnx::NodeProto& constant = *function.add_node();
  constant.set_op_type("Constant");
  constant.add_output("y");
  onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_string");
  value.set_type(onnx::AttributeProto::STRING);
  value.set_s("a");
  call.graph.node("F", {}, {"y"}).set_domain("mine");
  call.graph.outputs({"y"});
  EXPECT_THAT(call.error(), HasSubstr("strings in a local function"));
}

TEST(OnnxStrings, TensorsAreChecked) {
  File file;
  string_constant(file.graph.proto, "w", {"a", "b"});
  file.graph.node("Identity", {"w"}, {"y"});
  file.graph.outputs({"y"});
  EXPECT_EQ(file.error(), "");
  onnx::TensorProto& tensor = *file.graph.proto.mutable_initializer(0);
  tensor.add_string_data("c");
  EXPECT_THAT(file.error(), says("string_data ... 3 strings ... 2"));
  tensor.clear_dims();
  for (int i = 0; i < 40; ++i) tensor.add_dims(1);
  EXPECT_THAT(file.error(), HasSubstr("rank 40"));
}

TEST(OnnxStrings, ZipMapsAreChecked) {
  const auto error = [](const Attributes& attributes) {
    File file;
    file.graph.input("x", DType::f32, {"N", "2"});
    ml_node(file.graph, "ZipMap", {"x"}, {"map"}, attributes);
    file.graph.outputs({"map"});
    return file.error();
  };
  EXPECT_THAT(error({}), says("classlabels_strings and classlabels_int64s"));
  EXPECT_THAT(error({{"classlabels_int64s", Ints{1, 2, 3}}}), HasSubstr("3 labels for 2 columns"));
  EXPECT_THAT(
      error({{"classlabels_int64s", Ints{1, 2}}, {"classlabels_strings", Strings{"a", "b"}}}),
      says("classlabels_strings and classlabels_int64s"));
  EXPECT_THAT(error({{"classlabels_int64s", 3}}), HasSubstr("classlabels_int64s"));
}

}  // namespace
}  // namespace hone::onnx_testing::HONE_FILE
