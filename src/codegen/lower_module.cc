#include <mlir/Conversion/ArithToLLVM/ArithToLLVM.h>
#include <mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h>
#include <mlir/Conversion/MathToLLVM/MathToLLVM.h>
#include <mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h>
#include <mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h>
#include <mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h>
#include <mlir/Pass/Pass.h>
#include <mlir/Pass/PassManager.h>

#include "codegen/llvm_object.h"
#include "codegen/module.h"

namespace hone::code {

Status lower_module(mlir::ModuleOp module) {
  std::string complaint;
  LlvmObject<mlir::ScopedDiagnosticHandler> handler(module.getContext(),
                                                    [&](mlir::Diagnostic& diagnostic) {
                                                      if (complaint.empty())
                                                        complaint = diagnostic.str();
                                                      return mlir::success();
                                                    });
  LlvmObject<mlir::PassManager> passes(module.getContext());
  passes->enableVerifier(false);  // LLVM's own verifier sees the result
  passes->addPass(mlir::createConvertSCFToCFPass());
  passes->addPass(mlir::createConvertVectorToLLVMPass());
  passes->addPass(mlir::createConvertMathToLLVMPass());
  passes->addPass(mlir::createArithToLLVMConversionPass());
  passes->addPass(mlir::createConvertControlFlowToLLVMPass());
  passes->addPass(mlir::createReconcileUnrealizedCastsPass());
  if (mlir::failed(passes->run(module)))
    return fault("the kernel does not lower to LLVM: {}", complaint);
  return {};
}

}  // namespace hone::code
