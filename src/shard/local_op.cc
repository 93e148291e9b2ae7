#include "shard/local_op.h"

#include <algorithm>
#include <utility>

#include "ir/op_facts.h"
#include "rewrite/constants.h"

namespace hone {

std::vector<SizeEntry> size_entries(Op op, std::span<const Type> types, std::span<const int> dims,
                                    const BatchShare& share) {
  std::vector<SizeEntry> found;
  for (size_t a = 0; a < op.attrs().size(); ++a) {
    const auto* sizes = std::get_if<Dims>(&op.attrs()[a]);
    if (sizes == nullptr) continue;
    for (size_t i = 0; i < types.size(); ++i) {
      const auto at = static_cast<size_t>(dims[i]);
      if (dims[i] < 0 || at >= sizes->size()) continue;
      const int64_t size = types[i].dim(dims[i]).value();
      const bool is_known = std::ranges::any_of(
          found, [&](const SizeEntry& one) { return one.attr == a && one.entry == at; });
      if (!is_known && (*sizes)[at].is(size))
        found.push_back({a, at, size / share.rows * share.count});
    }
  }
  return found;
}

bool has_attr(Op op, std::string_view name) {
  return std::ranges::any_of(op.def().attrs, [&](const AttrSpec& one) { return one.name == name; });
}

void add_size_entries(Op op, size_t dim, Dim whole, Dim local, std::vector<SizeEntry>& entries) {
  for (size_t a = 0; a < op.attrs().size(); ++a) {
    const auto* sizes = std::get_if<Dims>(&op.attrs()[a]);
    if (sizes == nullptr || dim >= sizes->size() || (*sizes)[dim] != whole) continue;
    const bool is_known = std::ranges::any_of(entries, [&](const SizeEntry& one) {
      return one.attr == a && one.entry == dim && one.local == local;
    });
    if (!is_known) entries.push_back({a, dim, local});
  }
}

namespace {

Op with_entries(Op op, std::span<const SizeEntry> entries, uint32_t chosen) {
  const OpDef& def = op.def();
  Attrs attrs;
  for (size_t a = 0; a < def.attrs.size(); ++a) {
    AttrValue value = op.attrs()[a];
    for (size_t i = 0; i < entries.size(); ++i)
      if ((chosen >> i & 1) != 0 && entries[i].attr == a)
        std::get<Dims>(value)[entries[i].entry] = entries[i].local;
    attrs.emplace_back(def.attrs[a].name, std::move(value));
  }
  return Op::get(op.opcode(), std::move(attrs));
}

}  // namespace

std::optional<Op> local_op(const Application& local, std::span<const SizeEntry> entries,
                           std::span<const Type> wanted) {
  constexpr size_t kMostEntries = 6;
  const size_t count = std::min(entries.size(), kMostEntries);
  for (uint32_t chosen = 0; chosen < (uint32_t{1} << count); ++chosen) {
    Application one = local;
    if (chosen != 0) one.op = with_entries(local.op, entries, chosen);
    const Result<std::vector<Type>> results = infer(one);
    if (results.ok() && std::ranges::equal(*results, wanted)) return one.op;
  }
  return std::nullopt;
}

DType sum_type(DType dtype) {
  if (is_real(dtype)) return bits(dtype) <= 16 ? DType::f32 : dtype;
  return is_storage_only(dtype) ? DType::i32 : dtype;
}

SumForm sum_form(Op op, std::vector<Type> operands, DType result) {
  const DType wide = sum_type(result);
  if (wide == result) return {op, std::move(operands)};
  if (is_contraction(op.opcode())) {
    const Attrs changes = {{"accumulate", std::string(name(wide))}};
    return {Op::get(op.opcode(), changed_attrs(op, changes)), std::move(operands)};
  }
  for (Type& type : operands)
    if (type && type.dtype() == result) type = Type::get(wide, type.dims());
  return {op, std::move(operands)};
}

}  // namespace hone
