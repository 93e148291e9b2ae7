#pragma once

#include <string_view>

#include "front/hlo/program.h"

namespace hone::hlo {

// How a text of a language begins, behind blanks and comments.
bool begins_like_stablehlo(std::string_view text);
bool begins_like_bytecode(std::string_view text);  // of MLIR

// Throws Refusal.
Program read_program(std::string_view text, std::string_view where);

// The function that a module is for: its entry, `main`, or the only one that is not private.
// Throws Refusal.
const Function& entry_of(const Program& program, const Module& module);

}  // namespace hone::hlo
