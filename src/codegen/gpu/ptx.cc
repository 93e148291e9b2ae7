#include "codegen/gpu/ptx.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Metadata.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <span>

#include "codegen/llvm_module.h"
#include "codegen/llvm_object.h"

namespace hone::code {

namespace {

constexpr llvm::StringRef kGpuTriple = "nvptx64-nvidia-cuda";

// A chip, and the oldest version of PTX that has its instructions: more drivers take it.
struct Chip {
  int64_t capability;
  const char* name;
  const char* version;
};
constexpr Chip kChips[] = {{80, "sm_80", "+ptx70"},
                           {86, "sm_86", "+ptx71"},
                           {89, "sm_89", "+ptx78"},
                           {90, "sm_90", "+ptx80"}};

// With instructions that no later chip has.
constexpr Chip kExactChips[] = {{90, "sm_90a", "+ptx80"}};

// The last one that LLVM knows and these GPUs can run the code of.
const Chip& chip_of(const GpuKernel& kernel) {
  const Chip* found = &kChips[0];
  const std::span<const Chip> chips = kernel.is_exact ? std::span<const Chip>(kExactChips) : kChips;
  for (const Chip& chip : chips)
    if (chip.capability <= kernel.capability) found = &chip;
  return *found;
}

Result<std::unique_ptr<llvm::TargetMachine>> gpu_machine(const Chip& chip) {
  [[maybe_unused]] static const bool is_set_up = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  std::string complaint;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(kGpuTriple.str(), complaint);
  if (backend == nullptr) return fault("LLVM has no back end for NVIDIA's GPUs: {}", complaint);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // it writes add.rn, which nobody contracts
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(kGpuTriple, chip.name, chip.version, options, std::nullopt,
                                   std::nullopt, llvm::CodeGenOptLevel::Default));
  if (!machine) return fault("LLVM makes no code for {}", chip.name);
  return machine;
}

void annotate(llvm::Function& function, llvm::StringRef what, llvm::Metadata* note) {
  llvm::LLVMContext& context = function.getContext();
  llvm::Metadata* const parts[] = {llvm::ValueAsMetadata::get(&function),
                                   llvm::MDString::get(context, what), note};
  function.getParent()
      ->getOrInsertNamedMetadata("nvvm.annotations")
      ->addOperand(llvm::MDNode::get(context, parts));
}

// The driver's compiler has to know how many registers a thread may have, and that maps are read
// where they are passed.
void annotate(llvm::Module& module, const GpuPhase& phase) {
  llvm::Function* function = module.getFunction(phase.symbol);
  HONE_CHECK(function != nullptr, "the module lacks the function {}", phase.symbol);
  const auto number = [&](uint64_t n) {
    return llvm::ConstantAsMetadata::get(
        llvm::ConstantInt::get(llvm::Type::getInt32Ty(module.getContext()), n));
  };
  annotate(*function, "maxntidx", number(static_cast<uint64_t>(phase.block_threads)));
  llvm::SmallVector<llvm::Metadata*> maps;  // by number, from 1 on
  for (const llvm::Argument& argument : function->args())
    if (argument.hasByValAttr()) maps.push_back(number(argument.getArgNo() + 1));
  if (!maps.empty())
    annotate(*function, "grid_constant", llvm::MDNode::get(module.getContext(), maps));
}

// All threads of a warp come to a text of PTX together: LLVM must not divide them among copies of
// it in branches.
void keep_together(llvm::Module& module) {
  for (llvm::Function& function : module)
    for (llvm::Instruction& at : llvm::instructions(function))
      if (auto* call = llvm::dyn_cast<llvm::CallInst>(&at); call != nullptr && call->isInlineAsm())
        call->setConvergent();
}

// LLVM joins accesses to neighbours, of 16 bytes at most, if it sees that they begin at a multiple
// of as many.
void tell_alignment(llvm::Function& function) {
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  for (llvm::Instruction& at : llvm::instructions(function)) {
    const auto known = [&](llvm::Value* pointer, llvm::Align given) {
      return std::max(given, llvm::getKnownAlignment(pointer, layout, &at));
    };
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&at))
      load->setAlignment(known(load->getPointerOperand(), load->getAlign()));
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&at))
      store->setAlignment(known(store->getPointerOperand(), store->getAlign()));
  }
}

}  // namespace

Result<std::string> ptx(mlir::ModuleOp module, const GpuKernel& kernel) {
  std::string complaint;
  LlvmObject<llvm::LLVMContext> context;
  note_errors(*context, complaint);
  LlvmObject<std::unique_ptr<llvm::Module>> owner(translated(module, *context));
  if (!*owner) return fault("the kernel does not translate to LLVM");
  llvm::Module& code = **owner;
  for (const GpuPhase& phase : kernel.phases) annotate(code, phase);
  keep_together(code);
  LlvmObject<std::unique_ptr<llvm::TargetMachine>> machine( HONE_TRY(gpu_machine(chip_of(kernel))));
  HONE_TRY(clean_up(code, **machine, tell_alignment));
  Result<std::string> text = generate(code, **machine, llvm::CodeGenFileType::AssemblyFile);
  if (!complaint.empty()) return fault("LLVM refuses the kernel: {}", complaint);
  return text;
}

}  // namespace hone::code
