#include <algorithm>

#include "codegen/emit/emitter.h"
#include "program/tiles/swizzle.h"
#include "runtime/cuda/gpu_kernel.h"

// Copies of boxes, what waits for them, and products of warpgroups. LLVM has no intrinsics for
// these, so they are PTX: of operands $0, $1, ...

namespace hone::code {

using namespace tile;

namespace {

// A wait that would never end, because a phase lacks bytes, ends the kernel with an error instead.
constexpr llvm::StringRef kWait =
    "{ .reg .pred p; .reg .b32 c; mov.b32 c, 0;\n"
    "L: mbarrier.try_wait.parity.shared.b64 p, [$0], $1; @p bra D;\n"
    "add.u32 c, c, 1; setp.lt.u32 p, c, 5000000; @p bra L; trap;\n"
    "D: }";

void collect(const Block& body, std::vector<BoxMap>& maps) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.kind)) collect(loop->body, maps);
    const auto* copy = std::get_if<TensorCopy>(&statement.kind);
    if (copy == nullptr) continue;
    const BoxMap map = {copy->from, copy->axis, copy->rows};
    if (std::ranges::find(maps, map) == maps.end()) maps.push_back(map);
  }
}

void collect(const Block& body, std::vector<BufferId>& barriers) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.kind)) collect(loop->body, barriers);
    const auto* init = std::get_if<MbarrierInit>(&statement.kind);
    if (init != nullptr && std::ranges::find(barriers, init->buffer) == barriers.end())
      barriers.push_back(init->buffer);
  }
}

}  // namespace

std::vector<BoxMap> box_maps(const Loop& phase) {
  std::vector<BoxMap> maps;
  collect(phase.body, maps);
  return maps;
}

// ---- Places in memory of the block --------------------------------------------------------------

Value Emitter::ptx(mlir::Type result, const std::string& text, const std::string& constraints,
                   ValueRange operands) {
  auto code = b_.create<mlir::LLVM::InlineAsmOp>(
      result ? mlir::TypeRange(result) : mlir::TypeRange(), operands, text, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      mlir::LLVM::AsmDialectAttr::get(b_.getContext(), mlir::LLVM::AsmDialect::AD_ATT),
      mlir::ArrayAttr());
  return result ? code.getRes() : Value();
}

// Such instructions take addresses of 32 bits.
Value Emitter::chip_address(BufferId buffer, std::vector<IndexExpr> index, const Trips& trips) {
  const TileBuffer& of = program_.buffers[buffer];
  // The first row of eight lies where it would without a swizzle.
  if (of.is_swizzled) index.push_back(0);
  const Value offset = this->index(place(buffer, index, {}, trips).offset, trips);
  const Value base = around_.buffers[buffer];
  const Value at = b_.create<mlir::LLVM::GEPOp>(
      base.getType(), numbers_.memory_type(of.type.dtype()), base, ValueRange{offset});
  return b_.create<mlir::LLVM::PtrToIntOp>(code_.i(32), at);
}

// ---- Phases of copies ---------------------------------------------------------------------------

void Emitter::emit(const MbarrierInit& s) {
  open_.each(variance_.of(s.index, {}), [&](const Trips& trips) {
    ptx({},
        fmt::format("mbarrier.init.shared.b64 [$0], {};\nfence.mbarrier_init.release.cluster;",
                    s.arrivals),
        "r,~{memory}", {chip_address(s.buffer, s.index, trips)});
  });
}

void Emitter::emit(const MbarrierExpect& s) {
  open_.each(variance_.of(s.index, {}), [&](const Trips& trips) {
    ptx({}, fmt::format("mbarrier.arrive.expect_tx.shared.b64 _, [$0], {};", s.bytes),
        "r,~{memory}", {chip_address(s.buffer, s.index, trips)});
  });
}

void Emitter::emit(const MbarrierWait& s) {
  const LoopSet loops = variance_.of(s.index, {}) | variance_.of(s.parity);
  open_.each(loops, [&](const Trips& trips) {
    const Value parity = index(here(s.parity, trips), trips);
    ptx({}, kWait.str(), "r,r,~{memory}",
        {chip_address(s.buffer, s.index, trips), code_.resized(parity, code_.i(32), false)});
  });
}

// The next trip of the blocks loops makes them anew, where the memory may hold none.
void Emitter::end_barriers(const Loop& phase) {
  std::vector<BufferId> barriers;
  collect(phase.body, barriers);
  if (barriers.empty()) return;
  emit(Barrier());
  where(code_.compare(Ints::eq, around_.thread, code_.integer(0, around_.thread)), [&] {
    for (BufferId buffer : barriers)
      for (int64_t i = 0; i < program_.buffers[buffer].type.static_elements(); ++i) {
        const Value at = pointer(buffer, code_.integer(code_.i(64), i));
        ptx({}, "mbarrier.inval.shared.b64 [$0];", "r,~{memory}",
            {b_.create<mlir::LLVM::PtrToIntOp>(code_.i(32), at)});
      }
  });
}

// ---- Copies of boxes ----------------------------------------------------------------------------

