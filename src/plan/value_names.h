#pragma once

#include <string_view>
#include <unordered_map>

#include "ir/graph_view.h"

namespace hone {

// The values that the names in a plan stand for. Errors have the name, and one that is like it.
class ValueNames {
 public:
  explicit ValueNames(GraphView graph);

  Result<ValueId> value(std::string_view name) const;
  // The node whose first result has the name.
  Result<NodeId> node(std::string_view name) const;
  bool has(std::string_view name) const { return values_.contains(name); }

 private:
  std::string hint(std::string_view name) const;

  const GraphView graph_;
  std::unordered_map<std::string_view, ValueId> values_;
};

}  // namespace hone
