#pragma once

#include <llvm/Support/CodeGen.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "codegen/mlir.h"

// A kernel as a module of LLVM, on its way from the llvm dialect to the text or bytes of a machine.

namespace llvm {
class Function;
class LLVMContext;
class Module;
class TargetMachine;
}  // namespace llvm

namespace hone::code {

// Writes the first error of the context to `complaint`. Without this, LLVM prints what is wrong
// with a kernel and exits.
void note_errors(llvm::LLVMContext& context, std::string& complaint);

// Null if LLVM cannot.
std::unique_ptr<llvm::Module> translated(mlir::ModuleOp module, llvm::LLVMContext& context);

// Makes it a module of the machine, and cleans up what lowering wrote. `afterwards` is then called
// with each function, unless it is null.
Status clean_up(llvm::Module& module, llvm::TargetMachine& machine,
                void (*afterwards)(llvm::Function&));

Result<std::string> generate(llvm::Module& module, llvm::TargetMachine& machine,
                             llvm::CodeGenFileType type);

}  // namespace hone::code
