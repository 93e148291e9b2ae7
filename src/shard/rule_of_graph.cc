#include <algorithm>
#include <map>

#include "ir/graph.h"
#include "ir/op_facts.h"
#include "shard/data_flow.h"
#include "shard/sharding_rule.h"

// The rule of a graph: where two ops meet at a value, their factors become one.

namespace hone {
namespace {

size_t slot_of(int i) { return static_cast<size_t>(i); }

// Factors that are joined and cut as ops meet.
class JoinedFactors {
 public:
  int add(const Factor& factor) {
    const int made = static_cast<int>(all_.size());
    all_.push_back({factor, made, -1, -1});
    return made;
  }
  DimFactors add(const ShardingRule& rule) {
    DimFactors made;
    for (const Factor& factor : rule.factors) made.push_back(add(factor));
    return made;
  }

  const Factor& factor(int f) { return all_[slot_of(root(f))].factor; }

  // The list as it is now: without factors of size 1, if it has others.
  DimFactors parts(const DimFactors& list) {
    DimFactors found;
    for (const int f : list) append_parts(f, found);
    if (found.size() > 1) {
      const int one = found[0];
      std::erase_if(found, [&](int f) { return factor(f).size == 1; });
      if (found.empty()) found = {one};
    }
    return found;
  }

  // Two lists are of one dim.
  void join(const DimFactors& a, const DimFactors& b) {
    while (true) {
      const DimFactors left = parts(a), right = parts(b);
      size_t i = 0;
      while (i < std::min(left.size(), right.size()) && left[i] == right[i]) ++i;
      if (i == left.size() && i == right.size()) return;
      if (i == left.size() || i == right.size() || !meet(left, right, i)) return apart(left, right);
    }
  }

 private:
  struct Entry {
    Factor factor;
    int parent;
    int outer, inner;  // it is cut into these
  };

  int root(int f) {
    while (all_[slot_of(f)].parent != f) f = all_[slot_of(f)].parent;
    return f;
  }

  void append_parts(int f, DimFactors& found) {
    const int top = root(f);
    const Entry entry = all_[slot_of(top)];
    if (entry.outer < 0) {
      found.push_back(top);
      return;
    }
    append_parts(entry.outer, found);
    append_parts(entry.inner, found);
  }

  void unite(int a, int b) {
    const Factor other = all_[slot_of(b)].factor;
    Factor& kept = all_[slot_of(a)].factor;
    kept.kind = std::max(kept.kind, other.kind);
    kept.is_blocked = kept.is_blocked || other.is_blocked;
    all_[slot_of(b)].parent = a;
  }

  // Joins or cuts one pair of factors; false: they have nothing in common.
  bool meet(const DimFactors& left, const DimFactors& right, size_t i) {
    const int a = left[i], b = right[i];
    const int64_t m = factor(a).size, n = factor(b).size;
    // A window or a slice has another size than what it is taken of.
    if (m == n || (left.size() == i + 1 && right.size() == i + 1)) return unite(a, b), true;
    if (m <= 1 || n <= 1) return false;
    if (m % n == 0) return cut(a, n), true;
    if (n % m == 0) return cut(b, m), true;
    return false;
  }

  void cut(int f, int64_t outer) {
    Factor half = all_[slot_of(f)].factor;
    const int64_t inner = half.size / outer;
    half.size = outer;
    const int first = add(half);
    half.size = inner;
    const int second = add(half);
    all_[slot_of(f)].outer = first;
    all_[slot_of(f)].inner = second;
  }

  void apart(const DimFactors& left, const DimFactors& right) {
    for (const DimFactors* list : {&left, &right})
      for (const int f : *list) {
        all_[slot_of(f)].factor.kind = FactorKind::replication;
        all_[slot_of(f)].factor.is_blocked = true;
      }
  }

  std::vector<Entry> all_;
};

class GraphRuleWalk {
 public:
  Status run(const Graph& graph) {
    values(graph);
    for (const NodeId n : graph.nodes()) {
      if (is_parameter(graph.opcode(n))) continue;
      for (const GraphRef& region : graph.regions(n)) HONE_TRY(run(*region));
      if (graph.regions(n).empty()) {
        HONE_TRY(node(graph, n));
      } else {
        flow(graph, n);
      }
    }
    return {};
  }

