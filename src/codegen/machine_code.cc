#include "codegen/machine_code.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>

#include "codegen/bit_selects.h"
#include "codegen/lane_access.h"
#include "codegen/llvm_module.h"
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

Result<std::unique_ptr<llvm::TargetMachine>> machine_for(const Target& target, CodeEffort effort) {
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
      llvm::CodeModel::Small,
      effort == CodeEffort::full ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None));
  if (!machine) return fault("LLVM makes no code for {}", target.name);
  return machine;
}

}  // namespace

Result<std::string> machine_code(mlir::ModuleOp module, const Target& target, CodeForm form,
                                 CodeEffort effort) {
  std::string complaint;
  LlvmObject<llvm::LLVMContext> context;
  note_errors(*context, complaint);
  LlvmObject<std::unique_ptr<llvm::Module>> owner(translated(module, *context));
  if (!*owner) return fault("the kernel does not translate to LLVM");
  llvm::Module& code = **owner;
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine(HONE_TRY(machine_for(target, effort)));
  HONE_TRY(clean_up(code, **machine, split_bit_selects));
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
