#include "grad/rematerialize.h"

#include <algorithm>
#include <cmath>

#include "ir/barrier.h"
#include "ir/graph_copy.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

using ValueSet = std::vector<bool>;  // by value

constexpr size_t kMaxCheapNodes = 24;      // that one value is made of again
constexpr double kCheapCompositeOps = 32;  // per element

bool has_regions(const Graph& graph, NodeId n) { return !graph.regions(n).empty(); }

// Counts static types.
double bytes_of(const Graph& graph, NodeId n) {
  const std::vector<Type> operands = graph.operand_types(n);
  std::vector<const Graph*> regions;
  for (const GraphRef& region : graph.regions(n)) regions.push_back(region.get());
  return bytes({graph.op(n), operands, regions}, graph.result_types(n));
}
double flops_of(const Graph& graph, NodeId n) {
  const std::vector<Type> operands = graph.operand_types(n);
  std::vector<const Graph*> regions;
  for (const GraphRef& region : graph.regions(n)) regions.push_back(region.get());
  return flops({graph.op(n), operands, regions}, graph.result_types(n));
}

// A graph as a way to its loss and a way back.
class Ways {
 public:
  Ways(const Graph& graph, std::span<const uint32_t> forward)
      : graph_(graph),
        end_(end_of(graph, forward)),
        is_free_(graph.value_count()),
        is_output_(graph.value_count()),
        last_early_(graph.value_count()),
        is_crossing_(graph.value_count()) {
    for (ValueId v : graph.outputs()) is_output_[v.index] = true;
    for (NodeId n : graph.nodes()) visit(n);
  }

  bool is_early(NodeId n) const { return n.index < end_; }
  bool is_early(ValueId v) const { return is_early(graph_.producer(v)); }

  // Never computed again, as it takes no memory: inputs, constants, and what is made of them alone;
  // reshapes and broadcasts of values that are there.
  bool is_free(ValueId v) const { return is_free_[v.index]; }
  static bool is_repeated(Opcode opcode) {
    return regroups_dims(opcode) || repeats_elements(opcode);
  }

