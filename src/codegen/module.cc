#include "codegen/module.h"

#include <llvm/Support/ErrorHandling.h>
#include <mlir/Dialect/ControlFlow/IR/ControlFlow.h>

#include <algorithm>
#include <new>

#include "codegen/emit/emitter.h"
#include "program/tiles/bind.h"
#include "runtime/kernel_abi.h"

namespace hone::code {

namespace {

namespace ml = mlir::LLVM;

// A phase is two functions. One takes the buffers as parameters; these are known not to overlap,
// but where an output may lie in an input. Callers see the other one, which takes the buffers out
// of their array.
class PhaseWriter {
 public:
  PhaseWriter(mlir::MLIRContext& context, mlir::ModuleOp module, const TileProgram& program,
              const Machine& machine)
      : b_(mlir::UnknownLoc::get(&context), &context),
        module_(module),
        program_(program),
        machine_(machine),
        symbols_(symbols_of(program)),
        pointer_(ml::LLVMPointerType::get(&context)) {}

  void write(const tile::Loop& phase, const std::string& name) {
    ml::LLVMFuncOp body = inner(phase, name + "_body");
    outer(body, name);
  }

 private:
  size_t passed_buffers() const {
    size_t count = 0;
    for (const TileBuffer& buffer : program_.buffers) count += is_passed(buffer.role) ? 1 : 0;
    return count;
  }

  // True if the buffer is an output that may lie in an input, or such an input.
  bool may_share(tile::BufferId id) const {
    return program_.buffers[id].donor ||
           std::ranges::any_of(program_.buffers,
                               [&](const TileBuffer& buffer) { return buffer.donor == id; });
  }

  ml::LLVMFuncOp function(const std::string& name, llvm::ArrayRef<mlir::Type> parameters,
                          ml::Linkage linkage) {
    b_.setInsertionPointToEnd(module_.getBody());
    const auto none = ml::LLVMVoidType::get(b_.getContext());
    const auto type = ml::LLVMFunctionType::get(none, parameters);
    auto result = b_.create<ml::LLVMFuncOp>(name, type, linkage);
    llvm::SmallVector<mlir::Attribute> attributes = {b_.getStringAttr("nounwind")};
    if (linkage == ml::Linkage::Internal) attributes.push_back(b_.getStringAttr("alwaysinline"));
    result.setPassthroughAttr(b_.getArrayAttr(attributes));
    b_.setInsertionPointToStart(result.addEntryBlock(b_));
    return result;
  }

  ml::LLVMFuncOp inner(const tile::Loop& phase, const std::string& name) {
    const size_t buffers = passed_buffers();
    const mlir::Type i64 = b_.getI64Type();
    llvm::SmallVector<mlir::Type> parameters(buffers + 1, pointer_);  // and the scratch memory
    parameters.append(symbols_.size() + 2, i64);
    ml::LLVMFuncOp body = function(name, parameters, ml::Linkage::Internal);
    Emitter::Surroundings around;
    size_t next = 0;
    const auto apart = [&] {
      body.setArgAttr(static_cast<unsigned>(next), "llvm.noalias", b_.getUnitAttr());
    };
    auto argument = [&] { return body.getArgument(static_cast<unsigned>(next++)); };
    for (tile::BufferId id = 0; id < program_.buffers.size(); ++id) {
      const bool passes = is_passed(program_.buffers[id].role);
      if (passes && !may_share(id)) apart();
      around.buffers.push_back(passes ? argument() : Value());
    }
    apart();
    around.scratch = argument();
    for (const Symbol& symbol : symbols_) around.symbols[symbol.name()] = argument();
    around.begin = argument();
    around.end = argument();
    Emitter emitter(b_, program_, machine_, around);
    emitter.phase(phase);
    b_.create<ml::ReturnOp>(ValueRange{});
    return body;
  }

  void outer(ml::LLVMFuncOp body, const std::string& name) {
    const mlir::Type i64 = b_.getI64Type();
    ml::LLVMFuncOp entry =
        function(name, {pointer_, pointer_, pointer_, i64, i64}, ml::Linkage::External);
    llvm::SmallVector<Value> arguments;
    auto element = [&](mlir::Type type, Value array, size_t position) {
      const Value at = b_.create<ml::GEPOp>(
          pointer_, type, array, llvm::ArrayRef<ml::GEPArg>{static_cast<int32_t>(position)});
      return b_.create<ml::LoadOp>(type, at, 8);
    };
    for (size_t i = 0; i < passed_buffers(); ++i)
      arguments.push_back(element(pointer_, entry.getArgument(0), i));
    arguments.push_back(entry.getArgument(2));
    for (size_t i = 0; i < symbols_.size(); ++i)
      arguments.push_back(element(i64, entry.getArgument(1), i));
    arguments.push_back(entry.getArgument(3));
    arguments.push_back(entry.getArgument(4));
    b_.create<ml::CallOp>(body, arguments);
    b_.create<ml::ReturnOp>(ValueRange{});
  }

  mlir::ImplicitLocOpBuilder b_;
  mlir::ModuleOp module_;
  const TileProgram& program_;
  const Machine machine_;
  const std::vector<Symbol> symbols_;
  const mlir::Type pointer_;
};

Machine machine_of(const Target& target) {
  const bool has_avx2 = target.isa >= Isa::avx2;
  return {.vector_bytes = target.isa == Isa::avx512 ? 64
                          : has_avx2                ? 32
                                                    : 16,
          .has_fma = has_avx2,
          .has_f16 = has_avx2,
          .has_vnni = target.extensions.contains(Extension::avx512_vnni),
          .has_bf16 = target.extensions.contains(Extension::avx512_bf16)};
}

}  // namespace

void tell_llvm_how_to_fail() {
  [[maybe_unused]] static const bool is_told = [] {
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
    llvm::install_fatal_error_handler([](void*, const char* reason, bool) {
      throw InternalError(fmt::format("LLVM gives up: {}", reason));
    });
    return true;
  }();
}

void load_dialects(mlir::MLIRContext& context) {
  context.loadDialect<mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::cf::ControlFlowDialect, mlir::vector::VectorDialect,
                      mlir::LLVM::LLVMDialect>();
}

void emit_kernel(mlir::ModuleOp module, const TileProgram& program, const Target& target,
                 std::span<const std::string> symbols) {
  PhaseWriter writer(*module.getContext(), module, program, machine_of(target));
  for (size_t i = 0; i < program.phases.size(); ++i) writer.write(program.phases[i], symbols[i]);
}

}  // namespace hone::code
