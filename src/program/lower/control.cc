#include "program/lower/lowering.h"

#include <algorithm>

#include "base/planted.h"
#include "ir/op_facts.h"
#include "program/frame.h"

namespace hone::program {

namespace {

Status add_if(FrameBuilder& frame, const NodeCommand& command) {
  const std::vector<BufferId> arguments(command.inputs.begin() + 1, command.inputs.end());
  frame.command(command.name, Branch{command.inputs[0], command.regions[0], command.regions[1],
                                     arguments, command.outputs});
  return {};
}

// A loop within a frame of its own.
class LoopFrame {
 public:
  LoopFrame(Lowering& whole, FrameBuilder& outer, const NodeCommand& command, size_t carried)
      : whole_(whole),
        outer_(outer),
        command_(command),
        inner_(whole, whole.frame_name(fmt::format("{}.{}", outer.name(), command.name))),
        carried_(carried) {}

  Status add_while() {
    add_ports();
    Loop loop;
    loop.test = command_.regions[0];
    loop.body = command_.regions[1];
    loop.condition = inner_.add("condition", Type::scalar(DType::boolean), Role::temporary);
    std::tie(loop.state, loop.next) = begin();
    inner_.command(command_.name, std::move(loop));
    return finish();
  }

  Status add_scan() {
    add_ports();
    const Op op = command_.op();
    Scan scan;
    scan.body = command_.regions[0];
    scan.trips =
        inputs_.size() > carried_ ? inner_.type(inputs_[carried_]).dim(0) : op.dims("length")[0];
    scan.reverse = HONE_PLANT(scan_reverse, op.flag("reverse"), false);
    std::tie(scan.state, scan.next) = begin();
    for (size_t i = carried_; i < inputs_.size(); ++i)
      scan.xs.push_back(HONE_TRY(in_bytes(inputs_[i], scan.trips)));
    std::vector<std::pair<BufferId, BufferId>> padded;  // and the result
    for (size_t i = carried_; i < outputs_.size(); ++i) {
      const Type type = padded_type(inner_.type(outputs_[i]), scan.trips);
      const bool is_padded = type != flat_type(inner_.type(outputs_[i]), scan.trips);
      scan.ys.push_back(
          is_padded ? inner_.add(inner_.name(outputs_[i]) + ".padded", type, Role::temporary)
                    : outputs_[i]);
      if (is_padded) padded.emplace_back(scan.ys.back(), outputs_[i]);
    }
    const Dim trips = scan.trips;
    inner_.command(command_.name, std::move(scan));
    for (const auto& [from, to] : padded) HONE_TRY(drop_padding(from, to, trips));
    return finish();
  }

 private:
  void add_ports() {
    for (size_t i = 0; i < command_.inputs.size(); ++i)
      inputs_.push_back(
          inner_.add(fmt::format("x{}", i), outer_.type(command_.inputs[i]), Role::input));
    for (size_t i = 0; i < command_.outputs.size(); ++i) {
      const BufferId output = command_.outputs[i];
      outputs_.push_back(is_written(i)
                             ? inner_.add(outer_.name(output), outer_.type(output), Role::output)
                             : inputs_[i]);
    }
  }
  // True if the loop writes the output: it changes, or a later step reads it.
  bool is_written(size_t output) const {
    return output >= carried_ || !command_.unchanged[output] || command_.is_read[output];
  }

  // Copies the first state to where it changes; returns the state and the buffers of its next
  // value. A state that does not change is read where it was before the loop, and copied for the
  // steps behind it.
  std::pair<std::vector<BufferId>, std::vector<BufferId>> begin() {
    std::vector<BufferId> state, next;
    const auto in_place = outputs_in_inputs(*command_.regions.back());
    size_t output = 0;  // of the body
    for (size_t i = 0; i < carried_; ++i) {
      if (is_written(i)) inner_.copy(inputs_[i], outputs_[i]);
      state.push_back(command_.unchanged[i] ? inputs_[i] : outputs_[i]);
      const std::string name = inner_.name(outputs_[i]) + ".next";
      const bool stays = command_.unchanged[i] || in_place[i] == output++;
      next.push_back(stays ? state.back()
                           : inner_.add(name, inner_.type(outputs_[i]), Role::temporary));
    }
    return {state, next};
  }

