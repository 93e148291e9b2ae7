#include "ir/op_def.h"

#include <algorithm>
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

std::vector<std::string_view> listed_names(std::string_view text) {
  std::vector<std::string_view> names;
  if (text.empty()) return names;
  for (std::string_view name : split(text, ',')) {
    name = trim(name);
    if (name.back() == '?' || name.back() == '*') name.remove_suffix(1);
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
  // Every node that is made asks this, so the names are not listed.
  for (std::string_view left = def.operands; !left.empty();) {
    const size_t end = std::min(left.find(','), left.size());
    const char mark = trim(left.substr(0, end)).back();
    left.remove_prefix(std::min(end + 1, left.size()));
    if (mark == '*') {
      arity.max = INT_MAX;
      return arity;
    }
    ++arity.max;
    if (mark != '?') arity.min = arity.max;
  }
  return arity;
}

std::vector<std::string_view> operand_names(const OpDef& def) { return listed_names(def.operands); }
std::vector<std::string_view> region_names(const OpDef& def) { return listed_names(def.regions); }

}  // namespace hone
