#include "planner/packed_sources.h"

#include <algorithm>
#include <span>

#include "ir/op_facts.h"
#include "kernel/facts.h"

namespace hone {

Layout with_last(std::vector<int> others, int last, int64_t block) {
  Layout layout;
  if (block > 1) layout.parts.push_back({.dim = last, .block = block});
  for (int dim : others) layout.parts.push_back({.dim = dim});
  layout.parts.push_back({.dim = last, .block = block, .is_inner = block > 1});
  return layout;
}

namespace {

// True if the step has a product whose second operand it computes.
bool computes_weights(const FrameEditor& frame, uint32_t step) {
  const GraphView graph = frame.view();
  return std::ranges::any_of(frame.planned().steps[step].nodes, [&](NodeId n) {
    if (class_of(graph.opcode(n)) != OpClass::contraction) return false;
    const NodeId maker = graph.producer(graph.operands(n)[1]);
    return frame.planned().step_of[maker.index] == step;
  });
}

// The longest dim of the array that goes along the product's columns; -1: none does.
int dim_of_columns(const KernelFacts& facts, const KernelFacts::Array& array, Type type) {
  int found = -1;
  for (int dim = 0; dim < static_cast<int>(array.steps.size()); ++dim) {
    const bool has_columns = std::ranges::any_of(
        array.steps[static_cast<size_t>(dim)], [&](const std::pair<int, double>& step) {
          if (step.first >= facts.space.parallel) return false;
          const auto d = static_cast<size_t>(step.first);
          return facts.contraction->sides[1][d] && !facts.contraction->sides[0][d];
        });
    if (has_columns && (found < 0 || provably_lt(type.dim(found), type.dim(dim)))) found = dim;
  }
  return found;
}

}  // namespace

std::vector<PlanCost::Layouts> layouts_of_sources(const FrameEditor& frame, uint32_t step,
                                                  int64_t block) {
  if (!computes_weights(frame, step)) return {};
  const PlannedGraph& planned = frame.planned();
  const KernelFacts facts(frame.body(step));
  if (!facts.contraction.ok()) return {};
  const std::span<const ValueId> inputs = facts.body.graph.inputs();
  PlanCost::Layouts as_they_are, in_wide_panels, in_panels;
  // An array that is read at several places has fields of blocks: neighbours lie in a field.
  const auto has_fields = [&](ValueId v) {
    return std::ranges::count(facts.arrays, v, &KernelFacts::Array::value) > 1;
  };
  for (const KernelFacts::Array& array : facts.arrays) {
    if (array.side != 1 || array.is_store || has_fields(array.value)) continue;
    const ValueId v =
        planned.steps[step]
            .reads[static_cast<size_t>(std::ranges::find(inputs, array.value) - inputs.begin())];
    const Type type = frame.view().type(v);
    if (planned.home[v.index] != Home::constant || !planned.has_layout(v) || type.rank() < 2 ||
        frame.users().of(v).size() != 1)
      continue;
    const int last = dim_of_columns(facts, array, type);
    if (last < 0) continue;
    std::vector<int> others;
    for (int dim = 0; dim < type.rank(); ++dim)
      if (dim != last) others.push_back(dim);
    as_they_are.emplace_back(v, Layout::row_major(type.rank()));
    const auto in_blocks = [&](int64_t columns) {
      return with_last(others, last, type.dim(last).divisible_by(columns) ? columns : 1);
    };
    in_wide_panels.emplace_back(v, in_blocks(4 * block));
    in_panels.emplace_back(v, in_blocks(2 * block));
  }
  if (as_they_are.empty()) return {};
  return {as_they_are, in_wide_panels, in_panels};
}

}  // namespace hone
