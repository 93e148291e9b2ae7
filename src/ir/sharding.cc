#include "ir/sharding.h"

#include <algorithm>
#include <map>

#include "base/axis_text.h"
#include "base/checked_math.h"
#include "base/text.h"

namespace hone {
namespace {

std::string part_text(const AxisPart& part) {
  const std::string name = axis_text(part.axis);
  return part.size == 0 ? name : fmt::format("{}:({}){}", name, part.before, part.size);
}

std::string parts_text(const std::vector<AxisPart>& parts, std::string_view between) {
  std::vector<std::string> texts;
  for (const AxisPart& part : parts) texts.push_back(part_text(part));
  return join(texts, between);
}

std::string dim_text(const DimSharding& dim) {
  std::vector<std::string> words;
  if (!dim.axes.empty()) words.push_back(parts_text(dim.axes, " "));
  if (dim.is_open) words.emplace_back("open");
  if (words.empty()) words.emplace_back("-");
  if (dim.priority != 0) words.push_back(fmt::format("priority {}", dim.priority));
  return join(words, " ");
}

// An axis of 2^20 devices has no more parts that differ, and parts of size 1 say nothing.
constexpr size_t kMostParts = 64;

// The parts of each axis that are taken: from `before` to `before * size`.
class TakenAxes {
 public:
  explicit TakenAxes(const Mesh& mesh) : mesh_(mesh) {}

  Status take(const AxisPart& part) {
    const MeshAxis* axis = mesh_.find(part.axis);
    if (axis == nullptr) {
      std::vector<std::string_view> names;
      for (const MeshAxis& one : mesh_.axes) names.push_back(one.name);
      return bad_input("the mesh '{}' has no axis '{}'", excerpt(mesh_.name), excerpt(part.axis))
          .with_hint(did_you_mean(part.axis, names));
    }
    const int64_t size = part.size == 0 ? axis->size : part.size;
    const std::optional<int64_t> end = checked_mul(part.before, size);
    if (part.before < 1 || size < 1 || !end || axis->size % *end != 0)
      return bad_input("the axis '{}' of size {} has no part ({}){}", excerpt(part.axis),
                       axis->size, part.before, size);
    if (taken_[part.axis].size() == kMostParts)
      return over_limit("the axis '{}' is used in more than {} parts", excerpt(part.axis),
                        kMostParts);
    for (const auto& [before, taken_end] : taken_[part.axis])
      if (before % *end != 0 && part.before % taken_end != 0)
        return bad_input("the axis '{}' is used twice", excerpt(part.axis));
    // A whole axis of size 1 overlaps nothing else, but a name stands once.
    if (part.size == 0 && !whole_.emplace(part.axis, 0).second)
      return bad_input("the axis '{}' is used twice", excerpt(part.axis));
    taken_[part.axis].emplace_back(part.before, *end);
    return {};
  }

