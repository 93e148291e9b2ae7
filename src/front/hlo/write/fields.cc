#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "front/hlo/write/print.h"

namespace hone::hlo {

const Field& field_named(std::string_view stablehlo_name) {
  static constexpr Field kFields[] = {
#define HONE_HLO_FIELD(stablehlo, form, mlir_type, hlo) \
  {stablehlo, FieldForm::form, mlir_type, hlo},
#include "front/hlo/write/fields.def"
  };
  static const std::unordered_map<std::string_view, const Field*> index = [] {
    std::unordered_map<std::string_view, const Field*> made;
    for (const Field& each : kFields) made.emplace(each.stablehlo, &each);
    return made;
  }();
  const auto found = index.find(stablehlo_name);
  HONE_CHECK(found != index.end(), "the attribute '{}' has no row", stablehlo_name);
  return *found->second;
}

const Attribute* attribute_named(const Instruction& instruction, std::string_view name) {
  for (const auto& [key, value] : instruction.attributes)
    if (key == name) return &value;
  return nullptr;
}

Ints numbers_of(const Attribute& list) {
  Ints numbers;
  for (const Attribute& item : list.items) numbers.push_back(item.integer);
  return numbers;
}

std::string mesh_text(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const MeshAxis& axis : mesh.axes)
    axes.push_back(fmt::format("{}={}", hone::quoted(axis.name), axis.size));
  const std::string devices =
      mesh.devices.empty() ? "" : fmt::format(", device_ids=[{}]", join(mesh.devices, ", "));
  return fmt::format("<[{}]{}>", join(axes, ", "), devices);
}

std::string plain_name(std::string_view name) {
  std::string made;
  for (const char c : name) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.';
    made += is_plain ? c : '_';
  }
  if (made.empty() || (made[0] >= '0' && made[0] <= '9') || made[0] == '.') made.insert(0, "_");
  return made;
}

std::vector<Type> types_of_values(const Function& function) {
  std::vector<Type> types(function.values);
  const auto parameters = [&](const Region& region) {
    for (size_t i = 0; i < region.parameters.size(); ++i)
      types[region.first_parameter + i] = region.parameters[i].type;
  };
  parameters(function.body);
  for_each_instruction(function.body, [&](const Instruction& one) {
    for (size_t i = 0; i < one.results.size(); ++i)
      types[one.first_result + i] = one.results[i].type;
    for (const Region& region : one.regions) parameters(region);
  });
  return types;
}

}  // namespace hone::hlo
