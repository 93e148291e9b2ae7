#include "program/tiles/swizzle.h"
#include "program/tiles/verifier.h"

// Units of Hopper beside the threads of a block.

namespace hone::tile {

Status Verifier::check_one_thread(std::string_view what) const {
  if (is_one_thread_) return {};
  return bad_input("{} is not of one thread: in a threads loop of one trip, in a block", what);
}

Status Verifier::check_mbarrier(BufferId id, const std::vector<IndexExpr>& index) {
  HONE_TRY(access(id, index, {}, Use::mbarriers));
  const TileBuffer& buffer = program_.buffers[id];
  if (buffer.role == BufferRole::block && buffer.type.dtype() == DType::u64) return {};
  return bad_input("@{}, {}, is not the memory of a block of u64 that mbarriers have", buffer.name,
                   buffer.type.to_string());
}

Status Verifier::check(const MbarrierInit& s, Place /*place*/) {
  HONE_TRY(check_one_thread("an mbarrier's beginning"));
  HONE_TRY(check_mbarrier(s.buffer, s.index));
  if (s.arrivals >= 1 && s.arrivals <= kMostArrivals) return {};
  return bad_input("a phase has {} arrivals, not 1 to {}", s.arrivals, kMostArrivals);
}

Status Verifier::check(const MbarrierExpect& s, Place /*place*/) {
  HONE_TRY(check_one_thread("an arrival"));
  HONE_TRY(check_mbarrier(s.buffer, s.index));
  if (s.bytes >= 0 && s.bytes <= kMostExpectedBytes) return {};
  return bad_input("{} bytes are expected, not 0 to {}", s.bytes, kMostExpectedBytes);
}

Status Verifier::check(const MbarrierWait& s, Place /*place*/) {
  HONE_TRY(check_mbarrier(s.buffer, s.index));
  HONE_TRY(known(s.parity));
  const DimRange parity = bounds_.of(s.parity);
  if (unreachable_ > 0 || (provably_le(0, parity.low) && provably_le(parity.high, 1))) return {};
  return bad_input("the parity of a phase of @{} may not be 0 or 1",
                   program_.buffers[s.buffer].name);
}

Status Verifier::check(const TensorCopy& s, Place /*place*/) {
  HONE_TRY(check_one_thread("a copy of a box"));
  HONE_TRY(check_rows("a box", s.to, s.to_index, s.rows));
  HONE_TRY(check_mbarrier(s.barrier, s.barrier_index));
  if (s.from >= program_.buffers.size()) return bad_input("there is no buffer {}", s.from);
  if (!has_waited_ && is_of_others(program_.buffers[s.from]))
    return bad_input("@{} is used before the wait for kernels", program_.buffers[s.from].name);
  const TileBuffer &to = program_.buffers[s.to], &from = program_.buffers[s.from];
  if (from.role != BufferRole::input || output_in_[s.from])
    return bad_input("a box is copied from @{}, which is not only an input", from.name);
  const DType dtype = from.type.dtype();
  if (to.type.dtype() != dtype ||
      (dtype != DType::bf16 && dtype != DType::f16 && dtype != DType::f32))
    return bad_input("a box is copied from @{}, {}, to @{}, {}: not bf16, f16 or f32 of both",
                     from.name, from.type.to_string(), to.name, to.type.to_string());
  if (s.rows > kMostBoxRows)
    return bad_input("a box has {} rows, more than {}", s.rows, kMostBoxRows);
  return check_box(s, from);
}

// The input is one that boxes are copied from. Where the box lies is a number of 32 bits.
Status Verifier::check_box(const TensorCopy& s, const TileBuffer& from) const {
  constexpr int64_t kRowMultiple = 128, kMostPlaces = int64_t{1} << 31;
  const int rank = from.type.rank();
  if (rank < 2 || rank > kMostBoxDims || s.axis < 0 || s.axis >= rank - 1 ||
      !from.type.is_static() ||
      from.type.dim(rank - 1).value() * bits(from.type.dtype()) % kRowMultiple != 0)
    return bad_input(
        "a box along dim {} of @{}, {}: not one of up to {} dims of fixed size, "
        "whose rows are multiples of 16 bytes",
        s.axis, from.name, from.type.to_string(), kMostBoxDims);
  if (static_cast<int>(s.from_index.size()) != rank)
    return bad_input("@{} has rank {}, but {} indices", from.name, rank, s.from_index.size());
  for (const IndexExpr& expr : s.from_index) {
    HONE_TRY(known(expr));
    const DimRange range = bounds_.of(expr);
    if (unreachable_ == 0 &&
        (!provably_le(-kMostPlaces, range.low) || !provably_lt(range.high, kMostPlaces)))
      return bad_input("a box of @{} may lie too far outside", from.name);
  }
  return {};
}

// These rows of a swizzled buffer, from a multiple of 8 on, lie inside.
Status Verifier::check_rows(std::string_view what, BufferId id, std::vector<IndexExpr> index,
                            int64_t rows) {
  index.push_back(0);
  HONE_TRY(access(id, index, {}));
  const TileBuffer& buffer = program_.buffers[id];
  if (!buffer.is_swizzled)
    return bad_input("{} has rows of @{}, which is not swizzled", what, buffer.name);
  IndexExpr& row = index[index.size() - 2];
  if (rows < 1 || rows % kSwizzledRows != 0 || !is_multiple(row, kSwizzledRows))
    return bad_input("{} has {} rows of @{}, or begins at one: not multiples of {}", what, rows,
                     buffer.name, kSwizzledRows);
  row = row + IndexExpr(rows - 1);
  return access(id, index, {});
}

Status Verifier::check(const ProxyFence& /*s*/, Place /*place*/) { return {}; }

Status Verifier::check(const GroupProduct& s, Place /*place*/) {
  if (block_threads_ == 0 || block_threads_ % kGroupThreads != 0)
    return bad_input("a block has {} threads, which are no whole warpgroups of {}", block_threads_,
                     kGroupThreads);
  if (s.numbers != DType::bf16 && s.numbers != DType::f16 && s.numbers != DType::f32)
    return bad_input("a warpgroup multiplies bf16, f16 or f32, not {}", name(s.numbers));
  if (s.numbers == DType::f32 && (s.lhs_across || s.rhs_across))
    return bad_input("a warpgroup multiplies f32 along rows alone, and an operand lies across");
  if (s.columns < 8 || s.columns > kMostGroupColumns)
    return bad_input("a warpgroup multiplies {} columns, not 8 to {}", s.columns,
                     kMostGroupColumns);
  if (s.rhs_across && s.columns % kGroupRows != 0)
    return bad_input("{} columns lie across, not a multiple of {}", s.columns, kGroupRows);
  HONE_TRY(
      check_rows("a product", s.lhs, s.lhs_index, block_threads_ / kGroupThreads * kGroupRows));
  HONE_TRY(check_rows("a product", s.rhs, s.rhs_index, s.columns));
  for (BufferId id : {s.lhs, s.rhs})
    if (program_.buffers[id].type.dtype() != s.numbers)
      return bad_input("a product of {} has rows of @{}, {}", name(s.numbers),
                       program_.buffers[id].name, program_.buffers[id].type.to_string());
  std::vector<IndexExpr> sums_index = s.sums_index;
  sums_index.push_back(0);
  HONE_TRY(check_factors(s.sums, sums_index, DType::f32, 4));
  const Type sums = program_.buffers[s.sums].type;
  if (sums.dim(sums.rank() - 2).is(s.columns / 8)) return {};
  return bad_input("@{}, {}, does not have the sums of {} columns", program_.buffers[s.sums].name,
                   sums.to_string(), s.columns);
}

}  // namespace hone::tile
