#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <vector>

#include "onnx_testing.h"

// ONNX files written node by node, and some that more than one test reads.

namespace hone::onnx_testing {

using Strings = std::vector<std::string>;

// A graph of the file, written node by node.
struct GraphText {
  onnx::GraphProto& proto;

  onnx::NodeProto& node(std::string_view op, const Strings& inputs, const Strings& outputs,
                        const Attributes& attributes = {}) {
    onnx::NodeProto& node = *proto.add_node();
    node.set_op_type(std::string(op));
    node.set_name(fmt::format("{}_{}", op, proto.node_size()));
    for (const std::string& name : inputs) node.add_input(name);
    for (const std::string& name : outputs) node.add_output(name);
    for (const auto& [name, value] : attributes) {
      onnx::AttributeProto& attribute = *node.add_attribute();
      attribute.set_name(name);
      fill_attribute(attribute, value);
    }
    return node;
  }
  // Dims below 0 have no number; words are names.
  void input(const std::string& name, DType dtype, const Strings& dims) {
    onnx::ValueInfoProto& info = *proto.add_input();
    info.set_name(name);
    onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx_io::data_type_of(dtype));
    tensor.mutable_shape();
    for (const std::string& dim : dims) {
      auto& size = *tensor.mutable_shape()->add_dim();
      if (!dim.empty() && std::isdigit(dim[0]))
        size.set_dim_value(std::stoll(dim));
      else
        size.set_dim_param(dim);
    }
  }
  void constant(const std::string& name, const Tensor& tensor) {
    onnx_io::fill_tensor(tensor, *proto.add_initializer());
    proto.mutable_initializer(proto.initializer_size() - 1)->set_name(name);
  }
  void outputs(const Strings& names) {
    for (const std::string& name : names) proto.add_output()->set_name(name);
  }
};

inline GraphText subgraph(onnx::NodeProto& node, const std::string& attribute) {
  onnx::AttributeProto& proto = *node.add_attribute();
  proto.set_name(attribute);
  proto.set_type(onnx::AttributeProto::GRAPH);
  proto.mutable_g()->set_name(attribute);
  return {*proto.mutable_g()};
}

struct File {
  onnx::ModelProto proto;
  GraphText graph;

  File() : graph{*proto.mutable_graph()} {
    proto.set_ir_version(8);
    proto.add_opset_import()->set_version(17);
    graph.proto.set_name("model");
  }
  Result<Model> load(const ImportOptions& options = {}) const {
    std::string bytes = proto.SerializeAsString();
    return parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", ".", options);
  }
  Model model(const ImportOptions& options = {}) const {
    Result<Model> model = load(options);
    EXPECT_TRUE(model.ok()) << model.error().to_string();
    return model.ok() ? *model : Model();
  }
  std::string error(const ImportOptions& options = {}) const {
    Result<Model> model = load(options);
    return model.ok() ? "" : model.error().to_string();
  }
};

// y = flag ? then : else, each one node of x.
inline File if_file(bool is_constant, const std::string& no_op, const Strings& no_inputs) {
  File file;
  if (is_constant)
    file.graph.constant("flag", integers({}, {1}, DType::boolean));
  else
    file.graph.input("flag", DType::boolean, {});
  file.graph.input("x", DType::f32, {"3"});
  file.graph.constant("start", integers({1}, {1}));
  file.graph.constant("end", integers({1}, {3}));
  onnx::NodeProto& node = file.graph.node("If", {"flag"}, {"y"});
  GraphText yes = subgraph(node, "then_branch");
  yes.node("Neg", {"x"}, {"a"});
  yes.outputs({"a"});
  GraphText no = subgraph(node, "else_branch");
  no.node(no_op, no_inputs, {"b"});
  no.outputs({"b"});
  file.graph.node("Relu", {"y"}, {"z"});
  file.graph.outputs({"z"});
  return file;
}

// Carries `v` from [1]; the body computes `next` from v and the counter, and stacks the counter.
struct LoopFile : File {
  GraphText body;

  explicit LoopFile(const std::string& carried_dim = "1")
      : body(subgraph(graph.node("Loop", {"trips", "", "v0"}, {"v", "stack"}), "body")) {
    graph.input("trips", DType::i64, {});
    graph.constant("v0", reals({1}, {1}));
    body.input("i", DType::i64, {});
    body.input("goes_on", DType::boolean, {});
    body.input("v_in", DType::f32, {carried_dim});
    graph.outputs({"v", "stack"});
  }
  void finish(const std::string& condition, const std::string& next) {
    body.outputs({condition, next, "i_out"});
    body.node("Identity", {"i"}, {"i_out"});
  }
};

// The boxes that a detector keeps, and their scores.
inline File detector_file() {
  File file;
  file.graph.input("boxes", DType::f32, {"1", "256", "4"});
  file.graph.input("scores", DType::f32, {"1", "1", "256"});
  file.graph.constant("most", integers({}, {256}));
  file.graph.constant("overlap", reals({}, {0.5}));
  file.graph.constant("threshold", reals({}, {0.5}));
  file.graph.constant("two", integers({}, {2}));
  file.graph.constant("flat", integers({1}, {-1}));
  file.graph.constant("front", integers({1}, {0}));
  file.graph.node("NonMaxSuppression", {"boxes", "scores", "most", "overlap", "threshold"},
                  {"kept"});
  file.graph.node("Gather", {"kept", "two"}, {"index"}, {{"axis", 1}});
  file.graph.node("Squeeze", {"boxes", "front"}, {"all_boxes"});
  file.graph.node("Gather", {"all_boxes", "index"}, {"kept_boxes"}, {{"axis", 0}});
  file.graph.node("Reshape", {"scores", "flat"}, {"all_scores"});
  file.graph.node("Gather", {"all_scores", "index"}, {"kept_scores"});
  file.graph.outputs({"kept_boxes", "kept_scores"});
  return file;
}

// One head of attention over a cache that every step makes longer.
inline File decoder_file() {
  File file;
  file.graph.input("q", DType::f32, {"1", "4"});
  file.graph.input("past", DType::f32, {"past_length", "4"});
  file.graph.node("Concat", {"past", "q"}, {"present"}, {{"axis", 0}});
  file.graph.node("Transpose", {"present"}, {"keys"}, {{"perm", Ints{1, 0}}});
  file.graph.node("MatMul", {"q", "keys"}, {"scores"});
  file.graph.node("Softmax", {"scores"}, {"weights"}, {{"axis", -1}});
  file.graph.node("MatMul", {"weights", "present"}, {"y"});
  file.graph.outputs({"y", "present"});
  return file;
}

// The results of the model for the inputs: the numbers of one output.
inline Numbers run(const Model& model, const std::vector<Tensor>& inputs, size_t output = 0) {
  Result<std::vector<Tensor>> results = evaluate_model(model, inputs);
  if (results.ok()) return numbers((*results)[output]);
  ADD_FAILURE() << results.error().to_string();
  return {};
}
inline Numbers run(const File& file, const std::vector<Tensor>& inputs, size_t output = 0) {
  return run(file.model(), inputs, output);
}

}  // namespace hone::onnx_testing
