#include "front/hlo/sharding_text.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "front/hlo/device_list.h"

namespace hone::hlo {
namespace {

// "a", 'a', \"a\" and \22a\22: the texts may stand in strings.
std::string quoted_name(Cursor& cursor) {
  (void)cursor.peek();
  const std::string_view text = cursor.text();
  size_t at = cursor.at();
  const auto quote = [&] {
    for (const std::string_view spelling : {"\"", "'", "\\\"", "\\22"})
      if (text.substr(at, spelling.size()) == spelling) {
        at += spelling.size();
        return;
      }
    cursor.go_to(at);
    cursor.refuse(
        bad_input("the name of an axis in quotes is missing: there is {}", cursor.seen()));
  };
  quote();
  const size_t begin = at;
  at = std::min(text.find_first_of("\"'\\\n", begin), text.size());
  std::string name(text.substr(begin, at - begin));
  quote();
  cursor.go_to(at);
  return name;
}

// "a":(2)4
AxisPart axis_part(Cursor& cursor) {
  AxisPart part = {quoted_name(cursor)};
  if (!cursor.accept(":")) return part;
  cursor.expect("(", "a part of an axis");
  part.before = cursor.integer();
  cursor.expect(")", "the size before a part of an axis");
  part.size = cursor.integer();
  if (part.size < 1) cursor.refuse(bad_input("a part of an axis has the size {}", part.size));
  return part;
}

// Calls `item` between commas up to the closing bracket.
template <class Item>
void listed(Cursor& cursor, std::string_view open, std::string_view close, const Item& item) {
  cursor.expect(open, "a sharding");
  while (!cursor.accept(close)) {
    item();
    if (!cursor.accept(",") && !cursor.sees(close)) cursor.expect(close, "a sharding");
  }
}

std::vector<MeshAxis> mesh_axes(Cursor& cursor) {
  std::vector<MeshAxis> axes;
  listed(cursor, "[", "]", [&] {
    MeshAxis& axis = axes.emplace_back();
    axis.name = quoted_name(cursor);
    cursor.expect("=", "the name of an axis");
    axis.size = cursor.integer();
    if (axes.size() > kMostMeshAxes)
      cursor.refuse(over_limit("a mesh has more than {} axes", kMostMeshAxes));
  });
  return axes;
}

// "<["a"=2], device_ids=[1, 0]>"
Mesh mesh_body(Cursor& cursor) {
  Mesh mesh;
  const size_t at = cursor.at();
  cursor.expect("<", "a mesh");
  mesh.axes = mesh_axes(cursor);
  if (cursor.accept(",")) {
    if (!cursor.accept_word("device_ids")) cursor.expect("device_ids", "the axes of a mesh");
    cursor.expect("=", "device_ids");
    listed(cursor, "[", "]", [&] { mesh.devices.push_back(cursor.integer()); });
  }
  cursor.expect(">", "a mesh");
  if (Status good = check(mesh); !good.ok()) cursor.refuse(at, std::move(good).error());
  return mesh;
}

// Tiles of an iota follow each other in parts of the axis. Empty: a size cuts an axis unevenly.
std::optional<std::vector<std::vector<AxisPart>>> parts_of_tiles(const DeviceList& list) {
  std::vector<AxisPart> left;  // in the order in which tiles take them, the outermost first
  for (const int64_t axis : list.order) {
    const auto end = list.source.begin() + axis;
    const int64_t before =
        std::accumulate(list.source.begin(), end, int64_t{1}, std::multiplies<>());
    if (*end > 1) left.push_back({"d", before, *end});
  }
  std::vector<std::vector<AxisPart>> parts(list.dims.size());
  size_t next = 0;
  for (size_t i = 0; i < list.dims.size(); ++i)
    for (int64_t need = list.dims[i]; need > 1;) {
      AxisPart& from = left[next];
      const int64_t taken = std::gcd(need, from.size);
      if (taken == 1 || (taken != need && taken != from.size)) return std::nullopt;
      std::vector<AxisPart>& made = parts[i];
      if (!made.empty() && made.back().before * made.back().size == from.before)
        made.back().size *= taken;
      else
        made.push_back({"d", from.before, taken});
      need /= taken;
      from.before *= taken;
      from.size /= taken;
      if (from.size == 1) ++next;
    }
  return parts;
}

// Parts of the one axis of all devices, as axes of a mesh. Empty: they cut its axes unevenly.
std::optional<std::vector<DimSharding>> on_axes(const Mesh& mesh, std::vector<DimSharding> dims) {
  for (DimSharding& dim : dims) {
    std::vector<AxisPart> made;
    for (const AxisPart& part : dim.axes) {
      int64_t before = 1;  // the axes so far
      for (const MeshAxis& axis : mesh.axes) {
        const int64_t end = before * axis.size;
        const int64_t from = std::max(before, part.before);
        const int64_t to = std::min(end, part.before * part.size);
        if (from < to) {
          if (from % before != 0 || to % from != 0 || end % to != 0) return std::nullopt;
          made.push_back({axis.name, from / before, to / from});
        }
        before = end;
      }
    }
    dim.axes = std::move(made);
  }
  return dims;
}

}  // namespace

// ---- Meshes -------------------------------------------------------------------------------------

MeshRef read_mesh(const Program& program, size_t offset, std::string_view name) {
  Cursor cursor(program);
  cursor.go_to(offset);
  Mesh mesh = mesh_body(cursor);
  mesh.name = name;
  return std::make_shared<const Mesh>(std::move(mesh));
}

std::vector<MeshRef> read_meshes(const Program& program, size_t offset) {
  Cursor cursor(program);
  cursor.go_to(offset);
  std::vector<MeshRef> meshes;
  listed(cursor, "{", "}", [&] {
    const std::string_view name = cursor.need_word("the name of a mesh", true);
    cursor.expect("=", "the name of a mesh");
    cursor.expect("#", "the name of a mesh");
    if (!cursor.accept_word("sdy.mesh")) cursor.expect("sdy.mesh", "#");
    Mesh mesh = mesh_body(cursor);
    mesh.name = name;
    meshes.push_back(std::make_shared<const Mesh>(std::move(mesh)));
    if (meshes.size() > kMostMeshes)
      cursor.refuse(over_limit("there are more than {} meshes", kMostMeshes));
  });
  return meshes;
}

MeshRef ShardingReader::named(std::string_view name) const {
  for (const MeshRef& mesh : meshes_)
    if (mesh->name == name) return mesh;
  cursor_.refuse(bad_input("the mesh '{}' is not declared", excerpt(name)));
}

// The one that the program declares, or a new one.
MeshRef ShardingReader::mesh_of(std::vector<MeshAxis> axes, std::vector<int64_t> devices,
                                std::string_view wanted) {
  Mesh mesh = {"", std::move(axes), std::move(devices)};
  const auto is_taken = [&] {
    return std::ranges::any_of(meshes_, [&](const MeshRef& one) { return one->name == mesh.name; });
  };
  for (const MeshRef& one : meshes_)
    if (one->axes == mesh.axes && one->devices == mesh.devices) return one;
  if (meshes_.size() >= kMostMeshes)
    cursor_.refuse(over_limit("there are more than {} meshes", kMostMeshes));
  mesh.name = wanted;
  for (size_t i = meshes_.size(); is_taken(); ++i) mesh.name = fmt::format("{}_{}", wanted, i);
  if (Status good = check(mesh); !good.ok()) cursor_.refuse(std::move(good).error());
  return meshes_.emplace_back(std::make_shared<const Mesh>(std::move(mesh)));
}

MeshRef ShardingReader::only_mesh(int64_t devices) const {
  MeshRef only;
  for (size_t i = 0; i < declared_; ++i) {
    const bool says_nothing = meshes_[i]->axes.empty() && meshes_[i]->devices.empty();
    if (says_nothing || meshes_[i]->single_device()) continue;
    if (only != nullptr) return nullptr;
    only = meshes_[i];
  }
  const bool fits = only != nullptr && only->devices.empty() && only->device_count() == devices;
  return fits ? only : nullptr;
}

MeshRef ShardingReader::of_devices(Ints devices) {
  const auto count = static_cast<int64_t>(devices.size());
  Ints plain(devices.size());
  std::iota(plain.begin(), plain.end(), 0);
  if (devices == plain) devices.clear();
  return mesh_of({{"d", count}}, std::move(devices), fmt::format("devices{}", count));
}

// ---- Shardings ----------------------------------------------------------------------------------

Sharding ShardingReader::whole(Type type) {
  MeshRef mesh = only_mesh(devices_);
  if (mesh == nullptr) mesh = mesh_of({{"d", devices_}}, {}, fmt::format("devices{}", devices_));
  return {.mesh = std::move(mesh),
          .dims = std::vector<DimSharding>(static_cast<size_t>(type.rank()))};
}

// "[{"a", ?}p1, {}]"
std::vector<DimSharding> ShardingReader::dims() {
  std::vector<DimSharding> all;
  listed(cursor_, "[", "]", [&] {
    DimSharding& dim = all.emplace_back();
    listed(cursor_, "{", "}", [&] {
      if (cursor_.accept("?"))
        dim.is_open = true;
      else
        dim.axes.push_back(axis_part(cursor_));
    });
    if (cursor_.peek() != 'p') return;
    const std::string_view word = cursor_.word();
    const Result<int64_t> priority = parse_int(word.substr(1));
    if (!priority.ok()) cursor_.refuse(bad_input("'{}' is no priority: p1", excerpt(word)));
    dim.priority = *priority;
  });
  return all;
}

// ", replicated={"c"}, unreduced={"d"}"
void ShardingReader::axis_lists(Sharding& made) {
  while (cursor_.accept(",")) {
    const std::string_view word = cursor_.need_word("'replicated' or 'unreduced'");
    if (word != "replicated" && word != "unreduced")
      cursor_.refuse(unsupported("'{}' in a sharding is not handled", excerpt(word)));
    cursor_.expect("=", word);
    std::vector<AxisPart>& list = word == "replicated" ? made.replicated : made.partial;
    listed(cursor_, "{", "}", [&] { list.push_back(axis_part(cursor_)); });
  }
}

// "<@m, [...], ...>", or with its word before it: "#sdy.sharding<@m, ...>"
Sharding ShardingReader::shardy(Type type) {
  Sharding made;
  if (cursor_.accept("#") && !cursor_.accept_word("sdy.sharding"))
    cursor_.expect("sdy.sharding", "#");
  cursor_.expect("<", "a sharding");
  if (cursor_.accept("@")) {
    const std::string_view word = cursor_.word(true);
    made.mesh = named(word.empty() ? quoted_name(cursor_) : word);
  } else if (cursor_.accept_word("mesh")) {
    Mesh mesh = mesh_body(cursor_);
    made.mesh = mesh_of(std::move(mesh.axes), std::move(mesh.devices), "mesh");
  } else {
    cursor_.refuse(bad_input("a mesh is missing: there is {}", cursor_.seen()));
  }
  cursor_.expect(",", "the mesh of a sharding");
  made.dims = dims();
  // One device has the whole value.
  if (made.dims.empty() && made.mesh->axes.empty())
    made.dims.resize(static_cast<size_t>(type.rank()));
  axis_lists(made);
  cursor_.expect(">", "a sharding");
  return made;
}

// Behind "devices=".
std::optional<Sharding> ShardingReader::tiles(Type type) {
  const size_t at = cursor_.at();
  DeviceList list = read_device_list(cursor_);
  size_t rest = 0;  // dims behind those of the value
  bool is_manual = false;
  while (cursor_.peek() != '}') {
    const std::string_view word = cursor_.need_word("'}' or more of a sharding");
    if (word == "last_tile_dim_replicate") {
      rest = 1;
    } else if (word == "last_tile_dims") {
      cursor_.expect("=", word);
      listed(cursor_, "{", "}", [&] {
        ++rest;
        is_manual = cursor_.need_word("a kind of dim") == "manual" || is_manual;
      });
    } else if (word == "shard_as" || word == "shard_like") {
      (void)cursor_.integer();
    } else {
      cursor_.refuse(unsupported("'{}' in a sharding is not handled", excerpt(word)));
    }
  }
  if (is_manual) return std::nullopt;
  const auto rank = static_cast<size_t>(type.rank());
  if (list.dims.size() != rank + rest)
    cursor_.refuse(
        at, bad_input("tiles of {} dims, {} of them behind those of the value, do not fit {}",
                      list.dims.size(), rest, type.to_string()));
  std::optional<std::vector<std::vector<AxisPart>>> parts;
  Sharding made;
  if (!list.source.empty()) {
    parts = parts_of_tiles(list);
    if (parts) std::iota(list.devices.begin(), list.devices.end(), 0);
  }
  const auto count = static_cast<int64_t>(list.devices.size());
  if (!parts) {
    list.source = {count};
    list.order = {0};
    parts = parts_of_tiles(list);
  }
  const bool is_in_order = std::ranges::is_sorted(list.devices);
  made.mesh = of_devices(std::move(list.devices));
  for (size_t i = 0; i < rank; ++i) {
    DimSharding& dim = made.dims.emplace_back();
    dim.axes = std::move((*parts)[i]);
  }
  if (const MeshRef only = only_mesh(count); only != nullptr && is_in_order)
    if (std::optional<std::vector<DimSharding>> dims = on_axes(*only, made.dims)) {
      made.mesh = only;
      made.dims = *std::move(dims);
    }
  for (DimSharding& dim : made.dims)
    for (AxisPart& part : dim.axes)
      if (part.before == 1 && part.size == made.mesh->find(part.axis)->size) part.size = 0;
  return made;
}

// Behind "mesh".
Sharding ShardingReader::mesh_form() {
  Sharding made;
  made.mesh = mesh_of(mesh_axes(cursor_), {}, "mesh");
  cursor_.expect(",", "the mesh of a sharding");
  made.dims = dims();
  axis_lists(made);
  return made;
}

// "{...}"
std::optional<Sharding> ShardingReader::hlo(Type type) {
  cursor_.expect("{", "a sharding");
  const size_t at = cursor_.at();
  const std::string_view word = cursor_.need_word("the form of a sharding");
  std::optional<Sharding> made;
  if (word == "replicated") {
    made = whole(type);
  } else if (word == "maximal") {
    if (!cursor_.accept_word("device")) cursor_.expect("device", word);
    cursor_.expect("=", "device");
    const int64_t device = cursor_.integer();
    made = {.mesh = mesh_of({}, {device}, fmt::format("device{}", device)),
            .dims = std::vector<DimSharding>(static_cast<size_t>(type.rank()))};
  } else if (word == "devices") {
    cursor_.expect("=", word);
    made = tiles(type);
  } else if (word == "mesh") {
    made = mesh_form();
  } else if (word != "manual" && word != "unknown") {
    cursor_.refuse(at, unsupported("the form '{}' of a sharding is not handled", excerpt(word)));
  }
  while (cursor_.peek() != '}') {
    const std::string_view more = cursor_.need_word("'}'");
    if (more != "shard_as" && more != "shard_like")
      cursor_.refuse(unsupported("'{}' in a sharding is not handled", excerpt(more)));
    (void)cursor_.integer();
  }
  cursor_.expect("}", "a sharding");
  return made;
}

std::vector<std::optional<Sharding>> ShardingReader::read(size_t offset,
                                                          std::span<const Type> types) {
  cursor_.go_to(offset);
  std::vector<std::optional<Sharding>> all;
  const auto next_type = [&] {
    if (all.size() == types.size())
      cursor_.refuse(offset,
                     bad_input("there are more shardings than the {} values", types.size()));
    return types[all.size()];
  };
  const bool is_hlo = cursor_.peek() == '{';
  if (cursor_.accept("#") && !cursor_.accept_word("sdy.sharding_per_value") &&
      !cursor_.accept_word("sdy.sharding"))
    cursor_.expect("sdy.sharding", "#");
  cursor_.accept("<");
  if (!is_hlo && cursor_.peek() == '[') {
    listed(cursor_, "[", "]", [&] { all.emplace_back(shardy(next_type())); });
  } else if (!is_hlo) {
    for (const Type type : types) {  // of all values
      cursor_.go_to(offset);
      all.emplace_back(shardy(type));
    }
  } else {
    cursor_.accept("{");
    const bool is_tuple = cursor_.peek() == '{';
    if (is_tuple) cursor_.go_to(offset);
    if (is_tuple) {
      listed(cursor_, "{", "}", [&] { all.push_back(hlo(next_type())); });
    } else {
      for (const Type type : types) {
        cursor_.go_to(offset);
        all.push_back(hlo(type));
      }
    }
  }
  if (all.size() != types.size())
    cursor_.refuse(offset,
                   bad_input("there are {} shardings of {} values", all.size(), types.size()));
  for (size_t i = 0; i < types.size(); ++i)
    if (all[i])
      if (Status good = check(*all[i], types[i]); !good.ok())
        cursor_.refuse(offset, std::move(good).error());
  return all;
}

}  // namespace hone::hlo
