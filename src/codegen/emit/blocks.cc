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
