#include <algorithm>

#include "grad/linearize.h"
#include "grad/linearize_node.h"
#include "grad/regions.h"
#include "ir/derivatives/rules.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

// first, first + 1, ...
void append_range(std::vector<size_t>& list, size_t first, size_t count) {
  for (size_t i = 0; i < count; ++i) list.push_back(first + i);
}

class ControlTangents {
 public:
  ControlTangents(Builder& b, const Graph& graph, NodeId n, const WithTangents& operands)
      : b_(b), graph_(graph), n_(n), operands_(operands) {
    Mask mask;
    for (Value tangent : operands.tangents) mask.push_back(static_cast<bool>(tangent));
    changes_ = control_changes(graph, n, std::move(mask));
  }

  // Operands may change without any result that does.
  bool any_result() const { return any(changes_.results); }
  Result<WithTangents> unchanged() {
    std::span<const GraphRef> regions = graph_.regions(n_);
    return split(b_.ops(graph_.op(n_), operands_.values, {regions.begin(), regions.end()}),
                 changes_.results.size());
  }

  Result<WithTangents> of_if() {
    const Mask arguments(changes_.operands.begin() + 1, changes_.operands.end());
    std::vector<GraphRef> regions;
    for (const GraphRef& region : graph_.regions(n_))
      regions.push_back(
          std::make_shared<const Graph>(
              HONE_TRY(linearize(*region, arguments, changes_.results))));
    std::vector<Value> operands = operands_.values;
    append_tangents(operands, 0, operands.size());
    return split(b_.ops(graph_.op(n_), operands, std::move(regions)), changes_.results.size());
  }

  // As a scan if the number of rounds is bounded, so that the loop can be run backwards.
  Result<WithTangents> of_while() {
    const std::optional<LoopAsScan> scan = HONE_TRY(as_scan(graph_, n_));
    if (scan) return of_scan(scan->op, *scan->body);
    const Graph body =
        HONE_TRY(linearize(*graph_.regions(n_)[1], changes_.operands, changes_.results));
    const Graph& condition = *graph_.regions(n_)[0];
    std::vector<Value> operands = operands_.values;
    append_tangents(operands, 0, operands.size());
    std::vector<Type> types;
    for (Value v : operands) types.push_back(v.type());
    GraphRef wider =
        b_.region(condition.name(), types, [&](Builder& inner, std::span<const Value> state) {
          return inner.inlined(condition, state.first(condition.inputs().size()));
        });
    std::vector<GraphRef> regions = {wider, std::make_shared<const Graph>(body)};
    return split(b_.ops(graph_.op(n_), operands, std::move(regions)), changes_.results.size());
  }

  Result<WithTangents> of_scan(Op op, const Graph& plain) {
    const Mask& in = changes_.operands;
    const Mask& out = changes_.results;
    const Graph body = HONE_TRY(linearize(plain, in, out));
    const size_t states = static_cast<size_t>(op.integer("carried"));
    const size_t changing = static_cast<size_t>(
        std::count(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(states), true));
    // States with their tangents come before what is scanned, or stacked.
    auto order = [&](const Mask& mask) {
      std::vector<size_t> list;
      append_range(list, 0, states);
      append_range(list, mask.size(), changing);
      append_range(list, states, mask.size() - states);
      append_range(list, mask.size() + changing, count(mask) - changing);
      return list;
    };
    const std::vector<size_t> results = order(out);
    GraphRef region = HONE_TRY(reordered(body, order(in), results));
    std::vector<Value> operands(operands_.values.begin(),
                                operands_.values.begin() + static_cast<std::ptrdiff_t>(states));
    append_tangents(operands, 0, states);
    operands.insert(operands.end(), operands_.values.begin() + static_cast<std::ptrdiff_t>(states),
                    operands_.values.end());
    append_tangents(operands, states, in.size());
    const Op wider = Op::get(Opcode::scan, {{"carried", static_cast<int64_t>(states + changing)},
                                            {"reverse", op.flag("reverse")},
                                            {"length", op.dims("length")}});
    std::vector<Value> made = b_.ops(wider, operands, {region});
    std::vector<Value> sorted(made.size());
    for (size_t i = 0; i < results.size() && b_.ok(); ++i) sorted[results[i]] = made[i];
    return split(std::move(sorted), out.size());
  }

 private:
  // The tangents of operands first to last - 1 that change; zeros where only later rounds change
  // them.
  void append_tangents(std::vector<Value>& list, size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      if (!changes_.operands[i]) continue;
      Value tangent = operands_.tangents[i];
      list.push_back(tangent ? tangent : zeros_of(b_, operands_.values[i].type()));
    }
  }

  // Values, then the tangents of those that change.
  Result<WithTangents> split(std::vector<Value> made, size_t results) {
    if (!b_.ok()) return b_.status().error();
    WithTangents split;
    size_t next = results;
    for (size_t i = 0; i < results; ++i) {
      split.values.push_back(made[i]);
      split.tangents.push_back(changes_.results[i] ? made[next++] : Value());
    }
    return split;
  }

  Builder& b_;
  const Graph& graph_;
  NodeId n_;
  const WithTangents& operands_;
  ControlChanges changes_;
};

}  // namespace

Result<WithTangents> linearized_control(Builder& b, const Graph& graph, NodeId n,
                                        const WithTangents& operands) {
  ControlTangents tangents(b, graph, n, operands);
  if (!tangents.any_result()) return tangents.unchanged();
  if (is_branch(graph.opcode(n))) return tangents.of_if();
  if (is_while(graph.opcode(n))) return tangents.of_while();
  return tangents.of_scan(graph.op(n), *graph.regions(n)[0]);
}

}  // namespace hone
