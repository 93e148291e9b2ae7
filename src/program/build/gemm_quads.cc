#include "program/build/gemm_builder.h"

#include <algorithm>

#include "base/planted.h"

namespace hone {

void GemmBuilder::set_up_quads() {
  quads_ = quad_shape(body_, contraction_, space_, schedule_).value();
  for (size_t side = 0; side < 2; ++side)
    words_[side] = word_source(body_, contraction_, space_, quads_->inner, side);
}

void GemmBuilder::set_up_words(size_t side) {
  const int dim = *operand_dim(side);
  if (operands_[side].lanes != dim) operands_[side].lanes = std::nullopt;
  operands_[side].last = dim;
  operands_[side].window[static_cast<size_t>(dim)] +=
      quads_->inner_words * QuadShape::kBytes - cache_block(schedule_, space_, quads_->inner);
}

std::optional<int> GemmBuilder::operand_dim(size_t side) const {
  const Indices& reads = contraction_.reads[side];
  const auto along =
      std::ranges::find_if(reads, [&](const IndexExpr& e) { return e.mentions(quads_->inner); });
  return static_cast<int>(along - reads.begin());
}

int64_t GemmBuilder::inner_words() const {
  const int64_t points = place(quads_->inner).block.unroll;
  return (points + QuadShape::kBytes - 1) / QuadShape::kBytes;
}

tile::Scalar GemmBuilder::sum_of_quads(Scalar so_far, size_t at) {
  if (at == reduction_.size()) {
    const Scalar bytes = word(quads_->unsigned_side);
    return tiles_.quad(bytes, word(1 - quads_->unsigned_side), so_far);
  }
  const int dim = reduction_[at];
  const Dim trips = dim == quads_->inner ? inner_words() : place(dim).block.unroll;
  return open_carry(tiles_, Exec::loop, name(dim), trips, so_far, Opcode::add,
                    [&](const IndexExpr& trip, Scalar inside) {
                      move_to(dim, trip);
                      return sum_of_quads(inside, at + 1);
                    });
}

void GemmBuilder::move_to(int dim, const IndexExpr& trip) {
  place(dim).trip = trip;
  if (!quads_ || dim != quads_->inner) return;
  word_ = trip;
  place(dim).trip = trip * QuadShape::kBytes;
}

tile::Scalar GemmBuilder::word(size_t side) {
  const Operand& operand = operands_[side];
  if (!operand.is_packed) return word_in_memory(side);
  if (operand.packing == Packing::window)
    return tiles_.load_word(operand.buffer, window_index(side));
  return tiles_.load(operand.buffer, panel_index(side));
}

tile::Scalar GemmBuilder::word_in_memory(size_t side) {
  Indices at;
  for (int dim = 0; dim < space_.parallel; ++dim) at.push_back(index_of(dim));
  for (int dim = space_.parallel; dim < dim_count(); ++dim)
    at.push_back(dim == quads_->inner ? floordiv(place(dim).first(), QuadShape::kBytes) + word_
                                      : place(dim).first() + place(dim).trip);
  return points_.word(space_.anchor, side, factor_index(), *words_[side],
                      composed(words_[side]->index, at), gaps_of(side));
}

tile::Scalar GemmBuilder::packed_word(size_t side) {
  if (words_[side]) return word_in_memory(side);
  Place& inner = place(quads_->inner);
  std::optional<Scalar> word;
  for (int64_t byte = 0; byte < QuadShape::kBytes; ++byte) {
    inner.trip = word_ * QuadShape::kBytes + IndexExpr(byte);
    Guards gaps;
    const bool is_whole = inner.block.unroll % QuadShape::kBytes == 0;
    if (HONE_PLANT(quad_end, !is_whole, false)) gaps.push_back({inner.trip, 0, inner.block.unroll});
    Scalar number = tiles_.cast(packed_number(side, std::move(gaps)), DType::u32);
    const auto with = [&](Opcode op, int64_t by) {
      number = tiles_.compute(op, {number, points_.number(DType::u32, by)});
    };
    with(Opcode::and_, 0xff);
    if (byte > 0) with(Opcode::mul, int64_t{1} << 8 * byte);
    word = word ? tiles_.compute(Opcode::or_, {*word, number}) : number;
  }
  return *word;
}

}  // namespace hone
