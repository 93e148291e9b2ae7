#include "front/onnx/node_order.h"

#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hone::onnx_io {
namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Producers = std::unordered_map<std::string_view, int>;  // of names: the node
using Edges = std::vector<std::vector<int>>;                  // of a node: those that read it

// Calls `see` with the names that the node reads, in its subgraphs, too.
void each_name_read(const onnx::NodeProto& node,
                    const std::function<void(const std::string&)>& see) {
  for (const std::string& name : node.input()) see(name);
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (!attribute.has_g()) continue;
    for (const onnx::NodeProto& inner : attribute.g().node()) each_name_read(inner, see);
    for (const onnx::ValueInfoProto& output : attribute.g().output()) see(output.name());
  }
}

// The nodes in the order of their first places, but each after those that it reads. Empty if there
// is a cycle.
std::vector<int> sorted(const Edges& readers, std::vector<int> missing) {
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] == 0) ready.push(static_cast<int>(i));
  std::vector<int> order;
  while (!ready.empty()) {
    const int next = ready.top();
    ready.pop();
    order.push_back(next);
    for (int reader : readers[static_cast<size_t>(next)])
      if (--missing[static_cast<size_t>(reader)] == 0) ready.push(reader);
  }
  return order.size() == missing.size() ? order : std::vector<int>();
}

void sort(Nodes& nodes) {
  Producers producers;
  for (int i = 0; i < nodes.size(); ++i)
    for (const std::string& name : nodes[i].output()) producers.emplace(name, i);
  Edges readers(static_cast<size_t>(nodes.size()));
  std::vector<int> missing(readers.size(), 0);
  bool is_in_order = true;
  for (int i = 0; i < nodes.size(); ++i)
    each_name_read(nodes[i], [&](const std::string& name) {
      const auto found = name.empty() ? producers.end() : producers.find(name);
      if (found == producers.end() || found->second == i) return;
      is_in_order &= found->second < i;
      readers[static_cast<size_t>(found->second)].push_back(i);
      ++missing[static_cast<size_t>(i)];
    });
  if (is_in_order) return;
  Nodes moved;
  for (int i : sorted(readers, std::move(missing))) moved.Add()->Swap(nodes.Mutable(i));
  if (moved.size() == nodes.size()) nodes.Swap(&moved);
}

void sort_within(Nodes& nodes) {
  for (onnx::NodeProto& node : nodes)
    for (onnx::AttributeProto& attribute : *node.mutable_attribute())
      if (attribute.has_g()) sort_within(*attribute.mutable_g()->mutable_node());
  sort(nodes);
}

}  // namespace

void sort_nodes(onnx::ModelProto& model) {
  sort_within(*model.mutable_graph()->mutable_node());
  for (onnx::FunctionProto& function : *model.mutable_functions())
    sort_within(*function.mutable_node());
}

}  // namespace hone::onnx_io