 private:
  const Mesh& mesh_;
  std::map<std::string_view, std::vector<std::pair<int64_t, int64_t>>> taken_;
  std::map<std::string_view, int> whole_;
};

Status add_mesh(const MeshRef& mesh, std::vector<MeshRef>& meshes) {
  for (const MeshRef& known : meshes) {
    if (known == mesh) return {};
    if (known->name != mesh->name) continue;
    if (*known == *mesh) return {};
    return bad_input("there are two meshes '{}': {} and {}", excerpt(mesh->name), axes_text(*known),
                     axes_text(*mesh));
  }
  HONE_TRY(check(*mesh));
  meshes.push_back(mesh);
  return {};
}

void collect(const Graph& graph, std::vector<MeshRef>& found) {
  const auto add = [&](const Sharding& sharding) {
    const auto same = [&](const MeshRef& one) { return one->name == sharding.mesh->name; };
    if (std::ranges::none_of(found, same)) found.push_back(sharding.mesh);
  };
  if (const Shardings* all = graph.shardings()) {
    for (const auto& [value, sharding] : all->values) add(sharding);
    for (const auto& [output, sharding] : all->outputs) add(sharding);
  }
  for (const NodeId n : graph.nodes())
    for (const GraphRef& region : graph.regions(n)) collect(*region, found);
}

}  // namespace

int64_t Mesh::device_count() const {
  int64_t count = 1;
  for (const MeshAxis& axis : axes) count *= axis.size;
  return count;
}

const MeshAxis* Mesh::find(std::string_view axis) const {
  const auto found = std::ranges::find(axes, axis, &MeshAxis::name);
  return found == axes.end() ? nullptr : &*found;
}

std::optional<int64_t> Mesh::single_device() const {
  return devices.size() == 1 ? std::optional(devices[0]) : std::nullopt;
}

std::string_view name(PartialKind kind) {
  switch (kind) {
    case PartialKind::sum: return "sum";
    case PartialKind::max: return "max";
    case PartialKind::min: return "min";
  }
  return "";
}

std::string_view name(AxisPassage passage) {
  switch (passage) {
    case AxisPassage::both: return "both";
    case AxisPassage::forward: return "forward";
    case AxisPassage::backward: return "backward";
    case AxisPassage::none: return "none";
  }
  return "";
}

bool Sharding::operator==(const Sharding& other) const {
  return (mesh == other.mesh || *mesh == *other.mesh) && dims == other.dims &&
         replicated == other.replicated && partial_kind == other.partial_kind &&
         partial == other.partial && group == other.group && passage == other.passage;
}

void Shardings::add(ValueId value, Sharding sharding) {
  const auto [begin, end] =
      std::ranges::equal_range(values, value, {}, &std::pair<ValueId, Sharding>::first);
  const auto same = [&](const auto& one) { return one.second == sharding; };
  if (std::any_of(begin, end, same)) return;
  values.insert(end, {value, std::move(sharding)});
}

void Shardings::set_output(uint32_t output, Sharding sharding) {
  const auto at =
      std::ranges::lower_bound(outputs, output, {}, &std::pair<uint32_t, Sharding>::first);
  if (at != outputs.end() && at->first == output)
    at->second = std::move(sharding);
  else
    outputs.insert(at, {output, std::move(sharding)});
}

std::vector<const Sharding*> Shardings::of(ValueId value) const {
  std::vector<const Sharding*> found;
  for (auto at = std::ranges::lower_bound(values, value, {}, &std::pair<ValueId, Sharding>::first);
       at != values.end() && at->first == value; ++at)
    found.push_back(&at->second);
  return found;
}

const Sharding* Shardings::of_output(uint32_t output) const {
  const auto at =
      std::ranges::lower_bound(outputs, output, {}, &std::pair<uint32_t, Sharding>::first);
  return at != outputs.end() && at->first == output ? &at->second : nullptr;
}

Status check(const Mesh& mesh) {
  std::optional<int64_t> count = 1;
  for (size_t i = 0; i < mesh.axes.size(); ++i) {
    const MeshAxis& axis = mesh.axes[i];
    if (axis.name.empty()) return bad_input("an axis of the mesh '{}' has no name", mesh.name);
    if (mesh.find(axis.name) != &axis)
      return bad_input("the mesh '{}' has two axes '{}'", excerpt(mesh.name), excerpt(axis.name));
    if (axis.size < 1)
      return bad_input("the axis '{}' has the size {}", excerpt(axis.name), axis.size);
    if (count) count = checked_mul(*count, axis.size);
  }
  if (!count || *count > kMostMeshDevices)
    return over_limit("the mesh '{}' has more than {} devices", excerpt(mesh.name),
                      kMostMeshDevices);
  if (mesh.devices.empty()) return {};
  std::vector<int64_t> sorted = mesh.devices;
  std::ranges::sort(sorted);
  if (static_cast<int64_t>(sorted.size()) != *count)
    return bad_input("the mesh '{}' lists {} devices, but its axes count {}", excerpt(mesh.name),
                     sorted.size(), *count);
  if (sorted[0] < 0 || sorted.back() >= kMostMeshDevices ||
      std::ranges::adjacent_find(sorted) != sorted.end())
    return bad_input("the devices of the mesh '{}' must be different numbers from 0",
                     excerpt(mesh.name));
  return {};
}

Status check(const Sharding& sharding, Type type) {
  if (static_cast<int>(sharding.dims.size()) != type.rank())
    return bad_input("a sharding of {} dims does not fit {}", sharding.dims.size(),
                     type.to_string());
  TakenAxes taken(*sharding.mesh);
  for (const DimSharding& dim : sharding.dims) {
    if (dim.priority < 0) return bad_input("the priority {} of a dim is below 0", dim.priority);
    for (const AxisPart& part : dim.axes) HONE_TRY(taken.take(part));
  }
  for (const AxisPart& part : sharding.replicated) HONE_TRY(taken.take(part));
  for (const AxisPart& part : sharding.partial) HONE_TRY(taken.take(part));
  return {};
}

Status check_shardings(const Graph& graph, std::vector<MeshRef>& meshes) {
  const Shardings* all = graph.shardings();
  if (all == nullptr) return {};
  for (const auto& [value, sharding] : all->values) {
    if (value.index >= graph.value_count())
      return bad_input("a sharding is of value {}, which does not exist", value.index);
    HONE_TRY(add_mesh(sharding.mesh, meshes));
    Status good = check(sharding, graph.type(value));
    if (!good.ok()) return std::move(good).error().within(graph.label(value));
  }
  for (const auto& [output, sharding] : all->outputs) {
    if (output >= graph.outputs().size())
      return bad_input("a sharding is of output {}, but there are {}", output,
                       graph.outputs().size());
    HONE_TRY(add_mesh(sharding.mesh, meshes));
    Status good = check(sharding, graph.type(graph.outputs()[output]));
    if (!good.ok()) return std::move(good).error().within(fmt::format("output {}", output));
  }
  return {};
}

std::vector<MeshRef> meshes_of(const Graph& graph) {
  std::vector<MeshRef> found;
  collect(graph, found);
  return found;
}

bool is_plain_axis(std::string_view name) { return axis_text(name) == name; }

std::string axes_text(const Mesh& mesh) {
  std::vector<std::string> texts;
  for (const MeshAxis& axis : mesh.axes)
    texts.push_back(fmt::format("{} = {}", axis_text(axis.name), axis.size));
  std::string text = fmt::format("[{}]", join(texts, ", "));
  if (!mesh.devices.empty()) text += fmt::format(" devices [{}]", join(mesh.devices, ", "));
  return text;
}

std::string dims_text(const Sharding& sharding) {
  std::vector<std::string> texts;
  for (const DimSharding& dim : sharding.dims) texts.push_back(dim_text(dim));
  std::string text = fmt::format("[{}]", join(texts, ", "));
  if (!sharding.replicated.empty())
    text += fmt::format(" replicated [{}]", parts_text(sharding.replicated, ", "));
  if (!sharding.partial.empty())
    text += fmt::format(" partial {} [{}]", name(sharding.partial_kind),
                        parts_text(sharding.partial, ", "));
  if (sharding.group >= 0) text += fmt::format(" group {}", sharding.group);
  if (sharding.passage != AxisPassage::both)
    text += fmt::format(" passes {}", name(sharding.passage));
  return text;
}

}  // namespace hone
