#pragma once

#include "ir/op_def.h"

// Questions about ops on whole numbers and their bits, as in op_facts.h.

namespace hone {

// The bits that both operands have.
inline bool masks_bits(Opcode opcode) { return opcode == Opcode::and_; }
// The first operand's bits, moved down by the second.
inline bool shifts_down(Opcode opcode) { return opcode == Opcode::shift_right; }
// Each element is its place along an axis.
inline bool counts_places(Opcode opcode) { return opcode == Opcode::iota; }
inline bool multiplies(Opcode opcode) { return opcode == Opcode::mul; }

}  // namespace hone
