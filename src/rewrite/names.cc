#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph_copy.h"
#include "rewrite/passes.h"

namespace hone {
namespace {

constexpr size_t kMaxStem = 1000;  // bytes; names in a graph are at most 65,535 long

class Namer {
 public:
  explicit Namer(Graph& graph) : graph_(graph) {
    for (uint32_t i = 0; i < graph.value_count(); ++i)
      if (const std::string_view name = graph.name({i}); !name.empty()) taken_.emplace(name);
  }

  void run() {
    for (size_t i = 0; i < graph_.inputs().size(); ++i)
      name_if_unnamed(graph_.inputs()[i], fmt::format("input{}", i));
    for (size_t i = 0; i < graph_.outputs().size(); ++i)
      name_if_unnamed(graph_.outputs()[i], fmt::format("output{}", i));
    const std::vector<uint32_t> heads = cluster_heads();
    for (NodeId n : graph_.nodes()) {
      const ValueRange results = graph_.results(n);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!graph_.name(results[i]).empty()) continue;
        const uint32_t head = heads[n.index];
        std::string stem(graph_.op(n).name());
        const std::string_view whole = graph_.name(graph_.result({head}));
        if (head != n.index && whole.size() <= kMaxStem) stem = fmt::format("{}.{}", whole, stem);
        if (i > 0) stem = fmt::format("{}.{}", graph_.name(results[0]), i);
        name_if_unnamed(results[i], stem);
      }
    }
  }

 private:
  // Per node: the first node that is named and computed from it; itself, if there is none.
  std::vector<uint32_t> cluster_heads() const {
    const Users users(graph_);
    std::vector<uint32_t> heads(graph_.node_count());
    for (uint32_t i = static_cast<uint32_t>(graph_.node_count()); i-- > 0;) {
      heads[i] = i;
      const ValueRange results = graph_.results({i});
      if (results.size() == 0 || !graph_.name(results[0]).empty()) continue;
      uint32_t first = UINT32_MAX;
      for (ValueId v : results)
        if (!users.of(v).empty()) first = std::min(first, users.of(v)[0].index);
      if (first == UINT32_MAX) continue;
      const uint32_t head = heads[first];
      if (!graph_.name(graph_.result({head})).empty()) heads[i] = head;
    }
    return heads;
  }

  void name_if_unnamed(ValueId v, const std::string& stem) {
    if (!graph_.name(v).empty()) return;
    std::string name = stem;
    for (int64_t& count = counts_[stem]; !taken_.insert(name).second;)
      name = fmt::format("{}_{}", stem, ++count + 1);
    graph_.set_name(v, name);
  }

  Graph& graph_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int64_t> counts_;  // names that were made from the stem
};

}  // namespace

Result<Graph> name_values(const Graph& graph) {
  GraphCopy copy(graph);
  for (NodeId n : graph.nodes())
    HONE_TRY(copy.node(n, graph.op(n), HONE_TRY(transform_regions(graph, n, name_values))));
  Graph result = copy.finish();
  Namer(result).run();
  return result;
}

}  // namespace hone
