#include "codegen/gpu/phase_writer.h"

#include <algorithm>

#include "codegen/emit/emitter.h"
#include "program/tiles/bind.h"
#include "program/tiles/calling.h"

namespace hone::code {

namespace {

namespace ml = mlir::LLVM;

// Address spaces of LLVM's back end.
constexpr unsigned kGlobalMemory = 1;
// A thread that has more of scratch is too much for a GPU with many threads.
constexpr int64_t kMostScratchBytes = int64_t{1} << 24;

constexpr Machine kGpu = {.has_fma = true, .has_f16 = true};

class GpuPhaseWriter {
 public:
  GpuPhaseWriter(mlir::MLIRContext& context, mlir::ModuleOp module, const TileProgram& program)
      : b_(mlir::UnknownLoc::get(&context), &context),
        module_(module),
        program_(program),
        symbols_(symbols_of(program)),
        global_(ml::LLVMPointerType::get(&context, kGlobalMemory)) {}

  void write(const tile::Loop& phase, const GpuPhase& made) {
    ml::LLVMFuncOp function = declare(made.symbol);
    Emitter::Surroundings around;
    unsigned next = 0;
    const auto argument = [&] { return function.getArgument(next++); };
    for (tile::BufferId id = 0; id < program_.buffers.size(); ++id) {
      const bool is_passed = program_.buffers[id].role != BufferRole::scratch;
      if (is_passed && is_apart(id)) {
        function.setArgAttr(next, "llvm.noalias", b_.getUnitAttr());
        // Such memory is read by way of another cache.
        if (program_.buffers[id].role == BufferRole::input)
          function.setArgAttr(next, "llvm.readonly", b_.getUnitAttr());
      }
      around.buffers.push_back(is_passed ? argument() : Value());
    }
    for (const Symbol& symbol : symbols_) around.symbols[symbol.name()] = argument();
    const Value scratch = argument();
    const Value begin = argument();
    around.end = argument();
    // No product of three sizes overflows: a grid has fewer than 2^31 blocks of 1,024 threads.
    const Value width = special_register("ntid.x");
    const auto product = [&](Value a, Value b) { return b_.create<mlir::arith::MulIOp>(a, b); };
    const auto sum = [&](Value a, Value b) { return b_.create<mlir::arith::AddIOp>(a, b); };
    const Value thread =
        sum(product(special_register("ctaid.x"), width), special_register("tid.x"));
    around.begin = sum(begin, thread);
    around.step = product(special_register("nctaid.x"), width);
    around.scratch = own_scratch(scratch, thread, made.scratch_bytes);
    Emitter emitter(b_, program_, kGpu, around);
    emitter.phase(phase);
    b_.create<ml::ReturnOp>(ValueRange{});
  }

 private:
  ml::LLVMFuncOp declare(const std::string& name) {
    llvm::SmallVector<mlir::Type> parameters;
    for (const TileBuffer& buffer : program_.buffers)
      if (buffer.role != BufferRole::scratch) parameters.push_back(global_);
    parameters.append(symbols_.size(), b_.getI64Type());
    parameters.push_back(global_);
    parameters.append(2, b_.getI64Type());
    b_.setInsertionPointToEnd(module_.getBody());
    const auto type = ml::LLVMFunctionType::get(ml::LLVMVoidType::get(b_.getContext()), parameters);
    auto function = b_.create<ml::LLVMFuncOp>(name, type, ml::Linkage::External,
                                              /*dsoLocal=*/false, ml::CConv::PTX_Kernel);
    function.setPassthroughAttr(b_.getArrayAttr({b_.getStringAttr("nounwind")}));
    b_.setInsertionPointToStart(function.addEntryBlock(b_));
    return function;
  }

  // False: it is an output that may lie in an input, or such an input.
  bool is_apart(tile::BufferId id) const {
    return !program_.buffers[id].donor &&
           std::ranges::none_of(program_.buffers,
                                [&](const TileBuffer& buffer) { return buffer.donor == id; });
  }

  Value special_register(llvm::StringRef name) {
    const mlir::Type i32 = b_.getI32Type();
    auto read = b_.create<ml::CallIntrinsicOp>(
        i32, b_.getStringAttr("llvm.nvvm.read.ptx.sreg." + name), ValueRange{});
    return b_.create<mlir::arith::ExtUIOp>(b_.getI64Type(), read->getResult(0));
  }

  Value own_scratch(Value all, Value thread, int64_t given_bytes) {
    const mlir::Type i8 = b_.getI8Type();
    const auto number = [&](int64_t n) -> Value {
      return b_.create<mlir::arith::ConstantOp>(b_.getI64IntegerAttr(n));
    };
    if (given_bytes > 0) {
      const Value offset = b_.create<mlir::arith::MulIOp>(thread, number(given_bytes));
      return b_.create<ml::GEPOp>(global_, i8, all, ValueRange{offset});
    }
    const Dim bytes = scratch_layout(program_).bytes;
    const auto generic = ml::LLVMPointerType::get(b_.getContext());
    return b_.create<ml::AllocaOp>(generic, i8, number(std::max<int64_t>(bytes.range().high, 1)),
                                   16);
  }

  mlir::ImplicitLocOpBuilder b_;
  mlir::ModuleOp module_;
  const TileProgram& program_;
  const std::vector<Symbol> symbols_;
  const mlir::Type global_;
};

}  // namespace

Result<int64_t> gpu_scratch_bytes(const TileProgram& program) {
  const int64_t bytes = scratch_layout(program).bytes.range().high;
  if (bytes <= kMostScratchBytes) return bytes;
  return over_limit("each thread of a GPU would need {} bytes of scratch, of {} at most", bytes,
                    kMostScratchBytes);
}

void emit_gpu_kernel(mlir::ModuleOp module, const TileProgram& program,
                     std::span<const GpuPhase> phases) {
  GpuPhaseWriter writer(*module.getContext(), module, program);
  for (size_t i = 0; i < phases.size(); ++i) writer.write(program.phases[i], phases[i]);
}

}  // namespace hone::code