  ShardingRule rule(const Graph& graph) {
    ShardingRule made;
    std::map<int, int> numbers;
    const auto tensor = [&](ValueId v) {
      TensorFactors factors;
      for (const DimFactors& dim : values(graph)[v.index]) {
        DimFactors& list = factors.emplace_back();
        for (const int f : joined_.parts(dim)) {
          const auto [found, is_new] = numbers.emplace(f, static_cast<int>(made.factors.size()));
          if (is_new) made.factors.push_back(joined_.factor(f));
          list.push_back(found->second);
        }
      }
      return factors;
    };
    for (const ValueId v : graph.inputs()) made.operands.push_back(tensor(v));
    for (const ValueId v : graph.outputs()) made.results.push_back(tensor(v));
    return made;
  }

 private:
  std::vector<TensorFactors>& values(const Graph& graph) {
    const auto [found, is_new] = values_.emplace(&graph, std::vector<TensorFactors>());
    if (is_new)
      for (uint32_t i = 0; i < graph.value_count(); ++i) {
        TensorFactors& tensor = found->second.emplace_back();
        for (const Dim dim : graph.type({i}).dims())
          tensor.push_back({joined_.add(Factor{.size = dim.value()})});
      }
    return found->second;
  }

  void join(const TensorFactors& a, const TensorFactors& b, size_t skip_a = 0, size_t skip_b = 0) {
    for (size_t d = 0; d + skip_a < a.size() && d + skip_b < b.size(); ++d)
      joined_.join(a[d + skip_a], b[d + skip_b]);
  }

  Status node(const Graph& graph, NodeId n) {
    const std::vector<Type> operands = graph.operand_types(n), results = graph.result_types(n);
    const ShardingRule rule = HONE_TRY(sharding_rule(Application{graph.op(n), operands}, results));
    const DimFactors numbers = joined_.add(rule);
    const auto meet = [&](ValueId v, TensorFactors tensor) {
      for (DimFactors& dim : tensor) {
        for (int& f : dim) f = numbers[slot_of(f)];
        if (dim.empty()) dim.push_back(joined_.add(Factor()));
      }
      join(values(graph)[v.index], tensor);
    };
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i]) meet(graph.operands(n)[i], rule.operands[i]);
    for (size_t i = 0; i < results.size(); ++i) meet(graph.result(n, i), rule.results[i]);
    return {};
  }

  void flow(const Graph& graph, NodeId n) {
    const std::span<const ValueId> operands = graph.operands(n);
    const auto tensor = [&](const FlowPlace& place) -> const TensorFactors& {
      const Graph& at = place.region < 0 ? graph : *graph.regions(n)[slot_of(place.region)];
      const ValueId v =
          place.region < 0
              ? (place.is_result ? graph.result(n, place.index) : operands[place.index])
              : (place.is_result ? at.outputs()[place.index] : at.inputs()[place.index]);
      return values(at)[v.index];
    };
    for (const FlowEdge& edge : data_flow(graph.op(n), operands.size(), graph.results(n).size()))
      for (const FlowPlace& place : edge) {
        join(tensor(edge[0]), tensor(place), edge[0].is_stacked ? 1 : 0, place.is_stacked ? 1 : 0);
        if (place.is_stacked) in_order(tensor(place)[0]);
      }
  }

  // The steps of a scan come one after the other.
  void in_order(const DimFactors& dim) {
    const int whole = joined_.add(Factor{.size = joined_.factor(joined_.parts(dim)[0]).size,
                                         .kind = FactorKind::replication,
                                         .is_blocked = true});
    joined_.join({whole}, dim);
  }

  JoinedFactors joined_;
  std::map<const Graph*, std::vector<TensorFactors>> values_;
};

}  // namespace

Result<ShardingRule> sharding_rule(const Graph& graph) {
  GraphRuleWalk walk;
  HONE_TRY(walk.run(graph));
  return walk.rule(graph);
}

}  // namespace hone
