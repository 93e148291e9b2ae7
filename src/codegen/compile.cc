#include "codegen/codegen.h"
#include "codegen/emit/emitter.h"
#include "codegen/emit/variance.h"
#include "codegen/llvm_object.h"
#include "codegen/machine_code.h"
#include "codegen/module.h"

namespace hone {

std::vector<std::string> phase_symbols(const TileProgram& program, std::string_view symbol) {
  std::vector<std::string> names;
  for (size_t i = 0; i < program.phases.size(); ++i)
    names.push_back(fmt::format("{}_{}", symbol, i));
  return names;
}

Result<std::string> compile_tiles(const TileProgram& program, const Target& target,
                                  std::string_view symbol, CodeForm form, CodeEffort effort) {
  HONE_TRY(verify(program));
  HONE_TRY(code::check_lockstep(program));
  HONE_TRY(code::check_products(program, target));
  for (const tile::Loop& phase : program.phases)
    if (phase.exec == Exec::blocks)
      return unsupported("blocks of threads on a CPU; serial_form() makes each of them one thread");
  code::tell_llvm_how_to_fail();
  code::LlvmObject<mlir::MLIRContext> context(mlir::MLIRContext::Threading::DISABLED);
  code::load_dialects(*context);
  code::LlvmObject<mlir::OwningOpRef<mlir::ModuleOp>> owner(
      mlir::ModuleOp::create(mlir::UnknownLoc::get(&*context)));
  mlir::ModuleOp module = owner->get();
  code::emit_kernel(module, program, target, phase_symbols(program, symbol));
  if (form == CodeForm::mlir) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module.print(stream);
    return text;
  }
  HONE_TRY(code::lower_module(module));
  Result<std::string> text = code::machine_code(module, target, form, effort);
  if (!text.ok()) return std::move(text).error().within(fmt::format("kernel '{}'", program.name));
  return text;
}

}  // namespace hone
