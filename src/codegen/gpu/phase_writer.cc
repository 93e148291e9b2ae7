#include "codegen/gpu/phase_writer.h"

#include <algorithm>

#include "codegen/emit/emitter.h"
#include "codegen/gpu/gpu_code.h"
#include "program/tiles/bind.h"
#include "program/tiles/calling.h"
#include "program/tiles/swizzle.h"
#include "program/tiles/waiting.h"

namespace hone::code {

namespace {

namespace ml = mlir::LLVM;

// Address spaces of LLVM's back end.
constexpr unsigned kGlobalMemory = 1, kSharedMemory = 3;
// A thread that has more of scratch is too much for a GPU with many threads.
constexpr int64_t kMostScratchBytes = int64_t{1} << 24;

constexpr llvm::StringRef kBlockMemory = "block_memory";

constexpr Machine kGpu = {.has_fma = true, .has_f16 = true};

class GpuPhaseWriter {
 public:
  GpuPhaseWriter(mlir::MLIRContext& context, mlir::ModuleOp module, const TileProgram& program,
                 bool has_aligned_buffers)
      : has_aligned_buffers_(has_aligned_buffers),
        b_(mlir::UnknownLoc::get(&context), &context),
        module_(module),
        program_(program),
        symbols_(symbols_of(program)),
        chip_layout_(chip_layout(program)),
        global_(ml::LLVMPointerType::get(&context, kGlobalMemory)),
        shared_(ml::LLVMPointerType::get(&context, kSharedMemory)) {
    if (chip_layout_.bytes > 0) declare_block_memory();
  }

  void write(const tile::Loop& phase, const GpuPhase& made) {
    ml::LLVMFuncOp function = declare(made);
    Emitter::Surroundings around;
    unsigned next = 0;
    const auto argument = [&] { return function.getArgument(next++); };
    for (tile::BufferId id = 0; id < program_.buffers.size(); ++id) {
      const BufferRole role = program_.buffers[id].role;
      if (is_passed(role) && has_aligned_buffers_)
        function.setArgAttr(next, "llvm.align", b_.getI64IntegerAttr(kGpuBufferAlignment));
      // Kernels ahead of this one may still write it: no access moves before the wait.
      const bool may_change = has_wait(phase) && !program_.buffers[id].is_constant;
      if (is_passed(role) && is_apart(id) && !may_change) {
        function.setArgAttr(next, "llvm.noalias", b_.getUnitAttr());
        // Such memory is read by way of another cache.
        if (role == BufferRole::input) function.setArgAttr(next, "llvm.readonly", b_.getUnitAttr());
      }
      around.buffers.push_back(is_passed(role) ? argument() : Value());
    }
    if (phase.exec == Exec::blocks) place_on_chip(around);
    for (const Symbol& symbol : symbols_) around.symbols[symbol.name()] = argument();
    const Value scratch = argument();
    for (size_t i = 0; i < made.maps.size(); ++i) {
      function.setArgAttr(next, "llvm.byval", mlir::TypeAttr::get(map_type()));
      function.setArgAttr(next, "llvm.align", b_.getI64IntegerAttr(kMapAlignment));
      around.maps.push_back(argument());
    }
    const Value begin = argument();
    around.end = argument();
    // No product of three sizes overflows: a grid has fewer than 2^31 blocks of 1,024 threads.
    const Value width = special_register("ntid.x");
    const Value block = special_register("ctaid.x"), blocks = special_register("nctaid.x");
    const auto product = [&](Value a, Value b) { return b_.create<mlir::arith::MulIOp>(a, b); };
    const auto sum = [&](Value a, Value b) { return b_.create<mlir::arith::AddIOp>(a, b); };
    around.thread = special_register("tid.x");
    const Value thread = sum(product(block, width), around.thread);
    const bool by_block = made.trip_of == TripOf::block;
    around.begin = sum(begin, by_block ? block : thread);
    around.step = by_block ? blocks : product(blocks, width).getResult();
    around.block_threads = block_threads(phase, program_);
    around.scratch = own_scratch(scratch, thread, made.scratch_bytes);
    Emitter emitter(b_, program_, kGpu, around);
    emitter.phase(phase);
    b_.create<ml::ReturnOp>(ValueRange{});
  }

