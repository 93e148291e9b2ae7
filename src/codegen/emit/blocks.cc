#include "codegen/emit/emitter.h"
#include "target/gpu.h"

// The threads of a block work together by instructions of NVIDIA's GPUs.

namespace hone::code {

using namespace tile;

// All threads of a block come to this loop. Each takes one trip, the last ones perhaps none.
void Emitter::threads_of_block(const Loop& s) {
  const auto position = static_cast<size_t>(s.index);
  const int64_t extent = program_.indices[position].high.value();
  indices_[position] = {0, {around_.thread}};
  Value has_trip = {};
  if (extent < around_.block_threads)
    has_trip = code_.compare(Ints::slt, around_.thread, code_.integer(extent, around_.thread));
  where(has_trip, [&] { emit(s.body); });
}

void Emitter::emit(const Barrier& /*s*/) {
  b_.create<mlir::LLVM::CallIntrinsicOp>(mlir::Type(), b_.getStringAttr("llvm.nvvm.barrier0"),
                                         ValueRange{});
}

void Emitter::emit(const WarpCombine& s) {
  const DType element = dtype(s.buffer);
  const DType types[] = {element, element};
  const Op op = Op::get(s.combine);
  const Place at_place = place(s.buffer, s.index, {}, {});
  const Value offset = index(at_place.offset, {});
  Value all = load_element(s.buffer, offset);
  for (int64_t distance = kWarpLanes / 2; distance > 0; distance /= 2) {
    const Value both[] = {all, of_lane_apart(all, distance)};
    all = numbers_.compute(op, types, element, both);
  }
  store_element(s.buffer, offset, all);
}

void Emitter::emit(const BlockVote& s) {
  const Value own = load_element(s.buffer, index(place(s.buffer, s.at, {}, {}).offset, {}));
  const Value any = intrinsic(code_.i(32), "llvm.nvvm.barrier0.or", {own});
  const Value is_any = code_.compare(Ints::ne, any, code_.integer(0, any));
  indices_[static_cast<size_t>(s.index)] = {0, {code_.resized(is_any, code_.i(64), false)}};
}

// ---- Copies in the background
// --------------------------------------------------------------------

Value Emitter::intrinsic(mlir::Type result, llvm::StringRef name, ValueRange operands) {
  auto call = b_.create<mlir::LLVM::CallIntrinsicOp>(result, b_.getStringAttr(name), operands);
  return result ? call->getResult(0) : Value();
}

// Where a guard does not hold no byte is read, and all are zeros.
void Emitter::emit(const AsyncCopy& s) {
  const int64_t bytes = s.count * bits(dtype(s.to)) / 8;
  const LoopSet loops = variance_.of(s.to_index, {}) | variance_.of(s.from_index, s.guards);
  const std::string name =
      fmt::format("llvm.nvvm.cp.async.{}.shared.global.{}.s", bytes == 16 ? "cg" : "ca", bytes);
  open_.each(loops, [&](const Trips& trips) {
    const Place to = place(s.to, s.to_index, {}, trips);
    const Place from = place(s.from, s.from_index, s.guards, trips);
    Value offset = index(from.offset, trips);
    Value read = code_.integer(code_.i(32), bytes);
    if (from.condition) {
      offset = code_.select(from.condition, offset, code_.integer(0, offset));
      read = code_.select(from.condition, read, code_.integer(0, read));
    }
    intrinsic({}, name, {pointer(s.to, index(to.offset, trips)), pointer(s.from, offset), read});
  });
}

void Emitter::emit(const CopyGroup& /*s*/) { intrinsic({}, "llvm.nvvm.cp.async.commit.group", {}); }

void Emitter::emit(const CopyWait& s) {
  intrinsic({}, "llvm.nvvm.cp.async.wait.group", {code_.integer(code_.i(32), s.open)});
}

// ---- Matrices of a warp
// --------------------------------------------------------------------------

void Emitter::emit(const MatrixLoad& s) {
  const int64_t numbers = numbers_of(program_.buffers[s.to]);
  const LoopSet loops = variance_.of(s.to_index, {}) | variance_.of(s.from_index, {});
  const std::string name = fmt::format("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x{}.b16.p3", s.count);
  const llvm::SmallVector<mlir::Type> words(static_cast<size_t>(s.count), code_.i(32));
  const mlir::Type all =
      s.count == 1 ? words[0] : mlir::LLVM::LLVMStructType::getLiteral(b_.getContext(), words);
  open_.each(loops, [&](const Trips& trips) {
    const Place from = place(s.from, s.from_index, {}, trips);
    const Value loaded = intrinsic(all, name, {pointer(s.from, index(from.offset, trips))});
    for (int64_t m = 0; m < s.count; ++m) {
      std::vector<IndexExpr> to_index = s.to_index;
      if (m >= numbers) to_index.back() = to_index.back() + IndexExpr(m / numbers);
      to_index.push_back(m % numbers);
      const Value word =
          s.count == 1 ? loaded : b_.create<mlir::LLVM::ExtractValueOp>(loaded, m).getResult();
      store_element(s.to, index(place(s.to, to_index, {}, trips).offset, trips), word);
    }
  });
}

// ---- Products of a warp
// --------------------------------------------------------------------------

void Emitter::emit(const WarpProduct& s) {
  const auto numbers = [&](BufferId buffer, std::vector<IndexExpr> index, int64_t count) {
    llvm::SmallVector<Value> offsets;
    index.push_back(0);
    for (int64_t i = 0; i < count; ++i) {
      index.back() = i;
      offsets.push_back(this->index(place(buffer, index, {}, {}).offset, {}));
    }
    return offsets;
  };
  const bool is_half = s.numbers == DType::f16;
  const mlir::Type word =
      is_half ? mlir::Type(mlir::VectorType::get({2}, b_.getF16Type())) : mlir::Type(code_.i(32));
  llvm::SmallVector<Value> operands;
  const auto add_words = [&](BufferId buffer, const std::vector<IndexExpr>& index, int64_t count) {
    for (Value offset : numbers(buffer, index, count)) {
      const Value bits = load_element(buffer, offset);
      operands.push_back(is_half ? b_.create<mlir::LLVM::BitcastOp>(word, bits).getResult() : bits);
    }
  };
  add_words(s.lhs, s.lhs_index, 4);
  add_words(s.rhs, s.rhs_index, 2);
  const llvm::SmallVector<Value> sums = numbers(s.sums, s.sums_index, 4);
  for (Value offset : sums) operands.push_back(load_element(s.sums, offset));
  const llvm::StringRef name = is_half                    ? "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
                               : s.numbers == DType::bf16 ? "llvm.nvvm.mma.m16n8k16.row.col.bf16"
                                                          : "llvm.nvvm.mma.m16n8k8.row.col.tf32";
  const llvm::SmallVector<mlir::Type> four(4, code_.f32());
  const Value all =
      intrinsic(mlir::LLVM::LLVMStructType::getLiteral(b_.getContext(), four), name, operands);
  for (int64_t i = 0; i < 4; ++i)
    store_element(s.sums, sums[static_cast<size_t>(i)],
                  b_.create<mlir::LLVM::ExtractValueOp>(all, i));
}

// The number of the lane whose position differs in one bit. Lanes exchange words of 32 bits.
Value Emitter::of_lane_apart(Value number, int64_t distance) {
  const mlir::Type type = number.getType(), i32 = code_.i(32), i64 = code_.i(64);
  const int width = Instructions::width(number);
  const Value bits = code_.bitcast(number, code_.i(width));
  const auto exchanged = [&](Value word) -> Value {
    const Value all_lanes = code_.integer(i32, -1);
    auto call = b_.create<mlir::LLVM::CallIntrinsicOp>(
        i32, b_.getStringAttr("llvm.nvvm.shfl.sync.bfly.i32"),
        ValueRange{all_lanes, word, code_.integer(i32, distance),
                   code_.integer(i32, kWarpLanes - 1)});
    return call->getResult(0);
  };
  if (width <= 32)
    return code_.bitcast(
        code_.resized(exchanged(code_.resized(bits, i32, false)), code_.i(width), false), type);
  const Value low = exchanged(code_.resized(bits, i32, false));
  const Value high = exchanged(code_.resized(code_.shr(bits, 32), i32, false));
  const Value both =
      code_.or_(code_.resized(low, i64, false), code_.shl(code_.resized(high, i64, false), 32));
  return code_.bitcast(both, type);
}

}  // namespace hone::code
