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
    : application_(application),
      results_(results),
      rows_(rows),
      relation_(access_of(application, results)) {}

// The iteration dim is written as each * r + u: row r, and the place u within it. The tensor's
// index is in row r if it is also `each` of its own times r, plus something within a row.
RowsOfOp::Rows RowsOfOp::rows_in(const Access& access, Type type, int iteration_dim) const {
  if (access.index.size() != static_cast<size_t>(type.rank())) return {};
  const auto count = static_cast<int>(relation_.dims.size());
  const int64_t each = relation_.dims[static_cast<size_t>(iteration_dim)].extent.value() / rows_;
  std::vector<IndexExpr> iters = identity_index(count);
  std::vector<Range> box;
  for (const IterDim& dim : relation_.dims) box.push_back({0, dim.extent.value() - 1});
  iters[static_cast<size_t>(iteration_dim)] =
      each == 1 ? IndexExpr::iter(iteration_dim)
                : IndexExpr::iter(iteration_dim) * Dim(each) + IndexExpr::iter(count);
  box[static_cast<size_t>(iteration_dim)] = {0, rows_ - 1};
  box.push_back({0, each - 1});

  // An access that happens in some rows only depends on where the row stands.
  for (const Guard& guard : access.guards) {
    const IndexExpr value = guard.value.substitute(iters);
    if (!value.mentions(iteration_dim)) continue;
    const Range range = value.over(box);
    if (range.low < guard.lower.value() || range.high >= guard.upper.value()) return {};
  }
  int found = kWhole;
  for (int dim = 0; dim < type.rank(); ++dim) {
    const IndexExpr index = access.index[static_cast<size_t>(dim)].substitute(iters);
    if (!index.mentions(iteration_dim)) continue;
    const int64_t size = type.dim(dim).value();
    if (found != kWhole || access.is_data_dependent(dim) || size % rows_ != 0) return {};
    const IndexExpr place = index - IndexExpr::iter(iteration_dim) * Dim(size / rows_);
    if (place.mentions(iteration_dim)) return {};
    const Range range = place.over(box);
    if (range.low < 0 || range.high >= size / rows_) return {};
    found = dim;
  }
  return {found, true};
}

// A relation says which elements meet. An op that writes to places that data names also needs to
// know where each of them stands.
bool RowsOfOp::is_addressed_by_data(int result_dim) const {
  const OpDef& def = application_.op.def();
  if (class_of(def.opcode) != OpClass::ordered) return false;
  if (std::ranges::find(def.attrs, "index_map", &AttrSpec::name) == def.attrs.end()) return false;
  return std::ranges::count(application_.op.ints("index_map"), result_dim) > 0;
}

bool RowsOfOp::has_rows(int iteration_dim, IterKind kind) const {
  const IterDim& dim = relation_.dims[static_cast<size_t>(iteration_dim)];
  const int64_t extent = dim.extent.value();
  return dim.kind == kind && dim.divided_by < 0 && extent != 0 && extent % rows_ == 0;
}

// Where the operands have the rows if the iteration dim has them.
std::optional<std::vector<int>> RowsOfOp::operands_by(int iteration_dim,
                                                      std::span<const int> dims) const {
  std::vector<int> operands;
  for (size_t i = 0; i < relation_.operands.size(); ++i) {
    int found = dims[i];
    for (const Access& access : relation_.operands[i]) {
      const Rows rows = rows_in(access, application_.operands[i], iteration_dim);
      const bool is_first = &access == relation_.operands[i].data();
      if (!rows.fits || (!is_first && rows.dim != found)) return std::nullopt;
      found = rows.dim;
    }
    if (dims[i] != kWhole && found != dims[i]) return std::nullopt;
    operands.push_back(found);
  }
  return operands;
}

std::optional<RowRule> RowsOfOp::by(int iteration_dim, std::span<const int> dims) const {
  if (!has_rows(iteration_dim, IterKind::parallel)) return std::nullopt;
  std::optional<std::vector<int>> operands = operands_by(iteration_dim, dims);
  if (!operands) return std::nullopt;
  RowRule rule = {.operands = *std::move(operands), .results = {}};
  for (size_t i = 0; i < relation_.results.size(); ++i) {
    const Rows rows = rows_in(relation_.results[i], results_[i], iteration_dim);
    if (!rows.fits || rows.dim == kWhole || is_addressed_by_data(rows.dim)) return std::nullopt;
    rule.results.push_back(rows.dim);
  }
  return rule;
}

std::optional<RowRule> RowsOfOp::from_operands(std::span<const int> dims) {
  for (int d = 0; d < static_cast<int>(relation_.dims.size()); ++d)
    if (std::optional<RowRule> rule = by(d, dims)) return rule;
  return std::nullopt;
}

std::optional<RowRule> RowsOfOp::sum_from_operands(std::span<const int> dims) {
  for (int d = 0; d < static_cast<int>(relation_.dims.size()); ++d) {
    if (!has_rows(d, IterKind::reduction) || !adds_up(application_.op)) continue;
    std::optional<std::vector<int>> operands = operands_by(d, dims);
    if (!operands) continue;
    bool is_once_each = true;  // each element is read in one row, but for what others are added to
    for (size_t i = 0; i < operands->size(); ++i) {
      if ((*operands)[i] != kWhole || relation_.operands[i].empty()) continue;
      if (i == 0 && application_.op.def().traits.updates != 0)
        (*operands)[i] = kPartialSum;
      else
        is_once_each = false;
    }
    if (is_once_each)
      return RowRule{*std::move(operands), std::vector<int>(results_.size(), kPartialSum)};
  }
  return std::nullopt;
}

std::optional<RowRule> RowsOfOp::from_result(int result, int dim) {
  const std::vector<int> whole(relation_.operands.size(), kWhole);
  for (int d = 0; d < static_cast<int>(relation_.dims.size()); ++d) {
    std::optional<RowRule> rule = by(d, whole);
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
