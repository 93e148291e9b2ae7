#include "rules/reads.h"

#include "base/hash.h"
#include "ir/graph.h"

namespace hone {
namespace {

constexpr int64_t kMaxPoints = int64_t{1} << 22;
constexpr size_t kMaxNumbers = size_t{1} << 26;

bool holds(const Guard& guard, std::span<const int64_t> point) {
  const int64_t value = guard.value.at(point);
  return guard.lower.value() <= value && value < guard.upper.value();
}

// The element of the operand that its first piece with good guards reads.
int32_t element_at(std::span<const Access> pieces, Type operand, std::span<const int64_t> point) {
  for (const Access& piece : pieces) {
    bool is_read = true;
    for (const Guard& guard : piece.guards) is_read = is_read && holds(guard, point);
    if (!is_read) continue;
    int64_t offset = 0;
    for (size_t i = 0; i < piece.index.size(); ++i)
      offset = offset * operand.dim(static_cast<int>(i)).value() + piece.index[i].at(point);
    return static_cast<int32_t>(offset);
  }
  return Reads::kNothing;
}

bool advance(std::vector<int64_t>& point, std::span<const IterDim> dims, size_t from) {
  for (size_t i = dims.size(); i-- > from;) {
    if (++point[i] < dims[i].extent.value()) return true;
    point[i] = 0;
  }
  return false;
}

Result<Reads> reads_of(Op op, std::span<const Type> operands, Type result) {
  const Application application = {.op = op, .operands = operands};
  if (!has_access(application)) return unsupported("'{}' has no access relation", op.name());
  const AccessRelation relation = access_of(application, std::span(&result, 1));
  int64_t points = 1;
  for (const IterDim& dim : relation.dims) {
    if (dim.kind == IterKind::sequential || dim.divided_by >= 0)
      return unsupported("'{}' computes its elements in an order", op.name());
    if (dim.extent.value() > 0 && points > kMaxPoints / dim.extent.value())
      return over_limit("'{}' reads more than {} elements", op.name(), kMaxPoints);
    points *= dim.extent.value();
  }
  for (const auto& pieces : relation.operands)
    for (const Access& piece : pieces)
      for (bool depends : piece.data_dependent)
        if (depends) return unsupported("'{}' reads where data says", op.name());

  Reads reads = {.operands = operands.size(), .begin = {0}, .rows = {}};
  const size_t kept = static_cast<size_t>(result.rank());
  bool reduces_nothing = false;  // no point for any element
  for (size_t i = kept; i < relation.dims.size(); ++i)
    reduces_nothing = reduces_nothing || relation.dims[i].extent.is(0);
  std::vector<int64_t> point(relation.dims.size(), 0);
  std::vector<int32_t> row(operands.size());
  for (int64_t e = 0; e < result.static_elements(); ++e) {
    bool more = !reduces_nothing;
    while (more) {
      bool reads_any = false;
      for (size_t o = 0; o < operands.size(); ++o) {
        row[o] = element_at(relation.operands[o], operands[o], point);
        reads_any = reads_any || row[o] != Reads::kNothing;
      }
      if (reads_any) reads.rows.insert(reads.rows.end(), row.begin(), row.end());
      more = advance(point, relation.dims, kept);
    }
    reads.begin.push_back(static_cast<uint32_t>(reads.rows.size() / operands.size()));
    // The reduction dims are at 0 again: the next element.
    advance(point, std::span(relation.dims).first(kept), 0);
  }
  return reads;
}

}  // namespace

size_t ReadTables::Hash::operator()(const Key& key) const {
  Hasher hasher(key.op.hash());
  for (Type type : key.operands) hasher.add(type.hash());
  return hasher.value();
}

Result<const Reads*> ReadTables::of(Op op, std::span<const Type> operands, Type result) {
  Key key = {.op = op, .operands = {operands.begin(), operands.end()}};
  const auto found = tables_.find(key);
  if (found != tables_.end()) return &found->second;
  Reads reads = HONE_TRY(reads_of(op, operands, result));
  numbers_ += reads.begin.size() + reads.rows.size();
  if (numbers_ > kMaxNumbers) return over_limit("the ops read more than {} elements", kMaxNumbers);
  return &tables_.emplace(std::move(key), std::move(reads)).first->second;
}

}  // namespace hone