  Status finish() {
    std::vector<BufferId> written;
    for (size_t i = 0; i < command_.outputs.size(); ++i)
      if (is_written(i)) written.push_back(command_.outputs[i]);
    outer_.command(command_.name, Call{std::move(inner_).finish(), command_.inputs, written});
    return {};
  }

  // ---- Steps that do not begin with a byte -----------------------------------------------------

  // A row per step.
  static Type flat_type(Type stack, Dim trips) {
    Dim elements = 1;
    for (Dim dim : stack.dims().subspan(1)) elements = elements * dim;
    return stack.with_dims(Dims{trips, elements});
  }
  static Type padded_type(Type stack, Dim trips) {
    const Type flat = flat_type(stack, trips);
    const int in_byte = bits(stack.dtype()) < 8 ? 8 / bits(stack.dtype()) : 1;
    if (flat.dim(1).divisible_by(in_byte)) return flat;
    return flat.with_dims(Dims{trips, ceildiv(flat.dim(1), in_byte) * in_byte});
  }

  // The stack, or one like it in which each step fills its last byte.
  Result<BufferId> in_bytes(BufferId stack, Dim trips) {
    const Type flat = flat_type(inner_.type(stack), trips);
    const Type padded = padded_type(inner_.type(stack), trips);
    if (padded == flat) return stack;
    Graph graph;
    const ValueId x = graph.add_parameter(flat);
    const ValueId zero = graph.add_constant(Tensor::zeros(Type::scalar(flat.dtype())));
    const Dims none = {0, 0}, behind = {0, padded.dim(1) - flat.dim(1)};
    const KernelId kernel = HONE_TRY(op_kernel(
        std::move(graph), Op::get(Opcode::pad, {{"low", none}, {"high", behind}}), {x, zero}));
    const std::string name = inner_.name(stack);
    const BufferId rows = inner_.add_view(name + ".rows", flat, stack, 0);
    const BufferId result = inner_.add(name + ".padded", padded, Role::temporary);
    inner_.command(inner_.name(result), Launch{kernel, {rows}, {result}});
    return result;
  }

  Status drop_padding(BufferId padded, BufferId stack, Dim trips) {
    const Type flat = flat_type(inner_.type(stack), trips);
    Graph graph;
    const ValueId x = graph.add_parameter(inner_.type(padded));
    const Dims start = {0, 0}, limit = {trips, flat.dim(1)};
    const KernelId kernel = HONE_TRY(op_kernel(
        std::move(graph), Op::get(Opcode::slice, {{"start", start}, {"limit", limit}}), {x}));
    const BufferId rows = inner_.add(inner_.name(stack) + ".rows", flat, Role::temporary);
    inner_.command(inner_.name(rows), Launch{kernel, {padded}, {rows}});
    inner_.copy(rows, stack);
    return {};
  }

  Result<KernelId> op_kernel(Graph graph, Op op, const std::vector<ValueId>& operands) {
    const NodeId node = HONE_TRY(graph.append(op, operands));
    graph.set_outputs({graph.result(node)});
    return whole_.kernel(std::move(graph));
  }

  Lowering& whole_;
  FrameBuilder& outer_;
  const NodeCommand& command_;
  FrameBuilder inner_;
  const size_t carried_;
  std::vector<BufferId> inputs_, outputs_;
};

}  // namespace

Status add_control(Lowering& whole, FrameBuilder& frame, const NodeCommand& command) {
  const Opcode opcode = command.op().opcode();
  if (is_branch(opcode)) return add_if(frame, command);
  if (is_while(opcode)) return LoopFrame(whole, frame, command, command.inputs.size()).add_while();
  if (is_scan(opcode)) {
    const auto carried = static_cast<size_t>(command.op().integer("carried"));
    return LoopFrame(whole, frame, command, carried).add_scan();
  }
  HONE_CHECK(opcode == Opcode::call, "{} is no control flow", command.op().name());
  frame.command(command.name, Call{command.regions[0], command.inputs, command.outputs});
  return {};
}

}  // namespace hone::program
