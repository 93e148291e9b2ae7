#include "shard/row_rule.h"

#include <algorithm>

#include "ir/access.h"
#include "ir/op_facts.h"

namespace hone {

bool adds_up(Op op) {
  if (is_contraction(op.opcode())) return true;
  constexpr std::string_view kWays[] = {"kind", "combine"};
  for (const AttrSpec& attr : op.def().attrs)
    if (std::ranges::find(kWays, attr.name) != std::end(kWays) && attr.kind == AttrKind::word)
      return op_def(combine_of(op.word(attr.name))).traits.kind == "sum";
  return false;
}

RowsOfOp::RowsOfOp(const Application& application, std::span<const Type> results, int64_t rows)
    : application_(application), rows_(rows), relation_(access_of(application, results)) {
  Result<ShardingRule> rule = sharding_rule(application, results);
  HONE_CHECK(rule.ok(), "an op with an access relation has a rule: {}", rule.error().to_string());
  rule_ = std::move(*rule);
}

bool RowsOfOp::is_read(size_t operand) const {
  return operand < relation_.operands.size() && !relation_.operands[operand].empty();
}

bool RowsOfOp::has_rows(int factor, FactorKind kind) const {
  const Factor& one = rule_.factors[static_cast<size_t>(factor)];
  return one.kind == kind && !one.is_blocked && one.size != 0 && one.size % rows_ == 0;
}

// The dim whose outermost factor it is; kWhole: the tensor lacks it. None: it is an inner one, so
// rows would be dealt out.
std::optional<int> RowsOfOp::place_of(int factor, const TensorFactors& tensor) const {
  for (size_t d = 0; d < tensor.size(); ++d) {
    const auto at = std::ranges::find(tensor[d], factor);
    if (at == tensor[d].end()) continue;
    const bool is_outermost = std::all_of(tensor[d].begin(), at, [&](int before) {
      return rule_.factors[static_cast<size_t>(before)].size == 1;
    });
    if (!is_outermost) return std::nullopt;
    return static_cast<int>(d);
  }
  return kWhole;
}

// Where the operands have the rows if the factor has them.
std::optional<std::vector<int>> RowsOfOp::operands_by(int factor, std::span<const int> dims) const {
  std::vector<int> operands;
  for (size_t i = 0; i < rule_.operands.size(); ++i) {
    const std::optional<int> found =
        is_read(i) ? place_of(factor, rule_.operands[i]) : std::optional(dims[i]);
    if (!found || (dims[i] != kWhole && *found != dims[i])) return std::nullopt;
    operands.push_back(*found);
  }
  return operands;
}

std::optional<RowRule> RowsOfOp::by(int factor, std::span<const int> dims) const {
  if (!has_rows(factor, FactorKind::pass)) return std::nullopt;
  std::optional<std::vector<int>> operands = operands_by(factor, dims);
  if (!operands) return std::nullopt;
  // Data says where elements go: what moves must be of the row that is written.
  const int8_t updates = application_.op.def().traits.updates;
  if (updates != 0 && (*operands)[static_cast<size_t>(updates)] == kWhole) return std::nullopt;
  RowRule rule = {.operands = *std::move(operands), .results = {}};
  for (const TensorFactors& result : rule_.results) {
    const std::optional<int> place = place_of(factor, result);
    if (!place || *place == kWhole) return std::nullopt;
    rule.results.push_back(*place);
  }
  return rule;
}

std::optional<RowRule> RowsOfOp::from_operands(std::span<const int> dims) {
  for (int f = 0; f < static_cast<int>(rule_.factors.size()); ++f)
    if (std::optional<RowRule> rule = by(f, dims)) return rule;
  return std::nullopt;
}

std::optional<RowRule> RowsOfOp::sum_from_operands(std::span<const int> dims) {
  for (int f = 0; f < static_cast<int>(rule_.factors.size()); ++f) {
    if (!has_rows(f, FactorKind::reduction) || !adds_up(application_.op)) continue;
    std::optional<std::vector<int>> operands = operands_by(f, dims);
    if (!operands) continue;
    bool is_once_each = std::ranges::all_of(
        rule_.results, [&](const TensorFactors& result) { return place_of(f, result) == kWhole; });
    // Each element is read in one row, but for what others are added to.
    for (size_t i = 0; i < operands->size(); ++i) {
      if ((*operands)[i] != kWhole || !is_read(i)) continue;
      if (i == 0 && application_.op.def().traits.updates != 0)
        (*operands)[i] = kPartialSum;
      else
        is_once_each = false;
    }
    if (is_once_each)
      return RowRule{*std::move(operands), std::vector<int>(rule_.results.size(), kPartialSum)};
  }
  return std::nullopt;
}

std::optional<RowRule> RowsOfOp::from_result(int result, int dim) {
  const std::vector<int> whole(rule_.operands.size(), kWhole);
  for (int f = 0; f < static_cast<int>(rule_.factors.size()); ++f) {
    std::optional<RowRule> rule = by(f, whole);
    if (rule && rule->results[static_cast<size_t>(result)] == dim) return rule;
  }
  return std::nullopt;
}

std::string RowsOfOp::reason(std::span<const int> dims) const {
  const std::vector<std::string_view> names = operand_names(application_.op.def());
  for (size_t i = 0; i < relation_.operands.size(); ++i) {
    if (dims[i] == kWhole) continue;
    const std::string place =
        fmt::format("dim {} of operand '{}'", dims[i], names[std::min(i, names.size() - 1)]);
    for (const Access& access : relation_.operands[i]) {
      if (access.is_data_dependent(dims[i]))
        return fmt::format("data says which elements it reads along {}", place);
      for (int d = 0; d < static_cast<int>(relation_.dims.size()); ++d)
        if (relation_.dims[static_cast<size_t>(d)].kind != IterKind::parallel &&
            static_cast<size_t>(dims[i]) < access.index.size() &&
            access.index[static_cast<size_t>(dims[i])].mentions(d))
          return fmt::format("it combines elements along {}", place);
      if (access.index.empty())
        return fmt::format("all elements of its results need all of operand '{}'",
                           names[std::min(i, names.size() - 1)]);
    }
  }
  return "a row of its results needs several rows, or a row that stands elsewhere";
}

}  // namespace hone
