#include "program/build/gemm_builder.h"

#include <algorithm>

#include "base/planted.h"

namespace hone {

void GemmBuilder::set_up_words() {
  words_ = word_shape(body_, contraction_, space_, schedule_).value();
  for (size_t side = 0; side < 2; ++side)
    sources_[side] = word_source(body_, contraction_, space_, *words_, side);
}

void GemmBuilder::set_up_window_of_words(size_t side) {
  const int dim = *operand_dim(side);
  if (operands_[side].lanes != dim) operands_[side].lanes = std::nullopt;
  operands_[side].last = dim;
  operands_[side].window[static_cast<size_t>(dim)] +=
      words_->inner_words * words_->each - cache_block(schedule_, space_, words_->inner);
}

std::optional<int> GemmBuilder::operand_dim(size_t side) const {
  const Indices& reads = contraction_.reads[side];
  const auto along =
      std::ranges::find_if(reads, [&](const IndexExpr& e) { return e.mentions(words_->inner); });
  return static_cast<int>(along - reads.begin());
}

int64_t GemmBuilder::inner_words() const {
  const int64_t points = place(words_->inner).block.unroll;
  return (points + words_->each - 1) / words_->each;
}

tile::Scalar GemmBuilder::sum_of_words(Scalar so_far, size_t at) {
  if (at == reduction_.size()) {
    const Scalar first = word(words_->first_side), second = word(1 - words_->first_side);
    const bool are_pairs = schedule_.get<GemmFields>().products == Products::pairs;
    return are_pairs ? tiles_.pair(first, second, so_far) : tiles_.quad(first, second, so_far);
  }
  const int dim = reduction_[at];
  const Dim trips = dim == words_->inner ? inner_words() : place(dim).block.unroll;
  return open_carry(tiles_, Exec::loop, name(dim), trips, so_far, Opcode::add,
                    [&](const IndexExpr& trip, Scalar inside) {
                      move_to(dim, trip);
                      return sum_of_words(inside, at + 1);
                    });
}

void GemmBuilder::move_to(int dim, const IndexExpr& trip) {
  place(dim).trip = trip;
  if (!words_ || dim != words_->inner) return;
  word_ = trip;
  place(dim).trip = trip * words_->each;
}

tile::Scalar GemmBuilder::word(size_t side) {
  const Operand& operand = operands_[side];
  if (!operand.is_packed) return word_in_memory(side, {});
  if (operand.packing == Packing::window)
    return tiles_.load_word(operand.buffer, window_index(side));
  return tiles_.load(operand.buffer, panel_index(side));
}

tile::Scalar GemmBuilder::word_in_memory(size_t side, Guards gaps) {
  Indices at;
  for (int dim = 0; dim < space_.parallel; ++dim) at.push_back(index_of(dim));
  for (int dim = space_.parallel; dim < dim_count(); ++dim)
    at.push_back(dim == words_->inner ? floordiv(place(dim).first(), words_->each) + word_
                                      : place(dim).first() + place(dim).trip);
  for (Guard& gap : gaps_of(side)) gaps.push_back(std::move(gap));
  WordSource here = *sources_[side];
  here.index = composed(here.index, at);
  here.shift = here.shift.substitute(at);
  return points_.word(space_.anchor, side, factor_index(), here, gaps);
}

tile::Scalar GemmBuilder::packed_word(size_t side) {
  if (sources_[side]) return word_in_memory(side, {});
  Place& inner = place(words_->inner);
  std::vector<Scalar> numbers;
  for (int64_t i = 0; i < words_->each; ++i) {
    inner.trip = word_ * words_->each + IndexExpr(HONE_PLANT(word_number, i, int64_t{0}));
    Guards gaps;
    const bool is_whole = inner.block.unroll % words_->each == 0;
    if (HONE_PLANT(quad_end, !is_whole, false)) gaps.push_back({inner.trip, 0, inner.block.unroll});
    numbers.push_back(packed_number(side, std::move(gaps)));
  }
  return joined(numbers);
}

tile::Scalar GemmBuilder::joined(std::span<const Scalar> numbers) {
  const size_t bits = 32 / numbers.size();
  Scalar word = bits_of(numbers[0]);
  for (size_t i = 1; i < numbers.size(); ++i) {
    const Scalar factor = points_.number(DType::u32, int64_t{1} << bits * i);
    const Scalar moved = tiles_.compute(Opcode::mul, {bits_of(numbers[i]), factor});
    word = tiles_.compute(Opcode::or_, {word, moved});
  }
  return word;
}

// For a byte that was widened to i32, or of a bf16 that was widened to f32.
tile::Scalar GemmBuilder::bits_of(Scalar number) {
  const auto with = [&](Opcode op, Scalar word, int64_t by) {
    return tiles_.compute(op, {word, points_.number(DType::u32, by)});
  };
  if (wide_ == DType::i32) return with(Opcode::and_, tiles_.cast(number, DType::u32), 0xff);
  return with(Opcode::shift_right,
              tiles_.compute(Opcode::bitcast, {number}, {{"dtype", DType::u32}}), 16);
}

}  // namespace hone
