#include "shard/division_choice.h"

#include <algorithm>
#include <span>
#include <tuple>

namespace hone {
namespace {

// The axes of a factor in the first of these tensors that has any.
MeshParts asked_by(const NodeDivider& divider, std::span<const TensorFactors> tensors,
                   std::span<const ShardLayout> layouts, int factor) {
  for (size_t i = 0; i < tensors.size(); ++i)
    if (MeshParts found = divider.axes_in(tensors[i], layouts[i], factor); !found.empty())
      return found;
  return {};
}

// Axes of a dim that has to be whole go to one that does not: a sort along rows is of columns.
bool placed_elsewhere(const NodeDivider& divider, const MeshParts& wanted,
                      std::vector<MeshParts>& axes) {
  if (without_clashes(wanted, axes) != wanted) return true;  // they divide another dim already
  for (size_t f = 0; f < axes.size(); ++f) {
    const int factor = static_cast<int>(f);
    if (!divider.passes(factor)) continue;
    MeshParts both = axes[f];
    both.insert(both.end(), wanted.begin(), wanted.end());
    std::string reason;
    if (divider.fitting(factor, both, reason) != both) continue;
    axes[f] = std::move(both);
    return true;
  }
  return false;
}

// Where those who are asked first say nothing, others are.
std::vector<MeshParts> factor_axes(const NodeDivider& divider, const NodeLayouts& said,
                                   std::optional<size_t> first_operand, std::string& reason) {
  const ShardingRule& rule = divider.rule();
  std::vector<MeshParts> axes(rule.factors.size()), refused;
  const auto ask = [&](std::span<const TensorFactors> tensors,
                       std::span<const ShardLayout> layouts) {
    for (size_t f = 0; f < axes.size(); ++f) {
      const int factor = static_cast<int>(f);
      if (!axes[f].empty()) continue;
      const MeshParts wanted = asked_by(divider, tensors, layouts, factor);
      if (wanted.empty()) continue;
      axes[f] = divider.fitting(factor, without_clashes(wanted, axes), reason);
      if (axes[f].empty()) refused.push_back(wanted);
    }
  };
  const std::span<const TensorFactors> operands = rule.operands;
  const std::span<const ShardLayout> have = said.operands;
  if (first_operand) ask(operands.subspan(*first_operand, 1), have.subspan(*first_operand, 1));
  ask(rule.results, said.results);
  ask(operands, have);
  if (std::ranges::all_of(refused, [&](const MeshParts& wanted) {
        return placed_elsewhere(divider, wanted, axes);
      }))
    reason.clear();
  return axes;
}

// The operands that would be divided otherwise if they were asked first; one of several alike.
std::vector<size_t> moved_operands(const NodeDivider& divider, const NodeLayouts& said,
                                   const NodeDivision& division) {
  const std::vector<TensorFactors>& factors = divider.rule().operands;
  std::vector<size_t> found;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (said.operands[i].dims == division.operands[i].dims) continue;
    const auto is_alike = [&](size_t other) {
      return factors[other] == factors[i] && said.operands[other].dims == said.operands[i].dims;
    };
    if (std::ranges::none_of(found, is_alike)) found.push_back(i);
  }
  return found;
}

struct Choice {
  NodeDivision division;
  std::string reason;
  double price = 0;

  int64_t devices() const {
    int64_t count = 1;
    for (const MeshParts& parts : division.axes) count *= count_of(parts);
    return count;
  }
  int64_t told() const {
    int64_t bytes = 0;
    for (const MeshExchange& one : division.exchanges) bytes += one.bytes;
    return bytes;
  }
  bool is_better(const Choice& other) const {
    return std::tuple(-devices(), told(), price) <
           std::tuple(-other.devices(), other.told(), other.price);
  }
};

}  // namespace

std::optional<NodeDivision> stated_division(const NodeDivider& divider, const NodeLayouts& said,
                                            const DivisionPrice& price, std::string& reason) {
  const auto choice = [&](std::optional<size_t> first_operand) -> std::optional<Choice> {
    std::string why;
    std::optional<NodeDivision> made =
        divider.division(factor_axes(divider, said, first_operand, why));
    if (!made) return std::nullopt;
    const double moved = price(*made);
    return Choice{std::move(*made), std::move(why), moved};
  };
  std::optional<Choice> best = choice(std::nullopt);
  if (!best) return std::nullopt;
  if (best->price > 0)
    for (const size_t operand : moved_operands(divider, said, best->division))
      if (std::optional<Choice> other = choice(operand); other && other->is_better(*best))
        best = std::move(other);
  reason = std::move(best->reason);
  return std::move(best->division);
}

std::optional<NodeDivision> exact_division(const NodeDivider& divider,
                                           const std::vector<ShardLayout>& results,
                                           std::string& reason) {
  std::optional<NodeDivision> made = divider.division(divider.axes_of(results));
  if (made && made->results == results) return made;
  reason = "it cannot be divided as the plan says";
  for (size_t f = 0; f < divider.rule().factors.size(); ++f)
    for (size_t i = 0; i < results.size(); ++i) {
      const int factor = static_cast<int>(f);
      const MeshParts asked = divider.axes_in(divider.rule().results[i], results[i], factor);
      if (!asked.empty()) divider.fitting(factor, asked, reason);
    }
  return made;
}

}  // namespace hone
