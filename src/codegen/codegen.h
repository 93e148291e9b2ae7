#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "program/tiles/tiles.h"
#include "target/target.h"

// Compiles TilePrograms to machine code, by way of MLIR and LLVM. Other folders include this header
// alone; it shows no LLVM type.

namespace hone {

enum class CodeForm : uint8_t { mlir, llvm, assembly, object };

// How long LLVM looks for good code. Quick code is made in about half the time and runs several
// times as long. Both compute the same bits: no arithmetic is reordered at either.
enum class CodeEffort : uint8_t { full, quick };

// The names of the functions of a kernel's phases, in order (runtime/kernel_abi.h).
std::vector<std::string> phase_symbols(const TileProgram& program, std::string_view symbol);

// Code with the functions phase_symbols(), in the form that is asked for. Verified programs only.
Result<std::string> compile_tiles(const TileProgram& program, const Target& target,
                                  std::string_view symbol, CodeForm form = CodeForm::object,
                                  CodeEffort effort = CodeEffort::full);

}  // namespace hone
