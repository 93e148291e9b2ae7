#include "planner/packed_sources.h"

#include <algorithm>
#include <span>

#include "ir/op_facts.h"
#include "kernel/facts.h"
#include "kernel/words.h"

namespace hone {

Layout with_last(std::vector<int> others, int last, int64_t block) {
  Layout layout;
  if (block > 1) layout.parts.push_back({.dim = last, .block = block});
  for (int dim : others) layout.parts.push_back({.dim = dim});
  layout.parts.push_back({.dim = last, .block = block, .is_inner = block > 1});
  return layout;
}

std::optional<Layout> in_words(Type type, int64_t each, int along, std::vector<int> others,
                               int last, int64_t block) {
  if (!type.dim(along).divisible_by(each)) return std::nullopt;
  std::erase(others, along);
  others.push_back(along);
  Layout layout = with_last(others, last, block);
  layout.parts[layout.parts.size() - 2].block = each;
  layout.parts.push_back({.dim = along, .block = each, .is_inner = true});
  return layout;
}

namespace {

// The only product of the step, with what its second operand is computed from there, in the graph's
// order. None: the step has several products, or computes nothing for it.
std::optional<std::vector<NodeId>> product_and_weights(const FrameEditor& frame, uint32_t step) {
  const GraphView graph = frame.view();
  const std::vector<NodeId>& nodes = frame.planned().steps[step].nodes;
  std::vector<NodeId> found;
  for (NodeId n : nodes)
    if (class_of(graph.opcode(n)) == OpClass::contraction) found.push_back(n);
  if (found.size() != 1) return std::nullopt;
  for (size_t i = 0; i < found.size(); ++i) {
    const std::span<const ValueId> operands = graph.operands(found[i]);
    for (ValueId v : i == 0 ? operands.subspan(1, 1) : operands) {
      const NodeId maker = graph.producer(v);
      if (std::ranges::binary_search(nodes, maker) && std::ranges::count(found, maker) == 0)
        found.push_back(maker);
    }
  }
  if (found.size() == 1) return std::nullopt;
  std::ranges::sort(found);
  return found;
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

// The dim of the array that words are taken along; -1: the product takes no words, or none of it.
int dim_of_words(const KernelFacts& facts, const KernelFacts::Array& array,
                 const std::optional<WordProducts>& words) {
  if (!words || array.element != 1) return -1;
  const int loop =
      words->iter - static_cast<int>(facts.contraction->index.size()) + facts.space.parallel;
  for (int dim = 0; dim < static_cast<int>(array.steps.size()); ++dim)
    if (std::ranges::count(array.steps[static_cast<size_t>(dim)], std::pair(loop, 1.0)) > 0)
      return dim;
  return -1;
}

}  // namespace

std::vector<PlanCost::Layouts> layouts_of_sources(const FrameEditor& frame, uint32_t step,
                                                  int64_t block) {
  const std::optional<std::vector<NodeId>> nodes = product_and_weights(frame, step);
  if (!nodes) return {};
  const PlannedGraph& planned = frame.planned();
  const KernelFacts facts(body_of(frame.view(), frame.users(), *nodes, planned.layout));
  if (!facts.contraction.ok()) return {};
  const std::vector<ValueId> reads = ports_of(frame.view(), frame.users(), *nodes).inputs;
  const std::span<const ValueId> inputs = facts.body.graph.inputs();
  const NodeId product = facts.space.anchor;
  const std::optional<WordProducts> words =
      word_products(facts.body.graph, product, relation_of(facts.body.graph, product));
  PlanCost::Layouts as_they_are, in_wide_panels, in_panels, in_panels_of_words;
  // An array that is read at several places has fields of blocks: neighbours lie in a field.
  const auto has_fields = [&](ValueId v) {
    return std::ranges::count(facts.arrays, v, &KernelFacts::Array::value) > 1;
  };
  for (const KernelFacts::Array& array : facts.arrays) {
    if (array.side != 1 || array.is_store || has_fields(array.value)) continue;
    const ValueId v =
        reads[static_cast<size_t>(std::ranges::find(inputs, array.value) - inputs.begin())];
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
      return type.dim(last).divisible_by(columns) ? columns : 1;
    };
    in_wide_panels.emplace_back(v, with_last(others, last, in_blocks(4 * block)));
    in_panels.emplace_back(v, with_last(others, last, in_blocks(2 * block)));
    const int along = dim_of_words(facts, array, words);
    if (along < 0 || along == last) continue;
    if (std::optional<Layout> layout =
            in_words(type, words->each(), along, others, last, in_blocks(4 * block)))
      in_panels_of_words.emplace_back(v, *std::move(layout));
  }
  if (as_they_are.empty()) return {};
  std::vector<PlanCost::Layouts> all = {as_they_are, in_wide_panels, in_panels};
  if (!in_panels_of_words.empty()) all.push_back(std::move(in_panels_of_words));
  return all;
}

}  // namespace hone
