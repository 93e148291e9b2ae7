#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "front/onnx/write/emit.h"
#include "front/onnx/write/packed_product.h"
#include "ir/contents.h"
#include "ir/model.h"
#include "tensor/dim_compute.h"

namespace hone::onnx_io {

// The state that all graphs of a file share.
struct FileWriter {
  int opset = 21;
  bool primitives = false;  // composites are spelled out
  std::set<std::string> names;
  std::unordered_map<std::string, int64_t> counts;
  std::map<std::string, int64_t> domains;  // beside the default one, with their versions
  // Constants, each once; those in subgraphs too stand in the model's graph.
  onnx::GraphProto* root = nullptr;
  std::unordered_map<uint64_t, std::string> constants;       // by content
  std::vector<std::pair<onnx::TensorProto*, Tensor>> large;  // whose bytes are written in the end

  std::string fresh_name(std::string_view wish);
  // Names of the model's outputs, which one value each may claim; others get a fresh one.
  std::set<std::string> reserved;
  std::string claim(std::string_view wish);
};

// Writes graphs of hone into one graph of the file.
class GraphWriter {
 public:
  GraphWriter(FileWriter& file, onnx::GraphProto& proto, GraphWriter* around = nullptr)
      : file_(file), proto_(proto), around_(around) {}

  FileWriter& file() { return file_; }
  onnx::GraphProto& proto() { return proto_; }

  // The nodes of the graph, its parameters being values of these names; what its outputs are
  // called. With `wanted` the outputs get these names.
  Names inlined(const Graph& graph, const Names& arguments, const Names& wanted = {});
  // The segments in turn; `values` knows the names between segments.
  using Values = std::map<std::string, std::string, std::less<>>;
  void segments(const std::vector<Segment>& list, Values& values);

  std::string constant(const Tensor& tensor, std::string_view wish);
  onnx::NodeProto& node(std::string_view op, const Names& inputs, const Names& outputs,
                        const Attributes& attributes, std::string_view wish);

  // i64[1]: what the symbol is, from the shapes of the innermost graph's parameters.
  std::string size_of(Symbol symbol);
  std::string value(ValueId v) const;  // in the innermost graph
  // The name that a result is to have.
  std::string result_name(ValueId v);
  void set_value(ValueId v, std::string name);
  // The value that an Expand repeats to make this one: ONNX's elementwise ops repeat it by
  // themselves. "" if no Expand makes it.
  std::string repeated(ValueId v) const;
  void set_repeated(ValueId v, std::string name);
  Contents& contents() { return *scopes_.back().contents; }  // of the innermost graph
  // Null for other dots and sums than products by packed weights.
  const PackedProduct* packed(NodeId product) const;

 private:
  // The axis of a value from whose size a symbol follows.
  struct TellingAxis {
    std::string value;
    int axis;
    LinearDim size;
  };
  // A graph of hone that is being written.
  struct Scope {
    const Graph* graph = nullptr;
    std::vector<std::string> names;  // of its values in the file
    std::map<std::string, TellingAxis> symbols;
    std::map<std::string, std::string> sizes;            // of symbols -> i64[1]
    std::unordered_map<uint32_t, std::string> repeated;  // by the value that Expand makes of it
    std::unique_ptr<Contents> contents;
    std::map<NodeId, PackedProduct> packed;
    std::vector<bool> needed;  // by node; false: only packed products read it
  };
  void find_packed(Scope& scope) const;
  void write_node(const Graph& graph, NodeId n);
  void write_expansion(const Graph& graph, NodeId n);
  // i64[1]
  std::string written_size(const std::string& value, int axis, std::string_view wish);
  std::string solved_size(const TellingAxis& axis);
  void find_symbols(Scope& scope, const Names& arguments);

  void segment(const GraphSegment& segment, Values& values);
  void segment(const IfSegment& segment, Values& values);
  void segment(const LoopSegment& segment, Values& values);
  void segment(const DeferredSegment& segment, Values& values);

  FileWriter& file_;
  onnx::GraphProto& proto_;
  GraphWriter* around_;  // whose values the nodes here see; null for none
  std::vector<Scope> scopes_;
};

// Sets what the file says of an input or output.
void fill_value_info(onnx::ValueInfoProto& info, std::string_view name, Type type);
void fill_attribute(onnx::AttributeProto& proto, const Attribute& attribute);

}  // namespace hone::onnx_io
