#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace hone {

// Gives each name once: "rate", "rate_2".
class FreeNames {
 public:
  FreeNames() = default;
  // Without those of the graph's values.
  explicit FreeNames(const Graph& graph) {
    for (uint32_t i = 0; i < graph.value_count(); ++i) taken_.emplace(graph.name(ValueId{i}));
  }
  std::string unique(std::string_view wanted) {
    std::string name(wanted);
    for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", wanted, i);
    return name;
  }

 private:
  std::set<std::string> taken_;
};

}  // namespace hone
