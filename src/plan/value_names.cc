#include "plan/value_names.h"

#include <vector>

#include "base/text.h"

namespace hone {

ValueNames::ValueNames(GraphView graph) : graph_(graph) {
  values_.reserve(graph.value_count());
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    values_.emplace(graph.name(ValueId{i}), ValueId{i});
}

Result<ValueId> ValueNames::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  return bad_input("the graph has no value '%{}'", excerpt(name)).with_hint(hint(name));
}

std::string ValueNames::hint(std::string_view name) const {
  constexpr size_t kMaxLength = 64, kMaxCandidates = 10000;
  std::vector<std::string_view> known;
  for (const auto& [candidate, v] : values_)
    if (candidate.size() <= kMaxLength && known.size() < kMaxCandidates) known.push_back(candidate);
  return name.size() <= kMaxLength ? did_you_mean(name, known) : "";
}

Result<NodeId> ValueNames::node(std::string_view name) const {
  const ValueId v = HONE_TRY(value(name));
  if (graph_.result_index(v) == 0) return graph_.producer(v);
  return bad_input("'%{}' is result {} of a node; nodes go by their first, '%{}'", name,
                   graph_.result_index(v), graph_.name(graph_.result(graph_.producer(v))));
}

}  // namespace hone
