#pragma once

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "front/onnx/onnx.h"
#include "front/onnx/proto.h"
#include "ir/reference/evaluate_model.h"
#include "tests/base/says_testing.h"

// Hostile files, one per known class: each is refused with an exit code and a message, in bounded
// time. Models are written in protobuf's text form, where nothing keeps them from being wrong.

namespace hone::hostile {

// Expects that what happens while it lives takes little of the processors' time. The bound is ample
// for sanitizers; what is not bounded takes far longer.
class ExpectQuick {
 public:
  ExpectQuick() = default;
  ExpectQuick(const ExpectQuick&) = delete;
  ~ExpectQuick() {
    EXPECT_LT(static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC, 10) << "seconds";
  }

 private:
  std::clock_t start_ = std::clock();
};

inline onnx::ModelProto parse_text(const std::string& text) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model)) << text;
  return model;
}

// The graph's content in a model of the default domain, which also imports domain "own".
inline std::string model_text(std::string_view graph, std::string_view functions = "",
                              int opset = 17) {
  return fmt::format(
      "ir_version: 8 opset_import {{ version: {} }} opset_import {{ domain: 'own' version: 1 }} "
      "opset_import {{ domain: 'com.microsoft' version: 1 }} graph {{ name: 'g' {} }} {}",
      opset, graph, functions);
}

// "input { name: 'x' ... }" with the dims as they are: numbers, or names in quotes.
inline std::string value_text(std::string_view kind, std::string_view name, int elem_type,
                              const std::vector<std::string>& dims) {
  std::string shape;
  for (const std::string& dim : dims)
    shape +=
        fmt::format("dim {{ {}: {} }} ", dim.starts_with('\'') ? "dim_param" : "dim_value", dim);
  return fmt::format(
      "{} {{ name: '{}' type {{ tensor_type {{ elem_type: {} shape {{ {} }} }} }} }} ", kind, name,
      elem_type, shape);
}
inline std::string input_text(std::string_view name, const std::vector<std::string>& dims,
                              int elem_type = 1) {
  return value_text("input", name, elem_type, dims);
}
inline std::string output_text(std::string_view name) {
  return fmt::format("output {{ name: '{}' }} ", name);
}
// One of 64-bit integers.
inline std::string integers_text(std::string_view name, const std::vector<int64_t>& values,
                                 bool is_scalar = false) {
  std::string dims = is_scalar ? "" : fmt::format("dims: {}", values.size());
  return fmt::format("initializer {{ name: '{}' data_type: 7 {} int64_data: [{}] }} ", name, dims,
                     fmt::join(values, ", "));
}
inline std::string reals_text(std::string_view name, const std::vector<int64_t>& dims,
                              const std::vector<double>& values) {
  return fmt::format("initializer {{ name: '{}' data_type: 1 dims: [{}] float_data: [{}] }} ", name,
                     fmt::join(dims, ", "), fmt::join(values, ", "));
}
// node_text("Add", "a b", "c", "attribute { ... }")
inline std::string node_text(std::string_view op, std::string_view inputs, std::string_view outputs,
                             std::string_view more = "") {
  std::string text = fmt::format("node {{ op_type: '{}' ", op);
  auto each = [&](std::string_view field, std::string_view names) {
    while (!names.empty()) {
      size_t end = std::min(names.find(' '), names.size());
      std::string_view name = names.substr(0, end);
      text += fmt::format("{}: '{}' ", field, name == "-" ? "" : name);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  };
  each("input", inputs);
  each("output", outputs);
  return text + std::string(more) + " } ";
}
inline std::string int_text(std::string_view name, int64_t value) {
  return fmt::format("attribute {{ name: '{}' type: INT i: {} }} ", name, value);
}
inline std::string ints_text(std::string_view name, const std::vector<int64_t>& values) {
  return fmt::format("attribute {{ name: '{}' type: INTS ints: [{}] }} ", name,
                     fmt::join(values, ", "));
}
inline std::string graph_text(std::string_view name, std::string_view content) {
  return fmt::format("attribute {{ name: '{}' type: GRAPH g {{ name: '{}' {} }} }} ", name, name,
                     content);
}

inline Result<Model> import_text(const std::string& text, const ImportOptions& options = {}) {
  std::string bytes = parse_text(text).SerializeAsString();
  return parse_onnx(std::as_bytes(std::span(bytes)), "h.onnx", "/nowhere", options);
}

// What a user sees who imports the file and runs it on zeros: of the exit code and the message.
inline Error error_of(const std::string& text, const ImportOptions& options = {}) {
  Result<Model> model = import_text(text, options);
  if (!model.ok()) return model.error();
  std::vector<Tensor> inputs;
  for (const ModelValue& input : model->inputs)
    if (input.type.is_static() && input.type.static_bytes() < 1 << 20)
      inputs.push_back(Tensor::zeros(input.type));
  if (inputs.size() < model->inputs.size()) return {ErrorCode::mismatch, "imported"};
  EvalOptions small = {.max_bytes = int64_t{1} << 28, .max_iterations = 1000};
  Result<std::vector<Tensor>> outputs = evaluate_model(*model, inputs, small);
  return outputs.ok() ? Error(ErrorCode::mismatch, "evaluated") : outputs.error();
}

inline void expect_error(const std::string& text, ErrorCode code, std::string_view words,
                         const ImportOptions& options = {}) {
  ExpectQuick quick;
  Error error = error_of(text, options);
  SCOPED_TRACE(error.to_string());
  EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code));
  if (!words.empty()) EXPECT_THAT(error.to_string(), tested::says(std::string(words)));
}

// A fault of a file that import does without (tests/front/onnx_lenient_test.cc): it runs.
inline constexpr ErrorCode kRuns = ErrorCode::mismatch;

struct Case {
  std::string name, text;
  ErrorCode code;
  std::string words;
};
inline void expect_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    expect_error(c.text, c.code, c.words);
  }
}

struct OpCase {
  std::string name, op, operands, attributes;
  ErrorCode code = ErrorCode::bad_input;
  std::string words = "";  // beyond the node's name
  int opset = 17;
};
// One node for each case, in a graph with these inputs and initializers.
inline void expect_op_errors(const std::string& inputs, const std::vector<OpCase>& cases,
                             std::string_view domain = "") {
  for (const OpCase& c : cases) {
    SCOPED_TRACE(c.op + ": " + c.name);
    std::string more = fmt::format("domain: '{}' {}", domain, c.attributes);
    std::string text =
        model_text(inputs + output_text("y") + node_text(c.op, c.operands, "y", more), "", c.opset);
    ExpectQuick quick;
    Error error = error_of(text);
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(c.code)) << error.to_string();
    EXPECT_THAT(error.to_string(), testing::HasSubstr(fmt::format("node 'y' ({})", c.op)));
    if (!c.words.empty()) EXPECT_THAT(error.to_string(), tested::says(c.words));
  }
}

inline constexpr ErrorCode kBad = ErrorCode::bad_input, kLimit = ErrorCode::limit,
                           kUnsupported = ErrorCode::unsupported;

}  // namespace hone::hostile
