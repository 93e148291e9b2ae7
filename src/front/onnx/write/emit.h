#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "front/onnx/node.h"
#include "ir/builder.h"

// Writing graphs as ONNX: what the export of one op sees. Exports are one function each, in
// src/front/onnx/write, with a row in exports.def.
//
//   bool export_neg(Emit& e) { return e.result("Neg", {e.in(0)}); }
//
// Like the mappings of import they throw Failure for what ONNX cannot say.

namespace hone::onnx_io {

struct PackedProduct;
// An ONNX graph under construction: the model's, or a subgraph's, which sees the names around it.
class GraphWriter;

struct Attribute {
  std::string_view name;
  std::variant<int64_t, double, std::string_view, Ints, std::vector<double>,
               std::vector<std::string>, onnx::GraphProto*>
      value;
};
using Attributes = std::vector<Attribute>;
using Names = std::vector<std::string>;  // of values in the file; "" stands for an absent one

class Emit {
 public:
  Emit(GraphWriter& writer, const Graph& graph, NodeId node);

  // ---- The node of hone ------------------------------------------------------------------------
  const Graph& graph() const { return graph_; }
  Op op() const { return graph_.op(node_); }
  size_t operands() const { return graph_.operands(node_).size(); }
  bool has(size_t i) const;        // an optional operand
  std::string in(size_t i) const;  // "" for an absent one
  Names all() const;
  ValueId operand(size_t i) const { return graph_.operands(node_)[i]; }
  // The operands of an op that works element by element. One that is repeated along dims is given
  // as it is before, where ONNX's op repeats it to the same dims.
  Names elementwise() const;
  Type type(size_t i) const;  // of an operand
  int rank(size_t i) const { return type(i).rank(); }
  Type result_type(size_t i = 0) const;
  std::span<const GraphRef> regions() const { return graph_.regions(node_); }
  int opset() const;

  // ---- Nodes of the file -----------------------------------------------------------------------
  // Adds a node with one result of a new name, which is returned.
  std::string node(std::string_view op, Names inputs, Attributes attributes = {});
  Names nodes(std::string_view op, Names inputs, size_t results, Attributes attributes = {});
  // Adds the node whose result is (or results are) those of hone's node.
  // These return true, so that an export can end with them.
  bool result(std::string_view op, Names inputs, Attributes attributes = {});
  bool results(std::string_view op, Names inputs, Attributes attributes = {});
  // Lets a value of the file be the result: an Identity with its name.
  bool result_is(const std::string& value, size_t i = 0);

  // ---- Constants and sizes ---------------------------------------------------------------------
  std::string constant(const Tensor& tensor);
  std::string scalar(DType dtype, double value);  // rank 0
  std::string ints(const Ints& numbers);          // i64[n]
  std::string integer(int64_t number);            // i64[]
  // i64[n] of sizes; those that are symbols are computed from the shapes of inputs.
  std::string dims(std::span<const Dim> dims);
  std::string dim(Dim dim);  // i64[1]

  // ---- Common forms ----------------------------------------------------------------------------
  std::string cast(const std::string& value, DType dtype);
  std::string transpose(const std::string& value, const Ints& permutation);  // none if identity
  std::string reshape(const std::string& value, std::span<const Dim> dims);
  std::string squeeze(const std::string& value, const Ints& axes);
  std::string unsqueeze(const std::string& value, const Ints& axes);

  // ---- Other ops of hone -----------------------------------------------------------------------
  // Writes what `make` builds of the operands, in line. Returns the names of the values.
  using Spelling = std::function<std::vector<Value>(Builder&, std::span<const Value>)>;
  Names values_of(const Spelling& make);
  // The same as the node's results.
  bool spelled(const Spelling& make);
  // The elements of an operand, where they are known: numbers, or expressions of symbols.
  std::optional<Dims> known(size_t i) const;
  // The node that makes an operand, if it is of this kind.
  std::optional<NodeId> maker(size_t i, Opcode opcode) const;
  // The value of an operand that is computed from constants alone, before it is repeated along
  // dims.
  std::optional<Tensor> repeated_constant(size_t i) const;
  std::string value(ValueId v) const;   // what it is called
  const PackedProduct* packed() const;  // null for a product that reads its weights
  // The value that Expand is about to repeat as the node's result.
  void repeats(const std::string& value);
  // All elements are known to be in 0..size-1.
  bool is_within(size_t i, Dim size) const;

  // A graph of hone in line; what its outputs are called.
  Names inlined(const Graph& region, const Names& arguments, const Names& wanted = {});
  // A graph of hone as a subgraph. Its first `own` parameters are inputs of the subgraph, the rest
  // are values that it sees from outside. The proto is the caller's to put into an Attribute.
  onnx::GraphProto subgraph(const Graph& region, size_t own, const Names& bound);

  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> text, Args&&... args) {
    throw Failure{hone::unsupported("{}", fmt::format(text, std::forward<Args>(args)...))};
  }

 private:
  Graph built(const Spelling& make);

  GraphWriter& writer_;
  const Graph& graph_;
  NodeId node_;
};

}  // namespace hone::onnx_io
