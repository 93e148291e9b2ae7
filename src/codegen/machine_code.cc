#include "codegen/machine_code.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h>
#include <mlir/Target/LLVMIR/Export.h>

#include "codegen/bit_selects.h"
#include "codegen/lane_access.h"
#include "codegen/llvm_object.h"

namespace hone::code {

namespace {

constexpr std::string_view kTriple = "x86_64-unknown-linux-gnu";

std::string cpu_name(Isa isa) {
  switch (isa) {
    case Isa::v2: return "x86-64-v2";
    case Isa::avx2: return "x86-64-v3";
    case Isa::avx512: return "x86-64-v4";
  }
  HONE_CHECK(false, "an isa {}", static_cast<int>(isa));
}

// Kernels say themselves how wide their vectors are.
std::string features(const Target& target) {
  std::string text = "-prefer-256-bit";
  constexpr std::pair<Extension, std::string_view> kNames[] = {
      {Extension::avx512_bf16, "avx512bf16"},
      {Extension::avx512_vnni, "avx512vnni"},
      {Extension::avx512_fp16, "avx512fp16"},
      {Extension::amx_bf16, "amx-bf16"},
      {Extension::amx_int8, "amx-int8"}};
  for (const auto& [extension, feature] : kNames)
    if (target.extensions.contains(extension)) text += fmt::format(",+{}", feature);
  return text;
}

Result<std::unique_ptr<llvm::TargetMachine>> machine_for(const Target& target) {
  [[maybe_unused]] static const bool is_set_up = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  std::string complaint;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(std::string(kTriple), complaint);
  if (backend == nullptr) return fault("LLVM has no back end for x86-64: {}", complaint);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      kTriple, cpu_name(target.isa), features(target), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine) return fault("LLVM makes no code for {}", target.name);
  return machine;
}

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

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
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
      split_bit_selects(function);
    }
}

// LLVM's own faults show here, not as a crash later.
Status verify(const llvm::Module& module, std::string_view what) {
  std::string complaint;
  llvm::raw_string_ostream complaints(complaint);
  if (!llvm::verifyModule(module, &complaints)) return {};
  return fault("{} no valid LLVM module: {}", what, complaint);
}

// Without a handler, LLVM prints what is wrong with a kernel and exits.
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

}  // namespace

Result<std::string> machine_code(mlir::ModuleOp module, const Target& target, CodeForm form) {
  mlir::registerBuiltinDialectTranslation(*module.getContext());
  mlir::registerLLVMDialectTranslation(*module.getContext());
  std::string complaint;
  LlvmObject<llvm::LLVMContext> context;
  note_errors(*context, complaint);
  LlvmObject<std::unique_ptr<llvm::Module>> owner(mlir::translateModuleToLLVMIR(module, *context));
  if (!*owner) return fault("the kernel does not translate to LLVM");
  llvm::Module& code = **owner;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine(HONE_TRY(machine_for(target)));
  code.setTargetTriple(kTriple);
  code.setDataLayout((*machine)->createDataLayout());
  HONE_TRY(verify(code, "the kernel is"));
  optimize(code, **machine);
  HONE_TRY(verify(code, "of the kernel LLVM makes"));
  for (llvm::Function& function : code)
    if (!function.isDeclaration())
      rewrite_masked_accesses(function, (*machine)->getTargetTransformInfo(function));
  if (form == CodeForm::llvm) {
    std::string text;
    llvm::raw_string_ostream(text) << code;
    return text;
  }
  const auto type = form == CodeForm::object ? llvm::CodeGenFileType::ObjectFile
                                             : llvm::CodeGenFileType::AssemblyFile;
  Result<std::string> text = generate(code, **machine, type);
  if (!complaint.empty()) return fault("LLVM refuses the kernel: {}", complaint);
  return text;
}

}  // namespace hone::code
