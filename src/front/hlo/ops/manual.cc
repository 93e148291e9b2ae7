#include <algorithm>

#include "base/text.h"
#include "front/hlo/device_dims.h"

// sdy.manual_computation, the shard_map of JAX: a program of one device within one of all. Along
// its manual axes it sees the parts of its operands, and says itself what devices exchange.

namespace hone::hlo {
namespace {

using AllShardings = std::vector<Sharding>;

AllShardings stated(Node& n, std::string_view name, std::span<const Type> types) {
  const Attribute* found = n.find(name);
  if (found == nullptr) n.refuse(bad_input("'{}' is missing", name));
  AllShardings all;
  for (std::optional<Sharding>& one : n.importer().shardings_at(found->offset, types)) {
    if (!one) n.refuse(bad_input("'{}' does not say how each value is divided", name));
    if (!one->partial.empty())
      n.refuse(unsupported("a value that is a partial sum in '{}' is not handled", name));
    all.push_back(std::move(*one));
  }
  return all;
}

MeshRef mesh_of(Node& n, const AllShardings& in, const AllShardings& out) {
  const MeshRef mesh = !in.empty() ? in[0].mesh : !out.empty() ? out[0].mesh : nullptr;
  if (mesh == nullptr) n.refuse(bad_input("it names no mesh: it has no operands and no results"));
  for (const AllShardings* all : {&in, &out})
    for (const Sharding& one : *all)
      if (*one.mesh != *mesh)
        n.refuse(unsupported("of two meshes, '{}' and '{}'", mesh->name, one.mesh->name));
  return mesh;
}

// {"x", "y"}, or #sdy<manual_axes{"x", "y"}>
std::vector<std::string_view> manual_names(Node& n) {
  const Attribute* found = n.find("manual_axes");
  if (found == nullptr) n.refuse(bad_input("'manual_axes' is missing"));
  if (found->kind == Attribute::Kind::record) return found->keys;
  std::vector<std::string_view> names;
  std::string_view rest = found->text;
  for (size_t at = rest.find('"'); at != rest.npos; at = rest.find('"')) {
    const size_t end = rest.find('"', at + 1);
    if (end == rest.npos) n.refuse(bad_input("'manual_axes' has a name without its end"));
    names.push_back(rest.substr(at + 1, end - at - 1));
    rest.remove_prefix(end + 1);
  }
  return names;
}

AxisSet manual_axes(Node& n, const Mesh& mesh) {
  if (mesh.axes.size() > kMostManualAxes)
    n.refuse(unsupported("a mesh of more than {} axes is not handled", kMostManualAxes));
  AxisSet axes = 0;
  for (const std::string_view name : manual_names(n)) {
    const MeshAxis* axis = mesh.find(name);
    if (axis == nullptr)
      n.refuse(bad_input("the manual axis '{}' is none of the mesh '{}' {}", excerpt(name),
                         mesh.name, axes_text(mesh)));
    const AxisSet bit = AxisSet{1} << (axis - mesh.axes.data());
    if ((axes & bit) != 0) n.refuse(bad_input("the manual axis '{}' is named twice", name));
    if (std::ranges::find(n.importer().manual_axes, name) != n.importer().manual_axes.end())
      n.refuse(bad_input("the axis '{}' is manual around it, too", name));
    axes |= bit;
  }
  if (axes != 0 && !mesh.devices.empty())
    n.refuse(
        unsupported("the mesh '{}' has its devices in another order than its axes", mesh.name));
  return axes;
}

// The body as a graph of its own.
Graph body_of(Node& n, const Mesh& mesh, AxisSet manual, std::span<const Type> types) {
  const Region& region = n.instruction().regions[0];
  if (region.parameters.size() != types.size())
    n.refuse(
        bad_input("its body takes {} values, but gets {}", region.parameters.size(), types.size()));
  Importer& importer = n.importer();
  Builder inner("manual");
  Importer::leave_on_failure(inner);
  std::unordered_map<uint32_t, Held> held;
  std::vector<Held> parameters;
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueType& stated = region.parameters[i];
    if (stated.kind != ValueType::Kind::tensor || stated.type != types[i])
      n.refuse(bad_input("parameter {} of its body is {}, but the part of a device is {}", i,
                         excerpt(stated.text), types[i].to_string()));
    parameters.push_back({.value = inner.parameter("", types[i])});
  }
  Frame frame = {&inner, n.frame().function, &held, nullptr};
  const DeviceGrid grid = std::exchange(importer.grid, {1, mesh.device_count()});
  const size_t around = importer.manual_axes.size();
  for (size_t i = 0; i < mesh.axes.size(); ++i)
    if ((manual >> i & 1) != 0) importer.manual_axes.push_back(mesh.axes[i].name);
  std::vector<Value> results;
  for (const Held& one : importer.call(frame, {frame.function, &region}, std::move(parameters)))
    append_leaves(one, results);
  importer.manual_axes.resize(around);
  importer.grid = grid;
  importer.keep_shardings(inner);
  Result<Graph> made = inner.finish(results);
  if (!made.ok()) n.refuse(std::move(made).error());
  return std::move(*made);
}

}  // namespace

std::vector<Value> map_manual_computation(Node& n) {
  if (n.instruction().regions.size() != 1) n.refuse(bad_input("its body is missing"));
  std::vector<Type> in_types, out_types;
  for (const Value& one : n.operands()) in_types.push_back(one.type());
  for (size_t i = 0; i < n.instruction().results.size(); ++i)
    out_types.push_back(n.static_result(i));
  const AllShardings in = stated(n, "in_shardings", in_types);
  const AllShardings out = stated(n, "out_shardings", out_types);
  if (in.empty() && out.empty()) return {};
  const MeshRef mesh = mesh_of(n, in, out);
  const AxisSet manual = manual_axes(n, *mesh);
  DeviceDims device_dims({n.importer(), n.instruction().offset, n.instruction().name}, mesh,
                         manual);
  std::vector<Differing> parts;
  std::vector<Type> part_types;
  for (size_t i = 0; i < in.size(); ++i) {
    const Differing& part = parts.emplace_back(device_dims.parts_of(n.in(i), in[i]));
    n.importer().say(part.value, device_dims.of_part(in[i], part.axes));
    part_types.push_back(device_dims.local_type(part));
  }
  const Graph body = body_of(n, *mesh, manual, part_types);
  if (body.outputs().size() != out.size())
    n.refuse(bad_input("its body returns {} values, but it has {} results", body.outputs().size(),
                       out.size()));
  Shardings said;
  const std::vector<Differing> made = device_dims.run(n.builder(), body, parts, said);
  for (const auto& [value, sharding] : said.values)
    n.importer().say(Value(&n.builder(), value), sharding);
  std::vector<Value> results;
  for (size_t i = 0; i < out.size(); ++i) {
    results.push_back(device_dims.whole_of(made[i], out[i]));
    n.importer().say(results.back(), out[i]);
  }
  return results;
}

}  // namespace hone::hlo
