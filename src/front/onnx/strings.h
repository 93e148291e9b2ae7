#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "front/onnx/labels.h"
#include "front/onnx/proto.h"

namespace hone::onnx_io {

// The default of the attribute default_string.
inline constexpr std::string_view kUnused = "_Unused";

// The strings of a file's graph, and which of its values hold some: they are imported as i64, as
// places in one table. The knowledge of a value follows from the names of the nodes alone, so it is
// the same for parts that are typed later.
class Strings {
 public:
  explicit Strings(const onnx::ModelProto& model);

  // Each string once, labels of classes before all others.
  const std::vector<std::string>& table() const { return table_; }
  // Null for one that the table lacks: it stands in a local function.
  std::optional<int64_t> place(std::string_view text) const;
  // True if a value of the graph or of its subgraphs holds strings.
  bool holds(const std::string& value) const { return values_.contains(value); }
  // An error if the node does something else with strings than to move or to look them up.
  Status check(const onnx::NodeProto& node) const;
  // A tensor of strings as places.
  Result<Tensor> tensor(const onnx::TensorProto& proto) const;
  // The labels of the graph's inputs and outputs.
  OnnxLabels labels(const onnx::GraphProto& graph) const;

 private:
  void add(std::string_view text);
  void add_class_labels(const onnx::GraphProto& graph);
  void add_graph(const onnx::GraphProto& graph);
  void add_node(const onnx::NodeProto& node);

  std::vector<std::string> table_;
  std::unordered_map<std::string, int64_t> places_;
  std::unordered_set<std::string> values_;
};

}  // namespace hone::onnx_io
