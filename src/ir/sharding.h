#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "tensor/type.h"

// How values are divided among devices: data that a graph carries, and that changes no number.
//
// Devices form a mesh, a grid whose axes have names:
//   mesh @m = [x = 2, y = 4]
// A sharding says for each dim of a value which axes divide it:
//   on @m [x, -]              each row of devices has half of dim 0, and all of dim 1
//   on @m [y x, -]            dim 0 in 8 parts; x is the innermost
//   on @m [x open, open]      others may add axes to a dim that is open
//   on @m [y:(2)2, -]         a part of an axis: y is a grid of 2 x 2, of which the second divides
//   on @m [x priority 1, -]   propagated behind those of priority 0
//   on @m [x, -] replicated [y]     y must divide no dim
//   on @m [x, -] partial sum [y]    the devices along y hold summands of the value
//   on @m [open, -] group 1         divided like all other values of this group
//   on @m [open, -] passes forward  no axes go from the value to the operands of its node
// Where the size of a dim does not divide, the last devices have less.
//
// A mesh may be one device of several: mesh @second = [] devices [1]. A value on it is whole, and
// so it is for all who read it.

namespace hone {

struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Mesh {
  std::string name;
  std::vector<MeshAxis> axes;
  std::vector<int64_t> devices = {};  // row-major over the axes; empty: 0, 1, 2, ...

  int64_t device_count() const;
  const MeshAxis* find(std::string_view axis) const;  // null: there is none
  // The number of the device, if the mesh is one device of several.
  std::optional<int64_t> single_device() const;
  bool operator==(const Mesh&) const = default;
};
using MeshRef = std::shared_ptr<const Mesh>;

// An axis, or a part of it: the axis is a grid of before x size x rest.
struct AxisPart {
  std::string axis;
  int64_t before = 1;
  int64_t size = 0;  // 0: the whole axis
  bool operator==(const AxisPart&) const = default;
};

struct DimSharding {
  std::vector<AxisPart> axes = {};  // the first one is the outermost
  bool is_open = false;
  int64_t priority = 0;  // 0 is the highest
  bool operator==(const DimSharding&) const = default;
};

enum class PartialKind : uint8_t { sum, max, min };
std::string_view name(PartialKind kind);

// Which way axes go between the value and the operands of the node that makes it.
enum class AxisPassage : uint8_t { both, forward, backward, none };
std::string_view name(AxisPassage passage);

struct Sharding {
  MeshRef mesh;
  std::vector<DimSharding> dims = {};
  std::vector<AxisPart> replicated = {};
  PartialKind partial_kind = PartialKind::sum;
  std::vector<AxisPart> partial = {};
  int64_t group = -1;  // -1: none
  AxisPassage passage = AxisPassage::both;

  bool operator==(const Sharding& other) const;
};

// All that a graph says.
struct Shardings {
  // In the order of the values. The first one of a value holds where the value is made. Others are
  // those that the program asks for later.
  std::vector<std::pair<ValueId, Sharding>> values;
  std::vector<std::pair<uint32_t, Sharding>> outputs;  // in their order; at most one each

  void add(ValueId value, Sharding sharding);  // not twice the same
  void set_output(uint32_t output, Sharding sharding);
  std::vector<const Sharding*> of(ValueId value) const;
  const Sharding* of_output(uint32_t output) const;  // null: nothing is said
  bool empty() const { return values.empty() && outputs.empty(); }
  bool operator==(const Shardings&) const = default;
};

inline constexpr int64_t kMostMeshDevices = 1 << 20;
inline constexpr size_t kMostMeshes = 4096;        // of a file
inline constexpr size_t kMostMeshAxes = 4096;      // of a mesh
inline constexpr size_t kMostValueShardings = 64;  // of a value

// Errors: axes without a size or with one name, devices that the axes do not count.
Status check(const Mesh& mesh);
// Errors: another number of dims, axes that the mesh lacks, parts that do not divide their axis,
// axes that are used twice.
Status check(const Sharding& sharding, Type type);
// The same for all of a graph. Meshes of one name must be equal, also those in `meshes`.
Status check_shardings(const Graph& graph, std::vector<MeshRef>& meshes);

// The meshes of the graph and its regions, in order of appearance.
std::vector<MeshRef> meshes_of(const Graph& graph);

// "[x = 2, y = 4]", "[x = 2] devices [1, 0]"
std::string axes_text(const Mesh& mesh);
// "[x, y:(2)2 open] replicated [z]"
std::string dims_text(const Sharding& sharding);
// The text of dims_text() for a value of this type, on a mesh.
Result<Sharding> parse_sharding(std::string_view text, MeshRef mesh, Type type);
// False: the word means something in a sharding, so an axis of this name is quoted.
bool is_plain_axis(std::string_view name);

}  // namespace hone
