#include "ir/op_def.h"

#include <algorithm>
#include <array>
#include <climits>
#include <limits>

#include "base/text.h"

namespace hone {

#define HONE_OP(id, text, family, op_class, slots) extern const OpDef op_def_##id;
#include "ir/ops.def"

namespace {

constexpr std::array<std::string_view, kOpcodeCount> kFamilies = {
#define HONE_OP(id, text, family, op_class, slots) #family,
#include "ir/ops.def"
};
constexpr std::array<OpClass, kOpcodeCount> kClasses = {
#define HONE_OP(id, text, family, op_class, slots) OpClass::op_class,
#include "ir/ops.def"
};

struct Slots {
  constexpr Slots(float all) : reals(all), integers(all) {}
  constexpr Slots(float reals, float integers) : reals(reals), integers(integers) {}
  float reals, integers;
};
constexpr std::array<Slots, kOpcodeCount> kSlots = {
#define HONE_OP(id, text, family, op_class, slots) slots,
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
#define HONE_OP(id, text, family, op_class, slots) &op_def_##id,
#include "ir/ops.def"
  };
  return *kTable[static_cast<size_t>(opcode)];
}

std::string_view family(Opcode opcode) { return kFamilies[static_cast<size_t>(opcode)]; }
OpClass class_of(Opcode opcode) { return kClasses[static_cast<size_t>(opcode)]; }

std::string_view name(OpClass op_class) {
  static constexpr std::string_view kNames[] = {
      "leaf",      "generator", "elementwise", "movement", "contraction", "reduction", "window",
      "segmented", "indexed",   "ordered",     "control",  "collective",  "composite"};
  return kNames[static_cast<size_t>(op_class)];
}

double slots_of(Opcode opcode, DType dtype) {
  const Slots& slots = kSlots[static_cast<size_t>(opcode)];
  return is_real(dtype) ? slots.reals : slots.integers;
}

Opcode combine_of(std::string_view kind) {
  for (int i = 0; i < kOpcodeCount; ++i) {
    const Opcode opcode = static_cast<Opcode>(i);
    const OpTraits& traits = op_def(opcode).traits;
    if (traits.identity != Identity::none && (kind == traits.kind || kind == name(opcode)))
      return opcode;
  }
  HONE_CHECK(false, "'{}' is no way to combine", kind);
}

std::variant<int64_t, double> identity_of(Opcode combine, DType dtype) {
  const Identity identity = op_def(combine).traits.identity;
  if (is_real(dtype)) {
    const double infinity = std::numeric_limits<double>::infinity();
    switch (identity) {
      case Identity::zero: return 0.0;
      case Identity::one: return 1.0;
      case Identity::lowest: return -infinity;
      case Identity::highest: return infinity;
      default: HONE_CHECK(false, "{} of reals combines nothing", name(combine));
    }
  }
  switch (identity) {
    case Identity::zero: return int64_t{0};
    case Identity::one: return int64_t{1};
    case Identity::lowest: return integer_limits(dtype).lowest;
    case Identity::highest: return integer_limits(dtype).highest;
    case Identity::all_bits: return wrap_to(dtype, -1);
    default: HONE_CHECK(false, "{} combines nothing", name(combine));
  }
}

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
