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
  // On the first device along the axes the value, on others `fill`.
  ValueId on_first(ValueId value, const MeshParts& axes, ValueId fill);
  // All elements that the results of a device need. Elements that the operand does not have become
  // `fill`; without one they do not matter.
  ValueId with_neighbours(ValueId value, const Halo& halo, std::optional<ValueId> fill);

  // The part of a device of a running sum, product, max or min along the dim, combined with all
  // that stands before it. It runs over the elements of `operand`.
  ValueId with_earlier(ValueId running, ValueId operand, size_t dim, const MeshParts& axes, Op op);
  // The part of a device of a concat along `dim`, from its parts of the operands.
  ValueId joined(std::span<const ValueId> parts, size_t dim, std::span<const Stretch> stretches);
  // The elements that follow from their places: the part of a device of iota or of random bits.
  ValueId generated(Op local, std::span<const ValueId> operands, const ShardLayout& layout);

  ValueId append(Op op, std::span<const ValueId> operands);
  ValueId cast(ValueId value, DType dtype);  // the value itself, if it has the type
  ValueId number(DType dtype, std::variant<int64_t, double> value);  // of rank 0
  // Combined with any number of the type, -0 among them, it changes nothing: of sum, max or min.
  ValueId neutral(std::string_view kind, DType dtype);
  ValueId constant(const Tensor& tensor) { return graph_.add_constant(tensor); }
  Type type(ValueId value) const { return graph_.type(value); }

  // i64: of rank 0; 0, 1, ... along one dim; the place of the device along the parts, the first the
  // outermost.
  ValueId integer(int64_t number);
  ValueId counted(int64_t count);
  ValueId place(const MeshParts& parts);
  ValueId binary(Opcode opcode, ValueId a, int64_t b);
  // The dims of the value are those of `map`; along others it is repeated.
  ValueId spread(ValueId value, const Dims& dims, const Ints& map);

 private:
  ValueId digit(const MeshPart& part);  // the place of the device along the part
  ValueId stretch(ValueId value, size_t dim, ValueId begin, int64_t size);
  ValueId stretch(ValueId value, size_t dim, int64_t begin, int64_t end);
  ValueId exchanged(const Op& op, ValueId value, int64_t parts);
  // From and to members of the groups along the axes.
  ValueId sent(ValueId value, const MeshParts& axes, const Ints& pairs);
  ValueId sent(ValueId value, const MeshParts& axes, int64_t hop);
  ValueId mirrored(ValueId value, size_t dim, const MeshParts& axes);
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
// The place of a device's part: how many elements of the dim stand before it.
int64_t first_element(const Mesh& mesh, const MeshParts& axes, int64_t size, int64_t device);
// The exchange of a step; a slice has none.
MeshExchange exchange_of(const Mesh& mesh, const ReshardStep& step, int64_t element_bytes);

}  // namespace hone
