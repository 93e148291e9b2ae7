#pragma once

#include <optional>
#include <span>

#include "codegen/emit/instructions.h"
#include "ir/op.h"

namespace hone::code {

// exp, sin, ...: an op on f32 or f64 that the vector math computes; none if it has no such
// function.
std::optional<Value> function(Instructions& code, bool has_fma, Opcode opcode,
                              std::span<const Value> operands);

}  // namespace hone::code
