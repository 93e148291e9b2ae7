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
// device_exchanges.cc. The program that states values on single devices is in single_devices.cc.

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

// Where errors are told.
struct Teller {
  const Importer& importer;
  size_t offset = 0;
  std::string_view op = {};  // "": none

  [[noreturn]] void refuse(Error error) const;
};

class DeviceDims {
 public:
  // `manual`: the axes along which the program is that of one device. Along others its values may
  // differ only where they depend on the number of a device, and their results may not.
  DeviceDims(Teller teller, MeshRef mesh, AxisSet manual)
      : teller_(teller), mesh_(std::move(mesh)), manual_(manual) {}

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
  // The elements of the devices that stand along these axes where the one of this place stands.
  Differing of_place(Differing v, AxisSet axes, int64_t place);
  // The place in the mesh of the device that has all results of the node, or the value. None: the
  // program names no such device.
  std::optional<int64_t> place_of(const Graph& program, NodeId n) const;
  std::optional<int64_t> place_of(const Graph& program, ValueId v) const;
  int64_t place_of(const Mesh& single) const;
  // `place`: of the device that has the value.
  Differing without_open_axes(Differing v, std::optional<int64_t> place, Contents& contents);
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

  const Teller teller_;
  MeshRef mesh_;
  AxisSet manual_;
};

// A program of several devices that states values on single ones. A value that depends on the
// number of its device is what the device that has it computes. Other programs stay as they are.
Graph with_single_devices(Graph graph, const Teller& teller);

}  // namespace hone::hlo
