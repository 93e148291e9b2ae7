#pragma once

#include <optional>
#include <variant>

#include "ir/graph.h"
#include "shard/halo.h"
#include "shard/reshard.h"

// Writes what devices of a mesh exchange into the graph that all of them run.

namespace hone {

class MeshProgram {
 public:
  MeshProgram(Graph& graph, const Mesh& mesh) : graph_(graph), mesh_(mesh) {}

  // The value in another layout. `kind` combines partial values: sum, max or min.
  ValueId changed(ValueId value, const ReshardStep& step, std::string_view kind);

  // The dim longer, by zeros at its end, or shorter.
  ValueId resized(ValueId value, size_t dim, int64_t size);
  // Parts along the axes of a dim of `size` elements: what is behind these becomes `fill`, a value
  // of rank 0.
  ValueId without_padding(ValueId value, size_t dim, const MeshParts& axes, int64_t size,
                          ValueId fill);
  // All elements that the results of a device need. Elements that the operand does not have become
  // `fill`; without one they do not matter.
  ValueId with_neighbours(ValueId value, const Halo& halo, std::optional<ValueId> fill);

  ValueId append(Op op, std::span<const ValueId> operands);
  ValueId number(DType dtype, std::variant<int64_t, double> value);  // of rank 0

 private:
  ValueId integer(int64_t number);
  ValueId binary(Opcode opcode, ValueId a, int64_t b);
  ValueId digit(const MeshPart& part);    // the place of the device along the part
  ValueId place(const MeshParts& parts);  // the same along several, the first the outermost
  ValueId stretch(ValueId value, size_t dim, ValueId begin, int64_t size);
  ValueId stretch(ValueId value, size_t dim, int64_t begin, int64_t end);
  ValueId exchanged(const Op& op, ValueId value, int64_t parts);
  ValueId sent(ValueId value, const MeshParts& axes, int64_t hop);
  ValueId filled(ValueId value, size_t dim, ValueId first, bool at_low, std::optional<int64_t> size,
                 ValueId fill);
  Graph& graph_;
  const Mesh& mesh_;
  std::optional<ValueId> device_;
};

// The devices that differ in their place along these parts alone, group by group, by that place.
Ints groups_along(const Mesh& mesh, const MeshParts& parts);

// The place along the part of the device with this number is number / divisor % size.
int64_t divisor_of(const Mesh& mesh, const MeshPart& part);
int64_t digit_of(const Mesh& mesh, const MeshPart& part, int64_t device);

}  // namespace hone
