#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// The program that all devices of a mesh run (shard/partition.h), as nodes of each device in one
// graph. An exchange becomes values that devices read of each other, for cut_graph().

namespace hone {

// A graph, and the device that has each of its nodes.
struct NodesOnDevices {
  Graph graph = Graph();
  std::vector<int32_t> device_of = {};

  // The only results of new nodes.
  ValueId parameter(int32_t device, Type type, std::string_view name);
  ValueId constant(int32_t device, const Tensor& tensor);
  ValueId append(int32_t device, Op op, std::span<const ValueId> operands);
  // Elements [begin, end) of a dim.
  ValueId stretch(int32_t device, ValueId value, size_t dim, int64_t begin, int64_t end);
  ValueId joined(int32_t device, std::span<const ValueId> values, size_t dim);
};

// Devices of a stage exchange nothing within a loop or a branch.
Error inner_exchange(const Graph& graph, NodeId n);

class DeviceNodes {
 public:
  // `devices` are those of the mesh, by their place in it.
  DeviceNodes(const Graph& program, std::vector<int32_t> devices, NodesOnDevices& made);

  const Graph& program() const { return program_; }
  std::span<const int32_t> devices() const { return devices_; }

  bool has(ValueId v) const { return !values_[v.index].empty(); }
  // The part that each device has of a value of the program.
  std::span<const ValueId> of(ValueId v) const { return values_[v.index]; }
  void define(ValueId v, std::vector<ValueId> by_place) { values_[v.index] = std::move(by_place); }

  // Adds a node of the program for each device; its operands are there. Parameters are defined by
  // others. Unsupported: inner_exchange().
  Status add(NodeId n);

 private:
  using Members = std::vector<size_t>;  // places in the mesh

  Status copy(NodeId n);
  void numbers(std::vector<ValueId>& made);
  void exchange(NodeId n, const Members& group, std::vector<ValueId>& made);
  std::vector<Members> groups(Op op) const;
  ValueId gathered(ValueId v, const Members& group, size_t place, size_t dim);
  ValueId combined(Op op, std::span<const ValueId> summands, size_t place);
  void all_reduce(NodeId n, const Members& group, std::vector<ValueId>& made);
  void permute(NodeId n, std::vector<ValueId>& made);
  // Part number `index` of the parts along the dim that the devices of the group have, each cut
  // where it is.
  std::vector<ValueId> parts(ValueId v, const Members& group, size_t dim, size_t index);

  const Graph& program_;
  const std::vector<int32_t> devices_;
  NodesOnDevices& made_;
  std::vector<std::vector<ValueId>> values_;  // by value of the program, by place
};

}  // namespace hone
