#pragma once

#include <optional>

#include "ir/graph.h"
#include "shard/reshard.h"

// Writes what devices of a mesh exchange into the graph that all of them run.

namespace hone {

class MeshProgram {
 public:
  MeshProgram(Graph& graph, const Mesh& mesh) : graph_(graph), mesh_(mesh) {}

  // The value in another layout. `kind` combines partial values: sum, max or min.
  ValueId changed(ValueId value, const ReshardStep& step, std::string_view kind);

  ValueId append(Op op, std::span<const ValueId> operands);

 private:
  ValueId integer(int64_t number);
  ValueId binary(Opcode opcode, ValueId a, int64_t b);
  ValueId digit(const MeshPart& part);  // the place of the device along the part
  Graph& graph_;
  const Mesh& mesh_;
  std::optional<ValueId> device_;
};

// The devices that differ in their place along the part alone, group by group.
Ints groups_along(const Mesh& mesh, const MeshPart& part);

// The place along the part of the device with this number.
int64_t digit_of(const Mesh& mesh, const MeshPart& part, int64_t device);

}  // namespace hone
