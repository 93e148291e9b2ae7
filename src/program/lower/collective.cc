#include "program/lower/lowering.h"

namespace hone::program {

namespace {

// A program on one device talks only to itself.
Status check_alone(const NodeCommand& command) {
  auto others = [&] {
    return unsupported("{} is for several devices, a program runs on one",
                       command.graph.describe(command.node));
  };
  if (command.op().opcode() == Opcode::permute) {
    for (int64_t device : command.op().ints("pairs"))
      if (device != 0) return others();
    return {};
  }
  if (command.op().integer("group_size") != 1) return others();
  for (int64_t device : command.op().ints("groups"))
    if (device != 0) return others();
  return {};
}

}  // namespace

Status add_collective(FrameBuilder& frame, const NodeCommand& command) {
  const BufferId result = command.outputs[0];
  const Opcode opcode = command.op().opcode();
  const bool is_index = opcode == Opcode::device_index;
  if (!is_index) HONE_TRY(check_alone(command));
  const bool is_no_target = opcode == Opcode::permute && command.op().ints("pairs").empty();
  if (!is_index && !is_no_target) {
    frame.copy(command.inputs[0], result);
    return {};
  }
  const BufferId zero =
      frame.add_constant(frame.name(result) + ".zero", Tensor::zeros(frame.type(result)));
  frame.copy(zero, result);
  return {};
}

}  // namespace hone::program