 private:
  ml::LLVMFuncOp declare(const GpuPhase& made) {
    llvm::SmallVector<mlir::Type> parameters;
    for (const TileBuffer& buffer : program_.buffers)
      if (is_passed(buffer.role)) parameters.push_back(global_);
    parameters.append(symbols_.size(), b_.getI64Type());
    parameters.push_back(global_);
    parameters.append(made.maps.size(), ml::LLVMPointerType::get(b_.getContext()));
    parameters.append(2, b_.getI64Type());
    HONE_CHECK(std::ssize(parameters) == parameter_words(program_) + std::ssize(made.maps),
               "parameters are miscounted");
    b_.setInsertionPointToEnd(module_.getBody());
    const auto type = ml::LLVMFunctionType::get(ml::LLVMVoidType::get(b_.getContext()), parameters);
    auto function = b_.create<ml::LLVMFuncOp>(made.symbol, type, ml::Linkage::External,
                                              /*dsoLocal=*/false, ml::CConv::PTX_Kernel);
    function.setPassthroughAttr(b_.getArrayAttr({b_.getStringAttr("nounwind")}));
    b_.setInsertionPointToStart(function.addEntryBlock(b_));
    return function;
  }

  mlir::Type map_type() { return ml::LLVMArrayType::get(b_.getI8Type(), kMapBytes); }

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

  // All phases use the same memory, one after the other.
  void declare_block_memory() {
    b_.setInsertionPointToEnd(module_.getBody());
    const auto type = ml::LLVMArrayType::get(b_.getI8Type(), 0);
    b_.create<ml::GlobalOp>(type, /*isConstant=*/false, ml::Linkage::External, kBlockMemory,
                            mlir::Attribute(), alignment_on_chip(), kSharedMemory);
  }

  uint64_t alignment_on_chip() const {
    const bool has_swizzle = std::ranges::any_of(
        program_.buffers, [](const TileBuffer& buffer) { return buffer.is_swizzled; });
    return has_swizzle ? kSwizzledAlignment : kGpuBufferAlignment;
  }

  // The buffers of a block, and those of its threads.
  void place_on_chip(Emitter::Surroundings& around) {
    const mlir::Type i8 = b_.getI8Type();
    for (tile::BufferId id = 0; id < program_.buffers.size(); ++id) {
      const TileBuffer& buffer = program_.buffers[id];
      if (buffer.role == BufferRole::block) {
        const Value all = b_.create<ml::AddressOfOp>(shared_, kBlockMemory);
        const auto offset = static_cast<int32_t>(chip_layout_.offsets[id]);
        around.buffers[id] =
            b_.create<ml::GEPOp>(shared_, i8, all, llvm::ArrayRef<ml::GEPArg>{offset});
      }
      if (buffer.role == BufferRole::own)
        around.buffers[id] = local_memory(bytes_of(buffer.type).value());
    }
  }

  Value local_memory(int64_t bytes) {
    const auto generic = ml::LLVMPointerType::get(b_.getContext());
    const Value count =
        b_.create<mlir::arith::ConstantOp>(b_.getI64IntegerAttr(std::max<int64_t>(bytes, 1)));
    return b_.create<ml::AllocaOp>(generic, b_.getI8Type(), count, 16);
  }

  Value own_scratch(Value all, Value thread, int64_t given_bytes) {
    if (given_bytes == 0) return local_memory(scratch_layout(program_).bytes.range().high);
    const Value bytes = b_.create<mlir::arith::ConstantOp>(b_.getI64IntegerAttr(given_bytes));
    const Value offset = b_.create<mlir::arith::MulIOp>(thread, bytes);
    return b_.create<ml::GEPOp>(global_, b_.getI8Type(), all, ValueRange{offset});
  }

  const bool has_aligned_buffers_;
  mlir::ImplicitLocOpBuilder b_;
  mlir::ModuleOp module_;
  const TileProgram& program_;
  const std::vector<Symbol> symbols_;
  const ChipLayout chip_layout_;
  const mlir::Type global_, shared_;
};

}  // namespace

int64_t parameter_words(const TileProgram& program) {
  constexpr int64_t kScratchAndTrips = 3;
  const auto is_argument = [](const TileBuffer& buffer) { return is_passed(buffer.role); };
  return std::ranges::count_if(program.buffers, is_argument) + std::ssize(symbols_of(program)) +
         kScratchAndTrips;
}

Result<int64_t> gpu_scratch_bytes(const TileProgram& program) {
  const int64_t bytes = scratch_layout(program).bytes.range().high;
  if (bytes <= kMostScratchBytes) return bytes;
  return unsupported("each thread of a GPU would need {} bytes of scratch, of {} at most", bytes,
                     kMostScratchBytes);
}

void emit_gpu_kernel(mlir::ModuleOp module, const TileProgram& program,
                     std::span<const GpuPhase> phases, bool has_aligned_buffers) {
  GpuPhaseWriter writer(*module.getContext(), module, program, has_aligned_buffers);
  for (size_t i = 0; i < phases.size(); ++i) writer.write(program.phases[i], phases[i]);
}

}  // namespace hone::code
