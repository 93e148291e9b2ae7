#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/graph_view.h"

namespace hone {

// The values that the names in a plan stand for. Errors have the name, and one that is like it.
class ValueNames {
 public:
  explicit ValueNames(const Graph& graph);

  Result<ValueId> value(std::string_view name) const;
  // The node whose first result has the name, in a view of the graph that has the copies.
  Result<NodeId> node(GraphView graph, std::string_view name) const;
  bool has(std::string_view name) const { return values_.contains(name) || is_copy(name); }

  // The names of copies, which the graph does not have.
  void add(const std::string& name, ValueId copy) { copies_.emplace(name, copy); }
  void remove(const std::string& name) { copies_.erase(name); }

 private:
  bool is_copy(std::string_view name) const {
    return !copies_.empty() && copies_.contains(std::string(name));
  }
  std::string hint(std::string_view name) const;

  std::unordered_map<std::string_view, ValueId> values_;
  std::unordered_map<std::string, ValueId> copies_;
};

}  // namespace hone
