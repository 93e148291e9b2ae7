#include "report/dot.h"

#include "base/text.h"
#include "ir/op_facts.h"
#include "ir/summary.h"

namespace hone {
namespace {

constexpr int64_t kSmallConstant = 16;

std::string_view color_of(const Graph& graph, NodeId n) {
  const Opcode opcode = graph.opcode(n);
  if (is_parameter(opcode)) return "#cfe8cf";
  if (is_constant(opcode)) return "#e8e8e8";
  if (is_composite(opcode)) return "#f5e3bf";
  return class_of(opcode) == OpClass::contraction ? "#c9dcf2" : "#ffffff";
}

class Drawing {
 public:
  std::string draw(const Graph& graph) {
    text_ = fmt::format("digraph {} {{\n", hone::quoted(graph.name()));
    text_ += "  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n";
    text_ += "  edge [fontname=\"sans-serif\", fontsize=8];\n";
    add(graph, "n", "  ");
    return text_ + "}\n";
  }

 private:
  static bool is_drawn(const Graph& graph, NodeId n) {
    return !is_constant(graph.opcode(n)) || graph.constant(n).elements() > kSmallConstant;
  }

  // `prefix` begins the identifiers of this graph's nodes.
  void add(const Graph& graph, const std::string& prefix, const std::string& indent) {
    for (NodeId n : graph.nodes()) {
      if (!is_drawn(graph, n)) continue;
      const std::string id = fmt::format("{}{}", prefix, n.index);
      text_ += fmt::format("{}{} [label={}, fillcolor=\"{}\"];\n", indent, id,
                           hone::quoted(label_of(graph, n)), color_of(graph, n));
      add_edges(graph, n, prefix, indent);
      add_regions(graph, n, id, indent);
    }
    const std::vector<std::string> names = output_names(graph);
    for (size_t i = 0; i < names.size(); ++i) {
      const NodeId producer = graph.producer(graph.outputs()[i]);
      if (!is_drawn(graph, producer)) continue;
      text_ += fmt::format("{0}{1}out{2} [label={3}, shape=ellipse];\n{0}{1}{4} -> {1}out{2};\n",
                           indent, prefix, i, hone::quoted(names[i]), producer.index);
    }
  }

  static std::string label_of(const Graph& graph, NodeId n) {
    std::string label(graph.op(n).name());
    if (graph.results(n).size() > 0) {
      const ValueId v = graph.result(n);
      label = fmt::format("{} = {}\n{}", graph.label(v), label, graph.type(v).to_string());
    }
    return label;
  }

  void add_edges(const Graph& graph, NodeId n, const std::string& prefix,
                 const std::string& indent) {
    for (ValueId v : graph.operands(n)) {
      if (v.is_none() || !is_drawn(graph, graph.producer(v))) continue;
      text_ += fmt::format("{}{}{} -> {}{} [label={}];\n", indent, prefix, graph.producer(v).index,
                           prefix, n.index, hone::quoted(graph.type(v).to_string()));
    }
  }

  void add_regions(const Graph& graph, NodeId n, const std::string& id, const std::string& indent) {
    const std::span<const GraphRef> regions = graph.regions(n);
    const std::vector<std::string_view> names = region_names(graph.op(n).def());
    for (size_t i = 0; i < regions.size(); ++i) {
      const std::string inner = fmt::format("{}r{}_", id, i);
      text_ += fmt::format("{}subgraph cluster_{} {{\n{}  label={};\n", indent, inner, indent,
                           hone::quoted(fmt::format("{} of {}", names.at(i), graph.describe(n))));
      add(*regions[i], inner, indent + "  ");
      text_ += fmt::format("{}}}\n", indent);
    }
  }

  std::string text_;
};

}  // namespace

std::string graphviz(const Graph& graph) { return Drawing().draw(graph); }

}  // namespace hone
