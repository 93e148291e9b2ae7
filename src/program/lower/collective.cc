#include "plan/collectives.h"

#include "ir/functional.h"
#include "ir/op_def.h"
#include "program/lower/lowering.h"
#include "shard/whole_bytes.h"

namespace hone::program {

namespace {

// ---- Without exchange ---------------------------------------------------------------------------

// A permute of device 0 with itself exchanges nothing, but other devices get zeros. It asks for
// the device in place of a transport, so that one device runs it alone.
Status add_permute_of_first(Lowering& whole, FrameBuilder& outer, const NodeCommand& command) {
  const Type type = outer.type(command.inputs[0]);
  FrameBuilder inner(whole, whole.frame_name(fmt::format("{}.{}", outer.name(), command.name)));
  const BufferId x = inner.add("x", type, Role::input);
  const BufferId y = inner.add(outer.name(command.outputs[0]), type, Role::output);
  const BufferId device = inner.add("device", Type::scalar(DType::i64), Role::temporary);
  inner.command(inner.name(device), DeviceIndex{device});

  Builder b;
  const Value own = b.parameter("x", type);
  const Value is_first = compare("eq", b.parameter("device", DType::i64, {}), 0);
  const Value chosen = select(is_first, own, b.scalar(type.dtype(), 0));
  const KernelId kernel = HONE_TRY(whole.kernel(HONE_TRY(b.finish({chosen}))));
  inner.command(inner.name(y), Launch{kernel, {x, device}, {y}});
  outer.command(command.name,
                Call{std::move(inner).finish(), {command.inputs[0]}, {command.outputs[0]}});
  return {};
}

// A group of one device has its own; a permute without pairs gives zeros.
Status add_alone(Lowering& whole, FrameBuilder& frame, const NodeCommand& command) {
  const BufferId result = command.outputs[0];
  const SpmdCollective spmd = spmd_of(command.op());
  if (spmd.kind != CollectiveKind::permute) {
    frame.copy(command.inputs[0], result);
    return {};
  }
  if (!spmd.pairs.empty()) return add_permute_of_first(whole, frame, command);
  const BufferId zero =
      frame.add_constant(frame.name(result) + ".zero", Tensor::zeros(frame.type(result)));
  frame.copy(zero, result);
  return {};
}

// ---- For several --------------------------------------------------------------------------------

Dim product(std::span<const Dim> dims) {
  Dim elements = 1;
  for (Dim dim : dims) elements = elements * dim;
  return elements;
}

// The parts of members along an axis, as [outer, members, inner] elements. In memory that is sent
// or received, they stand as [members, outer, inner].
struct Parts {
  Dim outer = 1;
  Dim members = 1;
  Dim inner = 1;

  // `type` has all members' parts along the axis.
  static Parts of(Type type, int64_t axis, int64_t members) {
    const auto at = static_cast<size_t>(axis);
    const Dim inner = product(type.dims().subspan(at));
    return {product(type.dims().first(at)), members, *inner.divided_by(members)};
  }
  bool are_in_order() const { return outer == Dim(1) || members == Dim(1); }
  Type along_axis(DType dtype) const { return Type::get(dtype, Dims{outer, members, inner}); }
  Type by_member(DType dtype) const { return Type::get(dtype, Dims{members, outer, inner}); }
};

// A collective whose parts do not all lie in order, in a frame of its own: a kernel brings them
// there before it, or where they belong behind it.
class Rearranged {
 public:
  Rearranged(Lowering& whole, FrameBuilder& outer, const NodeCommand& command)
      : whole_(whole),
        outer_(outer),
        command_(command),
        inner_(whole, whole.frame_name(fmt::format("{}.{}", outer.name(), command.name))),
        dtype_(outer.type(command.inputs[0]).dtype()) {}

