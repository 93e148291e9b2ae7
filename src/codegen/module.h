#pragma once

#include <span>
#include <string>

#include "codegen/mlir.h"
#include "program/tiles/tiles.h"
#include "target/target.h"

namespace hone::code {

// Makes LLVM throw where it has no memory or cannot go on. Without this, LLVM ends the process.
// Call this before the first context is made.
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