  ValueSet stored(const Storage& storage) const {
    ValueSet stored(graph_.value_count());
    const std::vector<uint32_t> cuts = this->cuts(storage);
    const uint32_t again = cuts.empty() ? 0 : cuts.back();
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId v{i};
      const NodeId n = graph_.producer(v);
      if (!is_early(n) || is_free_[i]) continue;
      const bool must_stay = is_output_[i] || has_effect(graph_, n);
      stored[i] = must_stay || (is_crossing_[i] && n.index >= again) ||
                  std::ranges::any_of(cuts, [&](uint32_t cut) { return is_read_over(v, cut); });
    }
    if (storage.leaves_out_cheap) leave_out_cheap(stored, cuts);
    return stored;
  }

 private:
  static uint32_t end_of(const Graph& graph, std::span<const uint32_t> forward) {
    uint32_t end = 0;
    for (uint32_t i : forward) end = std::max(end, graph.producer(graph.outputs()[i]).index + 1);
    return end;
  }

  void visit(NodeId n) {
    const Opcode opcode = graph_.opcode(n);
    for (ValueId v : graph_.operands(n)) {
      if (v.is_none() || !is_early(v)) continue;
      // A reader of a reshaped value reads the value itself.
      for (ValueId at = v;; at = graph_.operands(graph_.producer(at))[0]) {
        if (is_early(n)) last_early_[at.index] = n.index;
        if (!is_early(n)) is_crossing_[at.index] = true;
        if (!is_repeated(graph_.opcode(graph_.producer(at)))) break;
      }
    }
    const bool is_pure =
        !is_parameter(opcode) && !has_effect(graph_, n) && !has_regions(graph_, n) &&
        std::ranges::all_of(graph_.operands(n), [&](ValueId v) {
          return v.is_none() || (is_free(v) && !is_parameter(graph_.opcode(graph_.producer(v))));
        });
    const bool is_leaf_value = is_leaf(opcode);
    for (ValueId v : graph_.results(n)) is_free_[v.index] = is_leaf_value || is_pure;
  }

  bool is_read_over(ValueId v, uint32_t cut) const {
    return graph_.producer(v).index < cut && last_early_[v.index] >= cut &&
           !is_repeated(graph_.opcode(graph_.producer(v)));
  }

  double bytes(ValueId v) const { return static_cast<double>(graph_.type(v).static_bytes()); }

  // Node numbers, ascending: part i is what stands before cut i and behind the one before.
  std::vector<uint32_t> cuts(const Storage& storage) const {
    std::vector<double> stored(end_ + 1), open(end_ + 1);  // before each node
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId v{i};
      const uint32_t made = graph_.producer(v).index;
      if (made >= end_ || is_free_[i] || is_repeated(graph_.opcode(graph_.producer(v)))) continue;
      if (is_crossing_[i]) stored[made + 1] += bytes(v);
      if (last_early_[i] <= made) continue;
      open[made + 1] += bytes(v);
      if (last_early_[i] + 1 <= end_) open[last_early_[i] + 1] -= bytes(v);
    }
    for (uint32_t i = 1; i <= end_; ++i) {
      stored[i] += stored[i - 1];
      open[i] += open[i - 1];
    }
    std::vector<uint32_t> cuts;
    if (storage.share <= 0) return cuts;
    const double part = stored[end_] * storage.share / static_cast<double>(storage.parts);
    for (size_t i = 1; i <= storage.parts; ++i) {
      const double wanted = part * static_cast<double>(i);
      uint32_t best = 0;
      for (uint32_t at = cuts.empty() ? 1 : cuts.back() + 1; at < end_; ++at) {
        if (std::abs(stored[at] - wanted) > part / 3) continue;
        if (best == 0 || open[at] < open[best]) best = at;
      }
      if (best != 0) cuts.push_back(best);
    }
    return cuts;
  }

  bool is_cheap(NodeId n) const {
    if (has_regions(graph_, n) || has_effect(graph_, n)) return false;
    switch (class_of(graph_.opcode(n))) {
      case OpClass::elementwise:
      case OpClass::movement:
      case OpClass::reduction: return true;
      case OpClass::composite:
        return flops_of(graph_, n) <=
               kCheapCompositeOps *
                   static_cast<double>(graph_.type(graph_.result(n)).static_elements());
      default: return false;
    }
  }

  void leave_out_cheap(ValueSet& stored, const std::vector<uint32_t>& cuts) const {
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      const ValueId v{i};
      const bool is_cut =
          std::ranges::any_of(cuts, [&](uint32_t cut) { return is_read_over(v, cut); });
      if (!stored[i] || is_cut || is_output_[i] || graph_.type(v).rank() == 0) continue;
      stored[i] = false;
      if (!is_made_cheaply(v, stored)) stored[i] = true;
    }
  }

  bool is_made_cheaply(ValueId wanted, const ValueSet& stored) const {
    std::vector<ValueId> open = {wanted};
    for (size_t i = 0; i < open.size(); ++i) {
      const NodeId n = graph_.producer(open[i]);
      if (!is_cheap(n) || open.size() > kMaxCheapNodes) return false;
      for (ValueId v : graph_.operands(n))
        if (!v.is_none() && !stored[v.index] && !is_free(v) &&
            std::ranges::find(open, v) == open.end())
          open.push_back(v);
    }
    return true;
  }

  const Graph& graph_;
  const uint32_t end_;  // of the way to the loss
  ValueSet is_free_, is_output_;
  std::vector<uint32_t>
      last_early_;        // by value: the last node of the way to the loss that reads it
  ValueSet is_crossing_;  // the way back reads it
};

// Copies the way to the loss, and the way back with what it lacks in front of each node.
class Rebuilder {
 public:
  Rebuilder(const Graph& graph, const Ways& ways, ValueSet stored)
      : graph_(graph),
        ways_(ways),
        users_(graph),
        is_there_(std::move(stored)),
        is_again_(graph.value_count()),
        copy_(graph) {}

  Result<Rematerialized> run() {
    for (NodeId n : graph_.nodes())
      if (ways_.is_early(n)) HONE_TRY(copy_.node(n));
    for (NodeId n : graph_.nodes())
      if (!ways_.is_early(n) && !waits(n)) HONE_TRY(back(n));
    made_.graph = HONE_TRY(remove_dead_code(copy_.finish()));
    HONE_TRY(verify(made_.graph));
    return std::move(made_);
  }

