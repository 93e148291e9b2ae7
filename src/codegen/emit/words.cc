#include <bit>
#include <string>

#include "base/planted.h"
#include "codegen/emit/emitter.h"

// Products by words. Bytes are taken four at a time. Where VNNI is missing, they are widened to 16
// bits. Then pmaddwd adds two products without loss, while pmaddubsw would cut the sum of two to 16
// bits. Numbers of bf16 are taken two at a time.

namespace hone::code {

using namespace tile;

namespace {

Value call(mlir::ImplicitLocOpBuilder& b, mlir::Type type, llvm::StringRef intrinsic,
           ValueRange arguments) {
  auto made = b.create<mlir::LLVM::CallIntrinsicOp>(type, b.getStringAttr(intrinsic), arguments);
  return made->getResult(0);
}

int64_t lanes_of(Value vector) {
  return mlir::cast<mlir::VectorType>(vector.getType()).getNumElements();
}

}  // namespace

void Emitter::emit(const Quad& s) {
  const LoopSet loops = variance_.scalars[s.result];
  define(s.result, grid(loops, [&](const Trips& trips) {
           const Value a = at(s.a, trips, loops), b = at(s.b, trips, loops);
           return quad(HONE_PLANT(quad_sign, a, b), HONE_PLANT(quad_sign, b, a),
                       at(s.c, trips, loops));
         }));
}

void Emitter::emit(const Pair& s) {
  const LoopSet loops = variance_.scalars[s.result];
  define(s.result, grid(loops, [&](const Trips& trips) {
           return pair(at(s.a, trips, loops), at(s.b, trips, loops), at(s.c, trips, loops));
         }));
}

Value Emitter::by_parts(Value a, Value b, Value c, OfVectors each) {
  if (!Instructions::is_vector(a)) return {};
  const int64_t count = std::min(lanes_of(a), machine_.vector_bytes / 4);
  const bool is_whole = lanes_of(a) % count == 0 && count % 4 == 0 &&
                        std::has_single_bit(static_cast<uint64_t>(count)) &&
                        std::has_single_bit(static_cast<uint64_t>(lanes_of(a) / count));
  if (!is_whole) return {};
  llvm::SmallVector<Value> parts;
  for (int64_t lane = 0; lane < lanes_of(a); lane += count) {
    const auto part = [&](Value v) {
      return count == lanes_of(v) ? v : code_.slice(v, lane, count);
    };
    parts.push_back((this->*each)(part(a), part(b), part(c)));
  }
  return code_.joined(parts);
}

// Computes by parts that one instruction takes, or else with ordinary arithmetic.
Value Emitter::quad(Value a, Value b, Value c) {
  if (const Value sums = by_parts(a, b, c, &Emitter::quad_of_vectors)) return sums;
  for (int byte = 0; byte < 4; ++byte) {
    const Value left = code_.and_(code_.shr(a, 8 * byte), code_.integer(0xff, a));
    const Value right = code_.sar(code_.shl(b, 24 - 8 * byte), 24);
    c = code_.add(c, code_.mul(left, right));
  }
  return c;
}

Value Emitter::pair(Value a, Value b, Value c) {
  if (machine_.has_bf16)
    if (const Value sums = by_parts(a, b, c, &Emitter::pair_of_vectors)) return sums;
  const auto number = [&](Value word, bool is_second) {
    const Value bits =
        is_second ? code_.and_(word, code_.integer(0xffff0000, word)) : code_.shl(word, 16);
    return code_.bitcast(bits, code_.f32());
  };
  for (bool is_second : {false, true})
    c = numbers_.fma(DType::f32, number(a, is_second), number(b, is_second), c);
  return c;
}

Value Emitter::pair_of_vectors(Value a, Value b, Value c) {
  const auto halves = mlir::VectorType::get({2 * lanes_of(a)}, code_.builder().getBF16Type());
  const auto as_halves = [&](Value v) -> Value {
    return b_.create<mlir::LLVM::BitcastOp>(halves, v);
  };
  const std::string name = "llvm.x86.avx512bf16.dpbf16ps." + std::to_string(32 * lanes_of(a));
  return call(b_, c.getType(), name, {c, as_halves(a), as_halves(b)});
}

Value Emitter::quad_of_vectors(Value a, Value b, Value c) {
  const int64_t bits = 32 * lanes_of(a);
  if (machine_.has_vnni) {
    const std::string name = "llvm.x86.avx512.vpdpbusd." + std::to_string(bits);
    return call(b_, c.getType(), name, {c, a, b});
  }
  const auto halves = mlir::VectorType::get({2 * lanes_of(a)}, code_.i(16));
  const auto as_halves = [&](Value v) -> Value {
    return b_.create<mlir::LLVM::BitcastOp>(halves, v);
  };
  const char* const name = bits == 512   ? "llvm.x86.avx512.pmaddw.d.512"
                           : bits == 256 ? "llvm.x86.avx2.pmadd.wd"
                                         : "llvm.x86.sse2.pmadd.wd";
  const Value left = as_halves(a), right = as_halves(b);
  const Value even =
      call(b_, c.getType(), name,
           {code_.and_(left, code_.integer(0xff, left)), code_.sar(code_.shl(right, 8), 8)});
  const Value odd = call(b_, c.getType(), name, {code_.shr(left, 8), code_.sar(right, 8)});
  return code_.add(c, code_.add(even, odd));
}

}  // namespace hone::code
