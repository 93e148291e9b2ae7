#pragma once

#include <span>
#include <string>

#include "codegen/mlir.h"
#include "program/tiles/tiles.h"
#include "target/target.h"

namespace hone::code {

// LLVM ends the process where there is no memory or it cannot go on, unless it is told to throw. To
// be called before a context is made.
void tell_llvm_how_to_fail();

// Loads the dialects that the emitter and the passes write.
void load_dialects(mlir::MLIRContext& context);

// Adds the kernel to an empty module, in the dialects arith, math, scf, vector and llvm: a function
// per phase.
void emit_kernel(mlir::ModuleOp module, const TileProgram& program, const Target& target,
                 std::span<const std::string> symbols);

// To the llvm dialect alone.
Status lower_module(mlir::ModuleOp module);

}  // namespace hone::code
