#include <algorithm>
#include <array>

#include "codegen/emit/emitter.h"

// Products on the matrix unit of AMX: eight tiles of 16 rows of 64 bytes, which intrinsics name by
// number. Tiles 0 to 3 hold the sums of two by two tiles, 4 and 5 those of the left operand, 6 and
// 7 those of the right one.

namespace hone::code {

using namespace tile;

namespace {

constexpr int64_t kTileRows = 16, kTileBytes = 64;
constexpr int64_t kLeft = 4, kRight = 6;

void call(mlir::ImplicitLocOpBuilder& b, llvm::StringRef intrinsic, ValueRange arguments) {
  b.create<mlir::LLVM::CallIntrinsicOp>(mlir::Type(), intrinsic, arguments);
}

}  // namespace

bool has_product(const Loop& loop) {
  return std::ranges::any_of(loop.body, [](const Statement& statement) {
    const Loop* inner = std::get_if<Loop>(&statement.kind);
    return inner != nullptr ? has_product(*inner) : std::holds_alternative<Product>(statement.kind);
  });
}

Status check_products(const TileProgram& program, const Target& target) {
  if (target.extensions.contains(Extension::amx_bf16) ||
      std::ranges::none_of(program.phases, has_product))
    return {};
  return unsupported("a product on a target without amx_bf16");
}

// The configuration: palette 1; of each tile the bytes of a row, 16 bits each from byte 16 on, and
// the rows, 8 bits each from byte 48 on.
void Emitter::begin_products() {
  constexpr std::array<int64_t, 8> kConfiguration = {
      1, 0, 0x0040'0040'0040'0040, 0x0040'0040'0040'0040, 0, 0, 0x1010'1010'1010'1010, 0};
  const auto pointer = mlir::LLVM::LLVMPointerType::get(b_.getContext());
  const mlir::Type i64 = code_.i(64);
  const auto words = static_cast<int64_t>(kConfiguration.size());
  const Value memory = b_.create<mlir::LLVM::AllocaOp>(pointer, i64, code_.integer(i64, words), 64);
  for (int64_t i = 0; i < words; ++i) {
    const Value to =
        b_.create<mlir::LLVM::GEPOp>(pointer, i64, memory, ValueRange{code_.integer(i64, i)});
    b_.create<mlir::LLVM::StoreOp>(code_.integer(i64, kConfiguration[static_cast<size_t>(i)]), to);
  }
  call(b_, "llvm.x86.ldtilecfg", memory);
}

void Emitter::end_products() { call(b_, "llvm.x86.tilerelease", {}); }

void Emitter::emit(const Product& s) {
  const Type lhs = program_.buffers[s.lhs].type, rhs = program_.buffers[s.rhs].type;
  const int64_t parts = lhs.dim(1).value(), steps = lhs.dim(2).value();
  const int64_t rows = lhs.dim(3).value(), columns = rhs.dim(3).value();
  const mlir::Type i64 = code_.i(64);
  const auto tile = [&](int64_t n) { return code_.integer(code_.i(8), n); };
  const auto at = [&](BufferId buffer, const IndexExpr& block, int64_t size, Value within) {
    return pointer(buffer, code_.add(index(here(block * size, {}), {}), within));
  };
  const auto each_sum = [&](llvm::StringRef intrinsic) {
    for (int64_t i = 0; i < rows / kTileRows; ++i)
      for (int64_t j = 0; j < columns / kTileRows; ++j) {
        const Value corner = code_.integer(i64, (i * columns + j) * kTileRows);
        const Value memory = at(s.sums, s.sums_block, rows * columns, corner);
        call(b_, intrinsic, {tile(2 * i + j), memory, code_.integer(i64, 4 * columns)});
      }
  };
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
    const int64_t left = steps * rows * kTileRows, right = steps * kTileRows * columns;
    for (int64_t p = 0; p < parts; ++p) {
      for (int64_t i = 0; i < rows / kTileRows; ++i)
        load(kLeft + i, s.lhs, s.lhs_block, parts * left, rows * kTileRows,
             p * left + i * kTileRows * kTileRows, kTileBytes);
      for (int64_t q = 0; p + q < parts; ++q) {
        for (int64_t j = 0; j < columns / kTileRows; ++j)
          load(kRight + j, s.rhs, s.rhs_block, parts * right, kTileRows * columns,
               q * right + j * kTileRows, 4 * columns);
        for (int64_t i = 0; i < rows / kTileRows; ++i)
          for (int64_t j = 0; j < columns / kTileRows; ++j)
            call(b_, "llvm.x86.tdpbf16ps", {tile(2 * i + j), tile(kLeft + i), tile(kRight + j)});
      }
    }
  }
  each_sum("llvm.x86.tilestored64");
}

}  // namespace hone::code
