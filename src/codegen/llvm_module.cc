#include "codegen/llvm_module.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Export.h>

#include "codegen/llvm_object.h"

namespace hone::code {

namespace {

// Kernels come with their loops, vectors and registers as they should be: what is left is to clean
// up what lowering wrote. The default pipelines take three times as long and make slower code: they
// unroll and rotate loops and hoist what a register tile then has no register for.
llvm::FunctionPassManager cleaning() {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass(llvm::InstCombineOptions().setVerifyFixpoint(false)));
  passes.addPass(llvm::SimplifyCFGPass());
  return passes;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine,
              void (*afterwards)(llvm::Function&)) {
  LlvmObject<llvm::LoopAnalysisManager> loops;
  LlvmObject<llvm::FunctionAnalysisManager> functions;
  LlvmObject<llvm::CGSCCAnalysisManager> graphs;
  LlvmObject<llvm::ModuleAnalysisManager> modules;
  LlvmObject<llvm::PassBuilder> builder(&machine);
  builder->registerModuleAnalyses(*modules);
  builder->registerCGSCCAnalyses(*graphs);
  builder->registerFunctionAnalyses(*functions);
  builder->registerLoopAnalyses(*loops);
  builder->crossRegisterProxies(*loops, *functions, *graphs, *modules);
  LlvmObject<llvm::FunctionPassManager> passes(cleaning());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) {
      passes->run(function, *functions);
      if (afterwards != nullptr) afterwards(function);
    }
}

// LLVM's own faults show here, not as a crash later.
Status verify(const llvm::Module& module, std::string_view what) {
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  if (!llvm::verifyModule(module, &complaints)) return {};
  return fault("{} no valid LLVM module: {}", what, complaint);
}

}  // namespace

void note_errors(llvm::LLVMContext& context, std::string& complaint) {
  const auto note = [](const llvm::DiagnosticInfo* info, void* to) {
    std::string& complaint = *static_cast<std::string*>(to);
    if (info->getSeverity() != llvm::DS_Error || !complaint.empty()) return;
    llvm::raw_string_ostream stream(complaint);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
  };
  context.setDiagnosticHandlerCallBack(note, &complaint);
}

Result<std::string> generate(llvm::Module& module, llvm::TargetMachine& machine,
                             llvm::CodeGenFileType type) {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  LlvmObject<llvm::legacy::PassManager> passes;
  if (machine.addPassesToEmitFile(*passes, stream, nullptr, type))
    return fault("LLVM cannot write this kind of file");
  passes->run(module);
  return std::string(bytes.str());
}

std::unique_ptr<llvm::Module> translated(mlir::ModuleOp module, llvm::LLVMContext& context) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  return mlir::translateModuleToLLVMIR(module, context);
}

Status clean_up(llvm::Module& module, llvm::TargetMachine& machine,
                void (*afterwards)(llvm::Function&)) {
  module.setTargetTriple(machine.getTargetTriple().str());
  module.setDataLayout(machine.createDataLayout());
  HONE_TRY(verify(module, "the kernel is"));
  optimize(module, machine, afterwards);
  return verify(module, "of the kernel LLVM makes");
}

}  // namespace hone::code
