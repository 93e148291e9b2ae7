#include "plan/value_names.h"

#include <vector>

#include "base/text.h"

namespace hone {

ValueNames::ValueNames(const Graph& graph) {
  values_.reserve(graph.value_count());
  for (uint32_t i = 0; i < graph.value_count(); ++i)
    values_.emplace(graph.name(ValueId{i}), ValueId{i});
}

Result<ValueId> ValueNames::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  if (is_copy(name)) return copies_.at(std::string(name));
  return bad_input("the graph has no value '%{}'", excerpt(name)).with_hint(hint(name));
}

std::string ValueNames::hint(std::string_view name) const {
  constexpr size_t kMaxLength = 64, kMaxCandidates = 10000;
  std::vector<std::string_view> known;
  const auto add = [&](std::string_view candidate) {
    if (candidate.size() <= kMaxLength && known.size() < kMaxCandidates) known.push_back(candidate);
  };
  for (const auto& [candidate, v] : values_) add(candidate);
  for (const auto& [candidate, v] : copies_) add(candidate);
  return name.size() <= kMaxLength ? did_you_mean(name, known) : "";
}

Result<NodeId> ValueNames::node(GraphView graph, std::string_view name) const {
  const ValueId v = HONE_TRY(value(name));
  if (graph.result_index(v) == 0) return graph.producer(v);
  return bad_input("'%{}' is result {} of a node; a plan names its first, '%{}'", name,
                   graph.result_index(v), graph.name(graph.result(graph.producer(v))));
}

}  // namespace hone
