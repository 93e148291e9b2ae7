#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "front/hlo/program.h"
#include "front/hlo/reader.h"
#include "ir/application.h"
#include "ir/builder.h"

// Writing graphs as programs of StableHLO or HLO: what the export of one op sees. Exports are one
// function each, in src/front/hlo/write, with a row in exports.def.
//
//   Ids write_reverse(Emit& e) {
//     return {e.op("stablehlo.reverse", e.all(), e.result_type(),
//                  {{"dimensions", list_of(e.op().ints("axes"))}})};
//   }
//
// They return the values that are the results, and throw Refusal for what the language cannot say.

namespace hone::hlo {

using Ids = std::vector<uint32_t>;  // values of the function that is written

enum class Language : uint8_t { stablehlo, hlo };

// ---- Attributes ---------------------------------------------------------------------------------

Attribute number_of(int64_t number);
Attribute list_of(std::span<const int64_t> numbers);
Attribute pairs_of(std::span<const int64_t> low, std::span<const int64_t> high);
Attribute rows_of(std::span<const int64_t> numbers, int64_t each);
Attribute word_of(std::string_view word);  // that lives as long as the program
Attribute record_of(std::initializer_list<std::pair<std::string_view, Attribute>> fields);

// ---- The program that grows ---------------------------------------------------------------------

// Writes graphs into one function.
class GraphToProgram {
 public:
  GraphToProgram(Program& program, Function& function, Language language)
      : language(language), program_(program), function_(function), region_(&function.body) {}

  const Language language;

  // The nodes of the graph, its parameters being these values; returns those of its outputs.
  Ids inlined(const Graph& graph, std::span<const uint32_t> arguments);

  Ids ops(std::string_view name, Ids operands, std::span<const Type> results,
          AttributeList attributes = {}, std::vector<Region> regions = {});
  uint32_t op(std::string_view name, Ids operands, Type result, AttributeList attributes = {},
              std::vector<Region> regions = {});
  uint32_t constant(const Tensor& tensor);
  // The program has at least as many devices.
  void need_devices(int64_t count);
  // Finds out what the symbols of the graph are, from the sizes of its inputs.
  void measure(const Graph& graph, std::span<const uint32_t> arguments);
  uint32_t size(Dim dim);                     // i64[]
  uint32_t sizes(std::span<const Dim> dims);  // i64[n]
  // `make` writes what it returns from the parameters.
  using Make = std::function<Ids(const Ids& parameters)>;
  Region region(std::span<const Type> parameters, const Make& make);
  uint32_t add_value() { return function_.values++; }
  // The attribute of a value that says its sharding. The module declares the mesh.
  Attribute sharding(const Sharding& sharding);
  // The text, kept as long as the program.
  std::string_view kept(std::string text) { return program_.made.emplace_back(std::move(text)); }

 private:
  Ids node(const Graph& graph, NodeId n, std::span<const uint32_t> values);
  Ids composite(const Graph& graph, NodeId n, const Graph& spelled_out, Ids operands);
  // shardings.cc. Writes the shardings of a value; `is_own`: the last instruction makes it alone.
  uint32_t sharded(const Graph& graph, ValueId v, uint32_t value, bool is_own);

  Program& program_;
  Function& function_;
  Region* region_;                           // that gets the instructions
  std::map<std::string, uint32_t> symbols_;  // what they are, i64[]
  bool is_spelling_ = false;                 // the function says what a composite is
  std::unordered_map<ApplicationKey, std::string_view, ApplicationHash> composites_;
};

// ---- One node -----------------------------------------------------------------------------------

class Emit {
 public:
  Emit(GraphToProgram& writer, const Graph& graph, NodeId node, Ids operands)
      : writer_(writer), graph_(graph), node_(node), operands_(std::move(operands)) {}

  Op op() const { return graph_.op(node_); }
  bool is_hlo() const { return writer_.language == Language::hlo; }
  const Ids& all() const { return operands_; }  // without those that are absent
  uint32_t in(size_t i) const { return operands_[i]; }
  Type type(size_t i) const { return graph_.type(graph_.operands(node_)[i]); }
  DType dtype() const { return type(0).dtype(); }
  Type result_type(size_t i = 0) const { return graph_.type(graph_.result(node_, i)); }
  std::vector<Type> result_types() const { return graph_.result_types(node_); }
  const Graph& region(size_t i) const { return *graph_.regions(node_)[i]; }
  GraphToProgram& writer() { return writer_; }

  uint32_t op(std::string_view name, Ids operands, Type result, AttributeList attributes = {},
              std::vector<Region> regions = {}) {
    return writer_.op(name, std::move(operands), result, std::move(attributes), std::move(regions));
  }
  // The same op of the language for all operands, with this result.
  Ids same(std::string_view name, AttributeList attributes = {}) {
    return {op(name, all(), result_type(), std::move(attributes))};
  }
  uint32_t converted(uint32_t value, Type type, DType dtype);
  // A scalar. Reals are rounded, integers wrap.
  uint32_t scalar(DType dtype, std::variant<int64_t, double> number);

  // Writes what `make` builds of the operands, in other ops of hone.
  using Spelling = std::function<std::vector<Value>(Builder&, std::span<const Value>)>;
  Ids spelled(const Spelling& make);

  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> text, Args&&... args) {
    throw Refusal{hone::unsupported("{}", fmt::format(text, std::forward<Args>(args)...))};
  }

 private:
  GraphToProgram& writer_;
  const Graph& graph_;
  NodeId node_;
  Ids operands_;
};

using WriteFunction = Ids (*)(Emit&);
// Null: the row of hlo_ops.def serves, or the op is spelled out.
WriteFunction export_of(Opcode opcode);

// A body of two scalars that combines them by one op: "stablehlo.add".
Region combining_body(GraphToProgram& writer, std::string_view op, DType dtype);
// Each element is its index along the axis.
uint32_t written_iota(Emit& e, Type type, int64_t axis);
// The op of the language for a kind of hone: sum, product, max, min, and, or.
std::string_view combiner_of(std::string_view kind);

}  // namespace hone::hlo
