#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"
#include "ir/reference/evaluate_model.h"

// ONNX models of one node, built, imported and evaluated in a line:
//
//   EXPECT_EQ(numbers(run_node("Softmax", 11, {reals({1, 2}, {0, 0})}, {{"axis", 1}})),
//             Numbers({0.5, 0.5}));
//   EXPECT_THAT(import_error("Conv", 11, {x}), HasSubstr("operand 1 is missing"));

namespace hone::onnx_testing {

using Numbers = std::vector<double>;

inline Type type_of(DType dtype, const Ints& dims) {
  return Type::get(dtype, Dims(dims.begin(), dims.end()));
}
inline Tensor reals(const Ints& dims, const Numbers& values, DType dtype = DType::f32) {
  return Tensor::from_reals(type_of(dtype, dims), values);
}
inline Tensor integers(const Ints& dims, const Ints& values, DType dtype = DType::i64) {
  return Tensor::from_integers(type_of(dtype, dims), values);
}

// The elements of any type.
inline Numbers numbers(const Tensor& tensor) {
  Numbers values;
  for (int64_t i = 0; i < tensor.elements(); ++i) values.push_back(tensor.real_at(i));
  return values;
}

// An operand of the node: an input of the model, an initializer, or left out.
struct Operand {
  Operand(Tensor t) : tensor(std::move(t)) {}  // NOLINT: implicit
  Operand() = default;
  Tensor tensor;
  bool is_constant = false;
};
inline Operand constant(Tensor tensor) {
  Operand operand = std::move(tensor);
  operand.is_constant = true;
  return operand;
}
inline Operand none() { return {}; }

// The kind of an attribute follows from the type of its value.
using AttributeValue = std::variant<int, int64_t, double, const char*, std::string, Ints, Numbers,
                                    std::vector<std::string>, Tensor>;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

struct NodeOptions {
  std::string domain = "";
  size_t outputs = 1;
  // Dims of inputs that are above 1 become symbols; equal sizes share one.
  bool symbolic = false;
  Ints numbers = {};  // sizes that stay numbers all the same
};

inline void fill_attribute(onnx::AttributeProto& proto, const AttributeValue& value) {
  using P = onnx::AttributeProto;
  struct Visitor {
    P& p;
    void operator()(int v) { (*this)(int64_t{v}); }
    void operator()(int64_t v) { p.set_type(P::INT), p.set_i(v); }
    void operator()(double v) { p.set_type(P::FLOAT), p.set_f(static_cast<float>(v)); }
    void operator()(const char* v) { (*this)(std::string(v)); }
    void operator()(const std::string& v) { p.set_type(P::STRING), p.set_s(v); }
    void operator()(const Ints& values) {
      p.set_type(P::INTS);
      for (int64_t v : values) p.add_ints(v);
    }
    void operator()(const Numbers& values) {
      p.set_type(P::FLOATS);
      for (double v : values) p.add_floats(static_cast<float>(v));
    }
    void operator()(const std::vector<std::string>& values) {
      p.set_type(P::STRINGS);
      for (const std::string& v : values) p.add_strings(v);
    }
    void operator()(const Tensor& v) {
      p.set_type(P::TENSOR), onnx_io::fill_tensor(v, *p.mutable_t());
    }
  };
  std::visit(Visitor{proto}, value);
}

inline void fill_input(onnx::ValueInfoProto& info, const std::string& name, Type type,
                       bool symbolic, const Ints& numbers = {}) {
  auto is_symbol = [&](int64_t size) {
    return symbolic && size > 1 && std::ranges::count(numbers, size) == 0;
  };
  info.set_name(name);
  onnx::TypeProto::Tensor& tensor = *info.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx_io::data_type_of(type.dtype()));
  tensor.mutable_shape();
  for (int64_t size : type.static_dims()) {
    onnx::TensorShapeProto::Dimension& dim = *tensor.mutable_shape()->add_dim();
    if (is_symbol(size))
      dim.set_dim_param("s" + std::to_string(size));
    else
      dim.set_dim_value(size);
  }
}

// The file's bytes.
inline std::string node_model(std::string_view op, int version,
                              const std::vector<Operand>& operands,
                              const Attributes& attributes = {}, const NodeOptions& options = {}) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::OperatorSetIdProto& opset = *model.add_opset_import();
  opset.set_domain(options.domain);
  opset.set_version(version);
  if (!options.domain.empty()) model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("test");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type(std::string(op));
  node.set_domain(options.domain);
  for (size_t i = 0; i < operands.size(); ++i) {
    const Operand& operand = operands[i];
    std::string name = operand.tensor ? "x" + std::to_string(i) : "";
    node.add_input(name);
    if (!operand.tensor) continue;
    if (operand.is_constant) {
      onnx_io::fill_tensor(operand.tensor, *graph.add_initializer());
      graph.mutable_initializer(graph.initializer_size() - 1)->set_name(name);
    } else {
      fill_input(*graph.add_input(), name, operand.tensor.type(), options.symbolic,
                 options.numbers);
    }
  }
  for (const auto& [name, value] : attributes) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    fill_attribute(attribute, value);
  }
  for (size_t i = 0; i < options.outputs; ++i) {
    std::string name = "y" + std::to_string(i);
    node.add_output(name);
    graph.add_output()->set_name(name);
  }
  return model.SerializeAsString();
}

inline Result<std::vector<Tensor>> try_node(std::string_view op, int version,
                                            const std::vector<Operand>& operands,
                                            const Attributes& attributes = {},
                                            const NodeOptions& options = {}) {
  std::string bytes = node_model(op, version, operands, attributes, options);
  Model model = HONE_TRY(parse_onnx(std::as_bytes(std::span(bytes)), "test.onnx", "."));
  std::vector<Tensor> inputs;
  for (const Operand& operand : operands)
    if (operand.tensor && !operand.is_constant) inputs.push_back(operand.tensor);
  return evaluate_model(model, inputs, {.numerics = Numerics::rounded});
}

inline std::vector<Tensor> run_outputs(std::string_view op, int version,
                                       const std::vector<Operand>& operands,
                                       const Attributes& attributes = {},
                                       const NodeOptions& options = {}) {
  Result<std::vector<Tensor>> results = try_node(op, version, operands, attributes, options);
  if (results.ok()) return *results;
  ADD_FAILURE() << op << ": " << results.error().to_string();
  return std::vector<Tensor>(options.outputs, integers({}, {0}));
}

inline Tensor run_node(std::string_view op, int version, const std::vector<Operand>& operands,
                       const Attributes& attributes = {}, const NodeOptions& options = {}) {
  return run_outputs(op, version, operands, attributes, options)[0];
}

// The error of the node when it is imported or, failing that, run; "" if nothing is wrong.
inline std::string import_error(std::string_view op, int version,
                                const std::vector<Operand>& operands,
                                const Attributes& attributes = {},
                                const NodeOptions& options = {}) {
  Result<std::vector<Tensor>> results = try_node(op, version, operands, attributes, options);
  return results.ok() ? "" : results.error().what();
}

}  // namespace hone::onnx_testing
