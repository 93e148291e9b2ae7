#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "codegen/emit/emitter.h"

// Products on the matrix unit of AMX: eight tiles of up to 16 rows of 64 bytes, which intrinsics
// name by number. Tiles 0 to 3 hold the sums of two by two tiles, 4 and 5 those of the left
// operand, 6 and 7 those of the right one.

namespace hone::code {

using namespace tile;

namespace {

constexpr int64_t kMostRows = 16, kTileBytes = 64, kTileWords = 16;
constexpr int64_t kLeft = 4, kRight = 6;

void call(mlir::ImplicitLocOpBuilder& b, llvm::StringRef intrinsic, ValueRange arguments) {
  b.create<mlir::LLVM::CallIntrinsicOp>(mlir::Type(), intrinsic, arguments);
}

bool is_signed(const TileBuffer& words) { return words.type.dtype() == DType::i32; }

// The numbers of a word that one instruction multiplies.
llvm::StringRef instruction(const TileProgram& program, const Product& s) {
  if (program.buffers[s.sums].type.dtype() == DType::f32) return "llvm.x86.tdpbf16ps";
  const bool lhs = is_signed(program.buffers[s.lhs]), rhs = is_signed(program.buffers[s.rhs]);
  if (lhs) return rhs ? "llvm.x86.tdpbssd" : "llvm.x86.tdpbsud";
  return rhs ? "llvm.x86.tdpbusd" : "llvm.x86.tdpbuud";
}

// Parts p and q of all products, p + q below their number, so that few are loaded again.
std::span<const std::pair<int, int>> parts_in_turn(int64_t parts) {
  static constexpr std::pair<int, int> kOne[] = {{0, 0}}, kTwo[] = {{0, 1}, {0, 0}, {1, 0}},
                                       kThree[] = {{0, 2}, {0, 1}, {1, 1}, {1, 0}, {0, 0}, {2, 0}};
  if (parts == 1) return kOne;
  return parts == 2 ? std::span<const std::pair<int, int>>(kTwo) : kThree;
}

// Rows of the first or the second tile of those one above the other.
int64_t rows_of(int64_t rows, bool is_second) {
  return is_second ? std::max<int64_t>(rows - kMostRows, 0) : std::min(rows, kMostRows);
}

}  // namespace

const Product* first_product(const Loop& loop) {
  for (const Statement& statement : loop.body) {
    if (const auto* product = std::get_if<Product>(&statement.kind)) return product;
    const auto* inner = std::get_if<Loop>(&statement.kind);
    if (const Product* found = inner != nullptr ? first_product(*inner) : nullptr) return found;
  }
  return nullptr;
}

Status check_products(const TileProgram& program, const Target& target) {
  for (const Loop& phase : program.phases) {
    const Product* product = first_product(phase);
    if (product == nullptr) continue;
    const bool are_pairs = program.buffers[product->sums].type.dtype() == DType::f32;
    const Extension needed = are_pairs ? Extension::amx_bf16 : Extension::amx_int8;
    if (!target.extensions.contains(needed))
      return unsupported("a product on a target without {}", name(needed));
  }
  return {};
}

// The configuration: palette 1; of each tile the bytes of a row, 16 bits each from byte 16 on, and
// the rows, 8 bits each from byte 48 on.
void Emitter::begin_products(const Product& product) {
  std::array<int64_t, 8> configuration = {1, 0, 0x0040'0040'0040'0040, 0x0040'0040'0040'0040, 0, 0,
                                          0, 0};
  const int64_t rows = program_.buffers[product.lhs].type.dim(3).value();
  // A tile has one row at least, used or not.
  for (int64_t tile = 0; tile < 8; ++tile) {
    const bool is_second = tile == 2 || tile == 3 || tile == kLeft + 1;
    const int64_t own = tile < kRight ? std::max<int64_t>(rows_of(rows, is_second), 1) : kTileWords;
    configuration[6] |= own << 8 * tile;
  }
  const auto pointer = mlir::LLVM::LLVMPointerType::get(b_.getContext());
  const mlir::Type i64 = code_.i(64);
  const auto words = static_cast<int64_t>(configuration.size());
  const Value memory = b_.create<mlir::LLVM::AllocaOp>(pointer, i64, code_.integer(i64, words), 64);
  for (int64_t i = 0; i < words; ++i) {
    const Value to =
        b_.create<mlir::LLVM::GEPOp>(pointer, i64, memory, ValueRange{code_.integer(i64, i)});
    b_.create<mlir::LLVM::StoreOp>(code_.integer(i64, configuration[static_cast<size_t>(i)]), to);
  }
  call(b_, "llvm.x86.ldtilecfg", memory);
}

void Emitter::end_products() { call(b_, "llvm.x86.tilerelease", {}); }

void Emitter::emit(const Product& s) {
  const Type lhs = program_.buffers[s.lhs].type, rhs = program_.buffers[s.rhs].type;
  const int64_t parts = lhs.dim(1).value(), steps = lhs.dim(2).value();
  const int64_t rows = lhs.dim(3).value(), columns = rhs.dim(3).value();
  const llvm::StringRef multiply = instruction(program_, s);
  const mlir::Type i64 = code_.i(64);
  const int64_t high = rows > kMostRows ? 2 : 1, wide = columns / kTileWords;
  const auto tile = [&](int64_t n) { return code_.integer(code_.i(8), n); };
  const auto at = [&](BufferId buffer, const IndexExpr& block, int64_t size, Value within) {
    return pointer(buffer, code_.add(index(here(block * size, {}), {}), within));
  };
  const auto each_sum = [&](llvm::StringRef intrinsic) {
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j) {
        const Value corner = code_.integer(i64, i * columns * kMostRows + j * kTileWords);
        const Value memory = at(s.sums, s.sums_block, rows * columns, corner);
        call(b_, intrinsic, {tile(2 * i + j), memory, code_.integer(i64, 4 * columns)});
      }
  };
  if (s.is_first)
    for (int64_t i = 0; i < high; ++i)
      for (int64_t j = 0; j < wide; ++j) call(b_, "llvm.x86.tilezero", tile(2 * i + j));
  else
    each_sum("llvm.x86.tileloadd64");
  auto loop = b_.create<mlir::scf::ForOp>(code_.integer(i64, 0), code_.integer(i64, steps),
                                          code_.integer(i64, 1));
  {
    mlir::OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(loop.getBody());
    const Value step = loop.getInductionVar();
    const auto load = [&](int64_t number, BufferId buffer, const IndexExpr& block, int64_t size,
                          int64_t step_size, int64_t offset, int64_t stride) {
      const Value within =
          code_.add(code_.mul(step, code_.integer(i64, step_size)), code_.integer(i64, offset));
      call(b_, "llvm.x86.tileloadd64",
           {tile(number), at(buffer, block, size, within), code_.integer(i64, stride)});
    };
    const int64_t left = steps * rows * kTileWords, right = steps * kTileWords * columns;
    const auto load_left = [&](int64_t part) {
      for (int64_t i = 0; i < high; ++i)
        load(kLeft + i, s.lhs, s.lhs_block, parts * left, rows * kTileWords,
             part * left + i * kMostRows * kTileWords, kTileBytes);
    };
    const auto load_right = [&](int64_t part) {
      for (int64_t j = 0; j < wide; ++j)
        load(kRight + j, s.rhs, s.rhs_block, parts * right, kTileWords * columns,
             part * right + j * kTileWords, 4 * columns);
    };
    int64_t p = -1, q = -1;  // the parts that are loaded
    for (const auto& [next_p, next_q] : parts_in_turn(parts)) {
      if (p != next_p) load_left(p = next_p);
      if (q != next_q) load_right(q = next_q);
      for (int64_t i = 0; i < high; ++i)
        for (int64_t j = 0; j < wide; ++j)
          call(b_, multiply, {tile(2 * i + j), tile(kLeft + i), tile(kRight + j)});
    }
  }
  each_sum("llvm.x86.tilestored64");
}

}  // namespace hone::code
