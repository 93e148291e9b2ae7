#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "front/hlo/reader.h"
#include "ir/sharding.h"

// The shardings that programs state. Shardy's text stands in StableHLO, and in strings of HLO:
//   #sdy.sharding<@m, [{"a", ?}, {"b":(1)2}p1], replicated={"c"}, unreduced={"d"}>
//   #sdy.sharding_per_value<[<@m, [{}, {"a"}]>, ...]>
// HLO has three forms of its own:
//   {devices=[2,1,4]<=[8] last_tile_dim_replicate}   tiles of devices
//   {devices=[2,2]0,2,1,3}                           the same, the devices one after the other
//   {mesh['a'=2,'b'=4], [{'a'}, {'b':(1)2, ?}]}      a mesh
// and {replicated}, {maximal device=3}. {manual} and {unknown} say nothing.
//
// Tiles become parts of the one axis of a mesh of all devices: {devices=[2,4]<=[8]} is
//   mesh @devices8 = [d = 8], on @devices8 [d:(1)2, d:(2)4]
// A program that declares one mesh of all devices means that one: with [x = 2, y = 4], [x, y].

namespace hone::hlo {

// "<["a"=2], device_ids=[1, 0]>"
MeshRef read_mesh(const Program& program, size_t offset, std::string_view name);
// "{m = #sdy.mesh<["a"=2]>, ...}"
std::vector<MeshRef> read_meshes(const Program& program, size_t offset);

class ShardingReader {
 public:
  // The meshes that the program declares, and the number of its devices.
  ShardingReader(const Program& program, std::vector<MeshRef> meshes, int64_t devices)
      : cursor_(program),
        meshes_(std::move(meshes)),
        declared_(meshes_.size()),
        devices_(devices) {}

  // The text at the offset says something about values of these types, or about each of them. None:
  // nothing. Errors are thrown.
  std::vector<std::optional<Sharding>> read(size_t offset, std::span<const Type> types);

 private:
  MeshRef named(std::string_view name) const;
  MeshRef mesh_of(std::vector<MeshAxis> axes, std::vector<int64_t> devices,
                  std::string_view wanted);
  MeshRef of_devices(Ints devices);
  // The one mesh that the program declares, if it has all devices in order; else null.
  MeshRef only_mesh(int64_t devices) const;
  Sharding whole(Type type);
  Sharding shardy(Type type);
  std::optional<Sharding> hlo(Type type);
  std::optional<Sharding> tiles(Type type);
  Sharding mesh_form();
  std::vector<DimSharding> dims();
  void axis_lists(Sharding& made);

  Cursor cursor_;
  std::vector<MeshRef> meshes_;
  size_t declared_;  // of these; the others are made for tiles
  int64_t devices_;
};

}  // namespace hone::hlo
