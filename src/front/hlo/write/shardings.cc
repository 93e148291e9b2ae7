#include <algorithm>

#include "base/text.h"
#include "front/hlo/write/emit.h"
#include "front/hlo/write/print.h"

// Shardings are written as Shardy's text, which both languages carry.

namespace hone::hlo {
namespace {

std::string part_text(const AxisPart& part) {
  const std::string name = hone::quoted(part.axis);
  return part.size == 0 ? name : fmt::format("{}:({}){}", name, part.before, part.size);
}

std::vector<std::string> part_texts(const std::vector<AxisPart>& parts) {
  std::vector<std::string> texts;
  for (const AxisPart& part : parts) texts.push_back(part_text(part));
  return texts;
}

std::string dim_text(const DimSharding& dim) {
  std::vector<std::string> texts = part_texts(dim.axes);
  if (dim.is_open) texts.emplace_back("?");
  return fmt::format("{{{}}}{}", join(texts, ", "),
                     dim.priority == 0 ? "" : fmt::format("p{}", dim.priority));
}

std::string list_text(std::string_view name, const std::vector<AxisPart>& parts) {
  return parts.empty() ? "" : fmt::format(", {}={{{}}}", name, join(part_texts(parts), ", "));
}

// "<@m, [{"a", ?}, {}], replicated={"b"}>"
std::string shardy_text(const Sharding& sharding) {
  const Mesh& mesh = *sharding.mesh;
  const bool is_one_device = mesh.axes.empty() && !mesh.devices.empty();
  std::vector<std::string> dims;
  for (const DimSharding& dim : sharding.dims)
    if (!is_one_device) dims.push_back(dim_text(dim));
  return fmt::format("<@{}, [{}]{}{}>", mesh.name, join(dims, ", "),
                     list_text("replicated", sharding.replicated),
                     list_text("unreduced", sharding.partial));
}

}  // namespace

Attribute GraphToProgram::sharding(const Sharding& sharding) {
  if (!sharding.partial.empty() && sharding.partial_kind != PartialKind::sum)
    throw Refusal{unsupported("a value that is a partial {} has no text in Shardy",
                              name(sharding.partial_kind))};
  if (sharding.group >= 0 || sharding.passage != AxisPassage::both)
    throw Refusal{unsupported("groups of values and barriers of shardings are not written")
                      .with_hint("leave out 'group' and 'passes': no number changes")};
  const std::string& name = sharding.mesh->name;
  if (plain_name(name) != name)
    throw Refusal{unsupported("the name '{}' of a mesh is not handled: letters and digits are",
                              excerpt(name))};
  for (const MeshAxis& axis : sharding.mesh->axes)
    if (axis.name.find_first_of("\"'\\\n") != std::string::npos)
      throw Refusal{unsupported("the name '{}' of an axis has quotes", excerpt(axis.name))};
  std::vector<MeshRef>& meshes = program_.modules.back().meshes;
  const auto same = [&](const MeshRef& one) { return one->name == name; };
  if (std::ranges::none_of(meshes, same)) meshes.push_back(sharding.mesh);
  need_devices(sharding.mesh->device_count());
  return word_of(kept(shardy_text(sharding)));
}

// The first one may stand at the instruction that makes the value; others are constraints.
uint32_t GraphToProgram::sharded(const Graph& graph, ValueId v, uint32_t value, bool is_own) {
  if (graph.shardings() == nullptr) return value;
  bool is_first = true;
  for (const Sharding* one : graph.shardings()->of(v)) {
    Attribute text = sharding(*one);
    Instruction* last = region_->instructions.empty() ? nullptr : &region_->instructions.back();
    const bool at_parameter =
        region_ == &function_.body && value < function_.body.parameters.size();
    if (is_first && at_parameter) {
      function_.parameter_attributes[value].emplace_back("sdy.sharding", std::move(text));
    } else if (is_first && is_own && last != nullptr && last->results.size() == 1 &&
               last->first_result == value && last->name != "stablehlo.constant") {
      last->attributes.emplace_back("sdy.sharding", std::move(text));
    } else {
      value =
          op("sdy.sharding_constraint", {value}, graph.type(v), {{"sharding", std::move(text)}});
    }
    is_first = false;
  }
  return value;
}

}  // namespace hone::hlo
