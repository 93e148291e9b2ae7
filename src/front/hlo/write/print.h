#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "front/hlo/program.h"

namespace hone::hlo {

// The two ways to write a program down. The program is one that this folder makes.
std::string print_stablehlo(const Module& module);
std::string print_hlo(const Module& module);

// ---- Shared by both -----------------------------------------------------------------------------

// A row of fields.def.
enum class FieldForm : uint8_t {
  number,
  flag,
  mark,
  numbers,
  pairs,
  enumeration,
  record,
  order,
  text,
  symbol,
  dictionary,
};
struct Field {
  std::string_view stablehlo;
  FieldForm form;
  std::string_view mlir_type;
  std::string_view hlo;
};
const Field& field_named(std::string_view stablehlo_name);

// Null: the instruction does not have it.
const Attribute* attribute_named(const Instruction& instruction, std::string_view name);
Ints numbers_of(const Attribute& list);

// "<["a"=2], device_ids=[1, 0]>"
std::string mesh_text(const Mesh& mesh);

// The name with what a language does not take in names replaced by '_'.
std::string plain_name(std::string_view name);

// Calls `f` for each instruction of a region and of those inside.
template <class F>
void for_each_instruction(const Region& region, const F& f) {
  for (const Instruction& one : region.instructions) {
    f(one);
    for (const Region& inner : one.regions) for_each_instruction(inner, f);
  }
}
// The types of all values, by their number.
std::vector<Type> types_of_values(const Function& function);

}  // namespace hone::hlo