  Status add(const SpmdCollective& spmd, const std::optional<Parts>& sent,
             const std::optional<Parts>& received) {
    const BufferId x = inner_.add("x", outer_.type(command_.inputs[0]), Role::input);
    const BufferId y = inner_.add(outer_.name(command_.outputs[0]),
                                  outer_.type(command_.outputs[0]), Role::output);
    BufferId from = x, to = y;
    if (sent) {
      from = inner_.add("sent", sent->by_member(dtype_), Role::temporary);
      const BufferId rows = inner_.add_view("x.parts", sent->along_axis(dtype_), x, 0);
      HONE_TRY(swap(rows, from, sent->along_axis(dtype_)));
    }
    if (received) to = inner_.add("received", received->by_member(dtype_), Role::temporary);
    inner_.command(command_.name, Start{spmd, from, to});
    if (received) {
      const BufferId rows =
          inner_.add_view(inner_.name(y) + ".parts", received->along_axis(dtype_), y, 0);
      HONE_TRY(swap(to, rows, received->by_member(dtype_)));
    }
    outer_.command(command_.name,
                   Call{std::move(inner_).finish(), {command_.inputs[0]}, {command_.outputs[0]}});
    return {};
  }

 private:
  // Swaps the first two dims.
  Status swap(BufferId from, BufferId to, Type type) {
    Graph graph;
    const ValueId x = graph.add_parameter(type);
    const NodeId node = HONE_TRY(
        graph.append(Op::get(Opcode::transpose, {{"permutation", Ints{1, 0, 2}}}), std::vector{x}));
    graph.set_outputs({graph.result(node)});
    const KernelId kernel = HONE_TRY(whole_.kernel(std::move(graph)));
    inner_.command(inner_.name(to), Launch{kernel, {from}, {to}});
    return {};
  }

  Lowering& whole_;
  FrameBuilder& outer_;
  const NodeCommand& command_;
  FrameBuilder inner_;
  const DType dtype_;
};

Status check_bytes(const NodeCommand& command, Type type, int64_t parts) {
  if (fills_bytes(type, parts)) return {};
  return unsupported("parts of {} do not fill whole bytes, as devices exchange them",
                     type.to_string())
      .within(command.graph.describe(command.node))
      .with_hint("cast to elements of 8 bits before the exchange");
}

Status add_exchange(Lowering& whole, FrameBuilder& frame, const NodeCommand& command) {
  const Op op = command.op();
  SpmdCollective spmd = spmd_of(op);
  spmd.schedule = command.schedule;
  const Type from = frame.type(command.inputs[0]), to = frame.type(command.outputs[0]);
  const auto parts_of = [&](Type type, std::string_view axis) -> std::optional<Parts> {
    const Parts parts = Parts::of(type, op.integer(axis), spmd.group_size);
    return parts.are_in_order() ? std::nullopt : std::optional(parts);
  };
  std::optional<Parts> sent, received;
  int64_t members = spmd.group_size;
  switch (spmd.kind) {
    case CollectiveKind::all_gather: received = parts_of(to, "axis"); break;
    case CollectiveKind::reduce_scatter: sent = parts_of(from, "axis"); break;
    case CollectiveKind::all_to_all:
      sent = parts_of(from, "split_axis");
      received = parts_of(to, "concat_axis");
      break;
    default: members = 1;
  }
  HONE_TRY(check_bytes(command, spmd.kind == CollectiveKind::all_gather ? to : from, members));
  if (sent || received) return Rearranged(whole, frame, command).add(spmd, sent, received);
  frame.command(command.name, Start{spmd, command.inputs[0], command.outputs[0]});
  return {};
}

}  // namespace

Status add_collective(Lowering& whole, FrameBuilder& frame, const NodeCommand& command) {
  if (command.inputs.empty()) {
    frame.command(command.name, DeviceIndex{command.outputs[0]});
    return {};
  }
  return exchanges_data(command.op()) ? add_exchange(whole, frame, command)
                                      : add_alone(whole, frame, command);
}

}  // namespace hone::program
