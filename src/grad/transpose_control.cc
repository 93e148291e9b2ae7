#include <algorithm>

#include "grad/transpose.h"
#include "grad/transpose_node.h"
#include "ir/derivatives/rules.h"
#include "ir/op_facts.h"

namespace hone {

namespace {

void append_values(std::vector<Value>& list, std::span<const Value> more) {
  list.insert(list.end(), more.begin(), more.end());
}

class ControlBack {
 public:
  ControlBack(Builder& b, const Graph& graph, NodeId n, std::span<const Value> operands,
              const Mask& linear, std::span<const Value> cotangents)
      : b_(b),
        graph_(graph),
        n_(n),
        op_(graph.op(n)),
        operands_(operands),
        cotangents_(cotangents),
        changes_(control_changes(graph, n, linear)) {}

  Result<std::vector<Value>> of_if() {
    const Mask arguments(changes_.operands.begin() + 1, changes_.operands.end());
    std::vector<GraphRef> regions;
    for (const GraphRef& region : graph_.regions(n_))
      regions.push_back(
          std::make_shared<const Graph>(
              HONE_TRY(transpose(*region, arguments, changes_.results))));
    std::vector<Value> operands = plain(0, operands_.size());
    append_values(operands, cotangents(0, cotangents_.size()));
    return sorted(b_.ops(op_, operands, std::move(regions)), 0);
  }

  // From the last round to the first. Plain states are those that no round changes.
  Result<std::vector<Value>> of_scan() {
    const Graph& body = *graph_.regions(n_)[0];
    const Mask& in = changes_.operands;
    const size_t states = static_cast<size_t>(op_.integer("carried"));
    for (size_t i = 0; i < states; ++i)
      if (!in[i] && body.outputs()[i] != body.inputs()[i])
        return unsupported("state {} changes from round to round, but is not a tangent", i);
    const size_t tangents = static_cast<size_t>(
        std::count(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(states), true));
    const size_t fixed = states - tangents;
    const Graph back = HONE_TRY(transpose(body, in, changes_.results));
    GraphRef region = HONE_TRY(round(back, fixed, tangents, in.size() - count(in)));

    std::vector<Value> operands = plain(0, states);
    append_values(operands, cotangents(0, states));
    append_values(operands, plain(states, in.size()));
    append_values(operands, cotangents(states, changes_.results.size()));
    const bool scans = operands.size() > states;
    const Op op = Op::get(Opcode::scan, {{"carried", static_cast<int64_t>(states)},
                                         {"reverse", !op_.flag("reverse")},
                                         {"length", scans ? Dims{} : Dims{length(states)}}});
    return sorted(b_.ops(op, operands, {region}), fixed);
  }

 private:
  // The transposed body takes all plain inputs first; a scan wants states before what is scanned.
  // The plain states are handed on.
  static Result<GraphRef> round(const Graph& back, size_t fixed, size_t tangents, size_t plain) {
    std::vector<size_t> order;
    auto append_range = [&](size_t first, size_t last) {
      for (size_t i = first; i < last; ++i) order.push_back(i);
    };
    append_range(0, fixed);
    append_range(plain, plain + tangents);
    append_range(fixed, plain);
    append_range(plain + tangents, back.inputs().size());
    Builder b(back.name());
    std::vector<Value> arguments(order.size());
    for (size_t i : order) arguments[i] = b.parameter("", back.type(back.inputs()[i]));
    std::vector<Value> outputs(arguments.begin(),
                               arguments.begin() + static_cast<std::ptrdiff_t>(fixed));
    append_values(outputs, b.inlined(back, arguments));
    return std::make_shared<const Graph>(HONE_TRY(b.finish(outputs)));
  }

  std::vector<Value> plain(size_t first, size_t last) const {
    std::vector<Value> values;
    for (size_t i = first; i < last; ++i)
      if (!changes_.operands[i]) values.push_back(operands_[i]);
    return values;
  }

  std::vector<Value> cotangents(size_t first, size_t last) const {
    std::vector<Value> values;
    for (size_t i = first; i < last; ++i) {
      if (!changes_.results[i]) continue;
      values.push_back(cotangents_[i] ? cotangents_[i]
                                      : zeros_of(b_, graph_.type(graph_.result(n_, i))));
    }
    return values;
  }

  Dim length(size_t states) const {
    std::span<const ValueId> operands = graph_.operands(n_);
    return operands.size() > states ? graph_.type(operands[states]).dim(0) : op_.dims("length")[0];
  }

  // Results from `first` on as cotangents of the operands.
  Result<std::vector<Value>> sorted(const std::vector<Value>& made, size_t first) const {
    if (!b_.ok()) return b_.status().error();
    std::vector<Value> back(changes_.operands.size());
    for (size_t i = 0, next = first; i < back.size(); ++i)
      if (changes_.operands[i]) back[i] = made[next++];
    return back;
  }

  Builder& b_;
  const Graph& graph_;
  NodeId n_;
  Op op_;
  std::span<const Value> operands_;
  std::span<const Value> cotangents_;
  ControlChanges changes_;
};

}  // namespace

Result<std::vector<Value>> transposed_control(Builder& b, const Graph& graph, NodeId n,
                                              std::span<const Value> operands, const Mask& linear,
                                              std::span<const Value> cotangents) {
  ControlBack back(b, graph, n, operands, linear, cotangents);
  if (is_branch(graph.opcode(n))) return back.of_if();
  if (is_scan(graph.opcode(n))) return back.of_scan();
  return unsupported("a '{}' cannot be run backwards", graph.op(n).name());
}

}  // namespace hone
