#pragma once

#include "ir/op_def.h"

// Questions that many places ask about an op, answered from the op table in one place. Ask for the
// fact that matters rather than for the name of the op that happens to have it.

namespace hone {

// ---- Leaves -------------------------------------------------------------------------------------

// An input of the graph or region.
inline bool is_parameter(Opcode opcode) { return opcode == Opcode::parameter; }
// Its elements are part of the graph.
inline bool is_constant(Opcode opcode) { return opcode == Opcode::constant; }

// ---- Products and windows -----------------------------------------------------------------------

inline bool is_contraction(Opcode opcode) { return class_of(opcode) == OpClass::contraction; }
// A contraction whose first operand is read in windows around each point of the result.
inline bool is_convolution(Opcode opcode) {
  return is_contraction(opcode) && op_def(opcode).traits.is_local;
}
// A contraction of dims that the result lacks.
inline bool is_dot(Opcode opcode) {
  return is_contraction(opcode) && !op_def(opcode).traits.is_local;
}
// The elements of windows are combined to one: a pool.
inline bool combines_windows(Opcode opcode) { return class_of(opcode) == OpClass::window; }
// Combines elements by the op that its "kind" names: along axes, or in windows.
inline bool combines_by_kind(Opcode opcode) {
  return opcode == Opcode::reduce || combines_windows(opcode);
}
// Combining by this op gives one of the elements: the largest or the smallest.
inline bool picks_one(Opcode combine) {
  const Identity identity = op_def(combine).traits.identity;
  return identity == Identity::lowest || identity == Identity::highest;
}

// ---- Movement -----------------------------------------------------------------------------------

// As a view, its operands lie side by side in the memory of the result: concat.
inline bool joins_operands(Opcode opcode) {
  const OpTraits& traits = op_def(opcode).traits;
  return traits.may_be_view && traits.is_piecewise;
}
// As a view, it is a part of its operand's memory, in the dims of the operand: slice.
inline bool takes_part(Opcode opcode) {
  const OpTraits& traits = op_def(opcode).traits;
  return traits.may_be_view && traits.is_local && !traits.is_piecewise;
}

// Copies its operand along dims of the result.
inline bool repeats_elements(Opcode opcode) { return opcode == Opcode::broadcast; }
// The operand's dims in another order, and nothing else.
inline bool permutes_dims(Opcode opcode) { return opcode == Opcode::transpose; }
// The operand's elements in their order, with other dims.
inline bool regroups_dims(Opcode opcode) { return opcode == Opcode::reshape; }

// ---- Quantization -------------------------------------------------------------------------------

inline bool is_quantize(Opcode opcode) { return opcode == Opcode::quantize; }
inline bool is_dequantize(Opcode opcode) { return opcode == Opcode::dequantize; }

// ---- Control ------------------------------------------------------------------------------------

// Runs one of two regions.
inline bool is_branch(Opcode opcode) { return opcode == Opcode::if_; }
// Runs its body once for each slice of the stacked operands.
inline bool is_scan(Opcode opcode) { return opcode == Opcode::scan; }
// Runs its body as long as a condition holds.
inline bool is_while(Opcode opcode) { return opcode == Opcode::while_; }
inline bool is_loop(Opcode opcode) { return is_scan(opcode) || is_while(opcode); }

}  // namespace hone
