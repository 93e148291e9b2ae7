#include "ir/op_def.h"

#include <array>
#include <climits>

#include "base/text.h"

namespace hone {

#define HONE_OP(id, text, family, level) extern const OpDef op_def_##id;
#include "ir/ops.def"

namespace {

constexpr std::array<std::string_view, kOpcodeCount> kFamilies = {
#define HONE_OP(id, text, family, level) #family,
#include "ir/ops.def"
};
constexpr std::array<Level, kOpcodeCount> kLevels = {
#define HONE_OP(id, text, family, level) Level::level,
#include "ir/ops.def"
};

std::vector<std::string_view> listed_names(std::string_view text, bool strip_marks) {
  std::vector<std::string_view> names;
  if (text.empty()) return names;
  for (std::string_view name : split(text, ',')) {
    name = trim(name);
    if (strip_marks && (name.back() == '?' || name.back() == '*')) name.remove_suffix(1);
    names.push_back(name);
  }
  return names;
}

}  // namespace

const OpDef& op_def(Opcode opcode) {
  static constexpr std::array<const OpDef*, kOpcodeCount> kTable = {
#define HONE_OP(id, text, family, level) &op_def_##id,
#include "ir/ops.def"
  };
  return *kTable[static_cast<size_t>(opcode)];
}

std::string_view family(Opcode opcode) { return kFamilies[static_cast<size_t>(opcode)]; }
Level level(Opcode opcode) { return kLevels[static_cast<size_t>(opcode)]; }

Arity operand_arity(const OpDef& def) {
  Arity arity;
  for (std::string_view name : listed_names(def.operands, false)) {
    if (name.back() == '*') {
      arity.max = INT_MAX;
      return arity;
    }
    ++arity.max;
    if (name.back() != '?') arity.min = arity.max;
  }
  return arity;
}

std::vector<std::string_view> operand_names(const OpDef& def) {
  return listed_names(def.operands, true);
}
std::vector<std::string_view> region_names(const OpDef& def) {
  return listed_names(def.regions, true);
}

}  // namespace hone
