#pragma once

#include <span>
#include <string>

#include "codegen/mlir.h"
#include "program/tiles/tiles.h"
#include "target/target.h"

namespace hone::code {

// A context with the dialects that the emitter writes, single-threaded.
std::unique_ptr<mlir::MLIRContext> make_context();

// The kernel in the dialects arith, math, scf, vector and llvm: a function per phase.
mlir::OwningOpRef<mlir::ModuleOp> emit_module(mlir::MLIRContext& context,
                                              const TileProgram& program, const Target& target,
                                              std::span<const std::string> symbols);

// To the llvm dialect alone.
Status lower_module(mlir::ModuleOp module);

}  // namespace hone::code