void Emitter::emit(const TensorCopy& s) {
  const auto map = std::ranges::find(maps_, BoxMap{s.from, s.axis, s.rows});
  HONE_CHECK(map != maps_.end(), "a box has no map");
  const Value table = around_.maps[static_cast<size_t>(map - maps_.begin())];
  const LoopSet loops = variance_.of(s.to_index, {}) | variance_.of(s.from_index, {}) |
                        variance_.of(s.barrier_index, {});
  const size_t rank = s.from_index.size();
  open_.each(loops, [&](const Trips& trips) {
    llvm::SmallVector<Value> operands = {chip_address(s.to, s.to_index, trips), table,
                                         chip_address(s.barrier, s.barrier_index, trips)};
    std::string place, constraints = "r,l,r";
    for (size_t i = 0; i < rank; ++i) {  // the last dim first
      const IndexExpr at = here(bounds_.simplified(s.from_index[rank - 1 - i]), trips);
      operands.push_back(code_.resized(index(at, trips), code_.i(32), true));
      place += fmt::format("{}${}", i == 0 ? "" : ", ", i + 3);
      constraints += ",r";
    }
    ptx({},
        fmt::format("cp.async.bulk.tensor.{}d.shared::cluster.global.mbarrier::complete_tx::bytes "
                    "[$0], [$1, {{{}}}], [$2];",
                    rank, place),
        constraints + ",~{memory}", operands);
  });
}

void Emitter::emit(const ProxyFence& /*s*/) {
  ptx({}, "fence.proxy.async.shared::cta;", "~{memory}", {});
}

// Kernels behind this one may begin as soon as all of its blocks have come here.
void Emitter::emit(const KernelWait& /*s*/) {
  ptx({}, fmt::format("{};\ngriddepcontrol.launch_dependents;", kWaitsForKernels), "~{memory}", {});
}

// ---- Products of warpgroups ---------------------------------------------------------------------

// Rows of eight pieces lie as the swizzle of 128 bytes has them, and 1,024 bytes are from eight
// rows to the next eight. If the operand lies across, its next 64 lines are 64 rows away; else
// nobody reads that distance.
Value Emitter::matrix_descriptor(Value address, bool is_across) {
  constexpr int64_t kSwizzle128 = int64_t{1} << 62, kRowsApart = kSwizzledAlignment / 16;
  const int64_t lines_apart = is_across ? kGroupRows * kSwizzledRowBytes / 16 : 1;
  const mlir::Type wide = code_.i(64);
  const Value sixteenths = code_.shr(code_.resized(address, wide, false), 4);
  return code_.or_(sixteenths,
                   code_.integer(wide, kSwizzle128 | kRowsApart << 32 | lines_apart << 16));
}

// Four products of 32 bytes of the reduction make those of a row. All are one text with the wait
// for them, so nobody sees sums that are not there yet.
void Emitter::emit(const GroupProduct& s) {
  constexpr int64_t kProducts = 4, kBytes = kSwizzledRowBytes / kProducts;
  const int64_t numbers = kBytes * 8 / bits(s.numbers);
  // From a product to the next, in sixteenths of an address: these bytes, or as many rows as they
  // have numbers.
  const auto further = [&](bool is_across) {
    return (is_across ? numbers * kSwizzledRowBytes : kBytes) / 16;
  };
  const LoopSet loops = variance_.of(s.sums_index, {}) | variance_.of(s.lhs_index, {}) |
                        variance_.of(s.rhs_index, {});
  const int64_t count = s.columns / 2;
  open_.each(loops, [&](const Trips& trips) {
    llvm::SmallVector<Value> operands, places;
    std::string sums, outputs, inputs;
    for (int64_t i = 0; i < count; ++i) {
      std::vector<IndexExpr> at = s.sums_index;
      at.insert(at.end(), {IndexExpr(i / 4), IndexExpr(i % 4)});
      places.push_back(index(place(s.sums, at, {}, trips).offset, trips));
      operands.push_back(load_element(s.sums, places.back()));
      sums += fmt::format("{}${}", i == 0 ? "" : ", ", i);
      outputs += "=f,";
      inputs += fmt::format("{},", i);
    }
    const Value rows = code_.mul(code_.shr(around_.thread, 7),
                                 code_.integer(kGroupRows * kSwizzledRowBytes, around_.thread));
    const Value lhs =
        code_.add(chip_address(s.lhs, s.lhs_index, trips), code_.resized(rows, code_.i(32), false));
    operands.push_back(matrix_descriptor(lhs, s.lhs_across));
    operands.push_back(matrix_descriptor(chip_address(s.rhs, s.rhs_index, trips), s.rhs_across));
    // f32 has no operands across, and no words that say so.
    const bool is_tf32 = s.numbers == DType::f32;
    const std::string type(is_tf32 ? "tf32" : name(s.numbers));
    const std::string ways =
        is_tf32 ? "" : fmt::format(", {}, {}", int{s.lhs_across}, int{s.rhs_across});
    std::string text = fmt::format(
        "{{ .reg .b64 a, b;\nmov.b64 a, ${};\nmov.b64 b, ${};\nwgmma.fence.sync.aligned;\n",
        2 * count, 2 * count + 1);
    for (int64_t product = 0; product < kProducts; ++product) {
      if (product > 0)
        text += fmt::format("add.s64 a, a, {};\nadd.s64 b, b, {};\n", further(s.lhs_across),
                            further(s.rhs_across));
      text +=
          fmt::format("wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, a, b, 1, 1, 1{};\n",
                      s.columns, numbers, type, type, sums, ways);
    }
    text += "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0; }";
    llvm::SmallVector<mlir::Type> types(static_cast<size_t>(count), code_.f32());
    const Value all = ptx(mlir::LLVM::LLVMStructType::getLiteral(b_.getContext(), types), text,
                          outputs + inputs + "l,l,~{memory}", operands);
    for (int64_t i = 0; i < count; ++i)
      store_element(s.sums, places[static_cast<size_t>(i)],
                    b_.create<mlir::LLVM::ExtractValueOp>(all, i));
  });
}

}  // namespace hone::code
