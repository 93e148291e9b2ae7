#include "rules/known_ranges.h"

#include <algorithm>
#include <cmath>

#include "base/planted.h"
#include "ir/op_facts.h"
#include "rules/egraph.h"
#include "rules/float_needs.h"

namespace hone {
namespace {

Magnitude of_input(int32_t decades) {
  if (decades == 0) return {};
  const double bits = static_cast<double>(decades) * std::log2(10.);
  return {-bits, bits, false, false};
}

std::vector<Magnitude> of_graph(const Graph& graph, const Ranges& ranges, int32_t decades) {
  return magnitudes_of(graph, {[&](ValueId) { return of_input(decades); },
                               [&](const Tensor& tensor) { return ranges.constant(tensor); }});
}

// Operands mostly stand before what reads them; what stands behind is unknown.
std::vector<Magnitude> of_egraph(const EGraph& egraph, const Ranges& ranges, int32_t decades) {
  std::vector<Magnitude> classes(egraph.class_capacity());
  std::vector<bool> is_set(egraph.class_capacity());
  for (uint32_t i = 0; i < egraph.node_capacity(); ++i) {
    const NodeId n{i};
    if (!egraph.is_alive(n) || egraph.results(n).size() != 1) continue;
    const uint32_t result = egraph.find(egraph.results(n)[0]).index;
    if (is_set[result]) continue;
    is_set[result] = true;
    if (is_parameter(egraph.opcode(n))) {
      classes[result] = of_input(decades);
    } else if (is_constant(egraph.opcode(n))) {
      classes[result] = ranges.constant(egraph.constant(n));
    } else if (egraph.regions(n).empty()) {
      std::vector<Magnitude> operands;
      std::vector<Type> types;
      for (ValueId v : egraph.operands(n)) {
        operands.push_back(v.is_none() ? Magnitude() : classes[egraph.find(v).index]);
        types.push_back(v.is_none() ? Type() : egraph.type(v));
      }
      classes[result] = magnitude_of({egraph.op(n), operands, types, egraph.type({result})});
    }
  }
  return classes;
}

// For a type with this many bits after the point, whose least normal number is 2^least.
struct Format {
  DType dtype;
  int least, bits;
};
constexpr Format kFormats[] = {
    {DType::f64, -1022, 52}, {DType::f32, -126, 23}, {DType::f16, -14, 10}, {DType::bf16, -126, 7}};

// A sum may be smaller than its terms by all of their bits and still be exact: what is made of it
// must not vanish, either. A margin of one is for what is rounded on the way.
bool is_in_range(const Graph& graph, ValueId v, const Magnitude& known) {
  if (known.is_zero()) return true;
  const DType dtype = graph.type(v).dtype();
  const auto format = std::ranges::find(kFormats, dtype, &Format::dtype);
  if (format == std::end(kFormats)) return false;
  if (!(known.high <= std::log2(highest_finite(dtype)) - 1)) return false;
  return !may_vanish(graph, graph.producer(v)) || known.low >= format->least + format->bits + 1;
}

}  // namespace

std::string range_text(int32_t decades) { return fmt::format("1e+-{}", decades); }

Magnitude Ranges::constant(const Tensor& tensor) const {
  const auto [at, is_new] = constants_->try_emplace(tensor.content_hash());
  if (is_new) at->second = magnitude_of(tensor);
  return at->second;
}

bool KnownRanges::suffice(const Rule& rule, RuleMatch& match) {
  match.range = 0;
  if (rule.within.empty() || HONE_PLANT(overflow_by_rule, false, true)) return true;
  if (holds(rule, match, known_, 0)) return true;
  match.range = ranges_.decades();
  return match.range > 0 && holds(rule, match, assumed_, match.range);
}

bool KnownRanges::holds(const Rule& rule, const RuleMatch& match, std::vector<Magnitude>& known,
                        int32_t decades) {
  if (known.empty())
    known = graph_ != nullptr ? of_graph(*graph_, ranges_, decades)
                              : of_egraph(*egraph_, ranges_, decades);
  const Result<Graph> right = specialize(rule.right, match.sizes);
  if (!right.ok()) return false;
  const auto of_input = [&](ValueId v) {
    const auto inputs = right->inputs();
    const auto at = std::ranges::find(inputs, v);
    const ValueId given = rule.left.inputs()[static_cast<size_t>(at - inputs.begin())];
    return known[match.values[given.index].index];
  };
  const std::vector<Magnitude> values = magnitudes_of(
      *right, {of_input, [&](const Tensor& tensor) { return ranges_.constant(tensor); }});
  return std::ranges::all_of(rule.within,
                             [&](ValueId v) { return is_in_range(*right, v, values[v.index]); });
}

}  // namespace hone
