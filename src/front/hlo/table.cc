#include <algorithm>
#include <array>
#include <unordered_map>

#include "front/hlo/importer.h"

namespace hone::hlo {

#define HONE_HLO(stablehlo, hlo, function, kind) std::vector<Value> map_##function(Node& n);
#define HONE_HLO_OP(stablehlo, hlo, opcode, of_bools)
#define HONE_HLO_STRUCTURE(stablehlo, hlo)
#include "front/hlo/hlo_ops.def"

namespace {

enum class RowKind : uint8_t { pointwise, whole, open };

template <Opcode of_numbers, Opcode of_bools>
std::vector<Value> import_op(Node& n) {
  return elementwise_op(n, of_numbers, of_bools);
}

using ByName = std::unordered_map<std::string_view, const OpRow*>;

ByName index_of(std::string_view OpRow::* key) {
  ByName index;
  for (const OpRow& row : op_rows())
    if (!(row.*key).empty()) index.emplace(row.*key, &row);
  return index;
}

const OpRow* find(const ByName& index, std::string_view name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

std::span<const OpRow> op_rows() {
  static constexpr OpRow kRows[] = {
#define HONE_HLO(stablehlo, hlo, function, kind)                        \
  {stablehlo, hlo, map_##function, RowKind::kind == RowKind::pointwise, \
   RowKind::kind != RowKind::whole},
#define HONE_HLO_OP(stablehlo, hlo, opcode, of_bools) \
  {stablehlo, hlo, import_op<Opcode::opcode, Opcode::of_bools>, true, true, Opcode::opcode},
#define HONE_HLO_STRUCTURE(stablehlo, hlo) {stablehlo, hlo, nullptr, true, true},
#include "front/hlo/hlo_ops.def"
  };
  return kRows;
}

const OpRow* row_named(std::string_view stablehlo_name) {
  static const ByName index = index_of(&OpRow::name);
  return find(index, stablehlo_name);
}

const OpRow* row_of_hlo(std::string_view opcode) {
  static const ByName index = index_of(&OpRow::hlo);
  return find(index, opcode);
}

const OpRow* row_of(Opcode opcode) {
  static const std::vector<const OpRow*> index = [] {
    std::vector<const OpRow*> rows(kOpcodeCount, nullptr);
    for (const OpRow& row : op_rows())
      if (row.opcode && rows[static_cast<size_t>(*row.opcode)] == nullptr)
        rows[static_cast<size_t>(*row.opcode)] = &row;
    return rows;
  }();
  return index[static_cast<size_t>(opcode)];
}

}  // namespace hone::hlo
