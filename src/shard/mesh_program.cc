#include "shard/mesh_program.h"

#include <algorithm>

namespace hone {
namespace {

// The part of the axis is number / divisor % size.
int64_t divisor_of(const Mesh& mesh, const MeshPart& part) {
  int64_t divisor = mesh.axes[part.axis].size / part.end();
  for (size_t i = part.axis + 1; i < mesh.axes.size(); ++i) divisor *= mesh.axes[i].size;
  return divisor;
}

}  // namespace

int64_t digit_of(const Mesh& mesh, const MeshPart& part, int64_t device) {
  return device / divisor_of(mesh, part) % part.size;
}

ValueId MeshProgram::append(Op op, std::span<const ValueId> operands) {
  const Result<NodeId> made = graph_.append(op, operands);
  HONE_CHECK(made.ok(), "an exchange does not fit: {}", made.error().to_string());
  return graph_.result(*made);
}

ValueId MeshProgram::integer(int64_t number) {
  return graph_.add_constant(Tensor::from_integers(Type::scalar(DType::i64), {&number, 1}));
}

ValueId MeshProgram::binary(Opcode opcode, ValueId a, int64_t b) {
  const ValueId operands[] = {a, integer(b)};
  return append(Op::get(opcode), operands);
}

ValueId MeshProgram::digit(const MeshPart& part) {
  if (!device_) device_ = append(Op::get(Opcode::device_index), {});
  return binary(Opcode::rem, binary(Opcode::div, *device_, divisor_of(mesh_, part)), part.size);
}

Ints groups_along(const Mesh& mesh, const MeshPart& part) {
  const int64_t devices = mesh.device_count(), divisor = divisor_of(mesh, part);
  Ints ids;
  for (int64_t first = 0; first < devices; ++first)
    if (digit_of(mesh, part, first) == 0)
      for (int64_t k = 0; k < part.size; ++k) ids.push_back(first + k * divisor);
  return ids;
}

ValueId MeshProgram::changed(ValueId value, const ReshardStep& step, std::string_view kind) {
  const auto from = static_cast<int64_t>(step.from), to = static_cast<int64_t>(step.to);
  const int64_t size = step.part.size;
  const ValueId operand[] = {value};
  switch (step.kind) {
    case ReshardKind::slice: {
      const Type type = graph_.type(value);
      Dims sizes(type.dims().begin(), type.dims().end());
      const int64_t local = sizes[step.to].value() / size;
      sizes[step.to] = local;
      std::vector<ValueId> operands = {value};
      for (size_t d = 0; d < sizes.size(); ++d)
        operands.push_back(d == step.to ? binary(Opcode::mul, digit(step.part), local)
                                        : integer(0));
      return append(Op::get(Opcode::dynamic_slice, {{"sizes", sizes}}), operands);
    }
    case ReshardKind::all_gather:
      return append(Op::get(Opcode::all_gather, {{"axis", from},
                                                 {"group_size", size},
                                                 {"groups", groups_along(mesh_, step.part)}}),
                    operand);
    case ReshardKind::all_to_all:
      return append(Op::get(Opcode::all_to_all, {{"split_axis", to},
                                                 {"concat_axis", from},
                                                 {"group_size", size},
                                                 {"groups", groups_along(mesh_, step.part)}}),
                    operand);
    case ReshardKind::reduce_scatter:
      return append(Op::get(Opcode::reduce_scatter, {{"kind", std::string(kind)},
                                                     {"axis", to},
                                                     {"group_size", size},
                                                     {"groups", groups_along(mesh_, step.part)}}),
                    operand);
    case ReshardKind::all_reduce:
      return append(Op::get(Opcode::all_reduce, {{"kind", std::string(kind)},
                                                 {"group_size", size},
                                                 {"groups", groups_along(mesh_, step.part)}}),
                    operand);
  }
  return value;
}

}  // namespace hone
