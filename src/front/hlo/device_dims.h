#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "front/hlo/importer.h"

// A program of one device becomes one of all. A value that may differ among the devices along an
// axis of their mesh gets a dim for this axis in front, its device dim:
//   all_reduce along the axis     reduces the device dim
//   all_gather along dim i        joins it with dim i
//   other ops                     have a dim more, in which they do the same for each element
// Shardings give each device its own element of the device dims, so that it computes as before.
//
// Values and ops are in device_dims.cc, regions in device_control.cc, exchanges in
// device_exchanges.cc.

namespace hone::hlo {

using AxisSet = uint64_t;  // bit i: axis i of a mesh
inline constexpr size_t kMostManualAxes = 62;

// The device dims stand in the order of the mesh.
struct Differing {
  Value value = {};
  AxisSet axes = 0;  // along which devices may have different elements
};

// Devices that exchange values: those along some axes, in this order of their numbers.
struct Members {
  AxisSet axes = 0;
  std::vector<size_t> order = {};  // the outermost first
};

class DeviceDims {
 public:
  // `manual`: the axes along which the program is that of one device. Errors are told by the node.
  DeviceDims(Node& node, MeshRef mesh, AxisSet manual)
      : node_(node), mesh_(std::move(mesh)), manual_(manual) {}

  // The part of each device, as a sharding divides the value along manual axes; and back.
  Differing parts_of(Value whole, const Sharding& divided);
  Value whole_of(Differing part, const Sharding& divided);
  Type local_type(const Differing& part) const;  // without device dims
  // The part, with its device dims, is divided so by the other axes.
  Sharding of_part(const Sharding& divided, AxisSet axes) const;

  // The program for all devices. `said` gets what it says of its values.
  std::vector<Differing> run(Builder& to, const Graph& program,
                             std::span<const Differing> arguments, Shardings& said);

 private:
  struct Application {
    Builder& to;
    const Graph& graph;
    NodeId n;
    std::vector<Differing> operands;

    Op op() const { return graph.op(n); }
    AxisSet axes() const;  // of all operands
  };

  [[noreturn]] void refuse(const Application& at, Error error) const;
  Dims sizes(AxisSet axes) const;
  Members members(AxisSet axes) const;
  // The axes of one dim that are manual; an error if others stand before them.
  Members manual_members(const DimSharding& dim) const;
  Differing aligned(Differing v, AxisSet axes);
  std::vector<Value> aligned(std::span<const Differing> all, AxisSet axes);
  // Cuts dim `split` into a part for each member, and joins those of all along dim `join`.
  Differing moved(Differing v, const Members& members, std::optional<int64_t> split,
                  std::optional<int64_t> join);
  Differing first(Differing v, AxisSet axes);  // the elements of the first devices along them
  Sharding with_device_dims(const Sharding& own, AxisSet axes) const;
  Type with_device_dims(Type local, AxisSet axes) const;

  std::vector<Differing> node(Application at);
  std::vector<Differing> regular(Application& at);
  Differing convolution(Application& at);
  Differing dynamic_slice(Application& at);
  Differing dynamic_update(Application& at);
  Value starts(Application& at, size_t first, AxisSet axes);
  std::optional<std::vector<Value>> common_starts(Application& at, size_t first);
  // One device after the other, as a loop.
  std::vector<Differing> in_turn(Application& at);

  GraphRef region(Application& at, size_t which, std::span<const AxisSet> arguments,
                  std::vector<AxisSet>& results);
  std::vector<Differing> branch(Application& at);
  std::vector<Differing> loop(Application& at);
  std::vector<Differing> scan(Application& at);

  Members members_of(Application& at);
  Differing device_index(Application& at);
  Differing permute(Application& at);
  std::vector<Differing> collective(Application& at);

  Node& node_;
  MeshRef mesh_;
  AxisSet manual_;
};

}  // namespace hone::hlo