 private:
  // Moves what was there already, so that it can as well come right before its first reader.
  bool waits(NodeId n) const {
    if (!Ways::is_repeated(graph_.opcode(n))) return false;
    if (users_.is_output(graph_.result(n)) || ways_.is_free(graph_.result(n))) return false;
    const NodeId source = graph_.producer(graph_.operands(n)[0]);
    return ways_.is_early(source) || waits(source);
  }

  bool is_there(ValueId v) const {
    if (is_there_[v.index] || ways_.is_free(v)) return true;
    const NodeId n = graph_.producer(v);
    // It lies in memory that is there, or is repeated where it is read.
    return ways_.is_early(n) && Ways::is_repeated(graph_.opcode(n)) &&
           is_there(graph_.operands(n)[0]) && !is_again_[graph_.operands(n)[0].index];
  }

  Status back(NodeId n) {
    std::vector<ValueId> missing;
    for (ValueId v : graph_.operands(n)) find_missing(v, missing);
    std::ranges::sort(missing);
    for (ValueId v : missing)
      if (!is_there(v)) HONE_TRY(again(graph_.producer(v)));
    HONE_TRY(copy_.node(n));
    for (ValueId v : graph_.results(n)) is_there_[v.index] = true;
    return {};
  }

  void find_missing(ValueId wanted, std::vector<ValueId>& missing) const {
    std::vector<ValueId> open = {wanted};
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (v.is_none() || is_there(v) || std::ranges::find(missing, v) != missing.end()) continue;
      missing.push_back(v);
      const auto operands = graph_.operands(graph_.producer(v));
      open.insert(open.end(), operands.begin(), operands.end());
    }
  }

  Status again(NodeId n) {
    const auto given = graph_.operands(n);
    std::vector<ValueId> operands = copy_(given);
    const bool is_early = ways_.is_early(n);
    const bool reads_again =
        std::ranges::any_of(given, [&](ValueId v) { return !v.is_none() && is_again_[v.index]; });
    if (is_early && !reads_again) HONE_TRY(put_barrier(given, operands));
    const auto regions = graph_.regions(n);
    const NodeId made =
        HONE_TRY(copy_.target().append(graph_.op(n), operands, {regions.begin(), regions.end()}));
    for (size_t i = 0; i < graph_.results(n).size(); ++i) {
      const ValueId v = graph_.result(n, i);
      if (is_there_[v.index]) continue;
      is_there_[v.index] = is_again_[v.index] = true;
      copy_.replace(v, copy_.target().result(made, i));
      if (is_early) copy_.target().set_name(copy_.target().result(made, i), "");
    }
    if (!is_early) return {};
    ++made_.nodes;
    made_.flops += flops_of(graph_, n);
    made_.bytes += bytes_of(graph_, n);
    return {};
  }

  // Before the operand that decides most: not a weight, if there is another one.
  Status put_barrier(std::span<const ValueId> given, std::vector<ValueId>& operands) {
    size_t at = operands.size();
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i].is_none()) continue;
      const bool is_better =
          at == operands.size() || (ways_.is_free(given[at]) && !ways_.is_free(given[i]));
      if (is_better) at = i;
    }
    if (at == operands.size()) return {};
    const Op barrier = barrier_op(copy_.target().type(operands[at]).rank());
    const NodeId made = HONE_TRY(copy_.target().append(barrier, {&operands[at], 1}));
    operands[at] = copy_.target().result(made);
    return {};
  }

  const Graph& graph_;
  const Ways& ways_;
  const Users users_;
  ValueSet is_there_;  // for the way back
  ValueSet is_again_;  // computed again
  GraphCopy copy_;
  Rematerialized made_;
};

}  // namespace

Result<Rematerialized> rematerialize(const Graph& graph, std::span<const uint32_t> forward,
                                     const Storage& storage) {
  HONE_CHECK(!forward.empty() && storage.parts > 0 && storage.share < 1,
             "no way to a loss, or no parts");
  if (!graph.is_static())
    return unsupported("what a graph with open sizes stores is not known")
        .with_hint("give its sizes numbers");
  if (storage == kStoreAll) return Rematerialized{.graph = graph};
  const Ways ways(graph, forward);
  return Rebuilder(graph, ways, ways.stored(storage)).run();
}

}  // namespace hone
