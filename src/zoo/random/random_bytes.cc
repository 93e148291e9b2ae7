#include "zoo/random/random_bytes.h"

#include "base/rng.h"
#include "ir/builder.h"
#include "ir/functional.h"
#include "zoo/random/generator.h"

namespace hone {
namespace {

class Bytes {
 public:
  explicit Bytes(uint64_t seed)
      : rng_(seed), is_flipped_(rng_.chance(0.6)), is_packed_(Rng(~seed).chance(0.15)) {}

  Graph run() {
    Value y = is_packed_ ? packed_product() : rng_.chance(0.4) ? product() : conv();
    if (rng_.chance(0.5)) y = cast(y, DType::f32) * 0.125;
    if (rng_.chance(0.3)) y = maximum(y, 0);
    return std::move(builder_.finish({y})).value();
  }

 private:
  // Words have four bytes: whole words, and rests of words.
  int64_t summed() { return rng_.chance(0.6) ? 4 * rng_.between(1, 6) : rng_.between(1, 18); }

  // Unsigned bytes.
  Value data(const Dims& dims) {
    if (!is_flipped_) return builder_.parameter("x", DType::u8, dims);
    const Value x = builder_.parameter("x", DType::i8, dims);
    const Value bits = builder_.op(Opcode::bitcast, {x}, {{"dtype", DType::u8}});
    return builder_.op(Opcode::xor_, {bits, builder_.full(DType::u8, dims, 128)});
  }
  Value weights(const Dims& dims) {
    if (rng_.chance(0.3)) return builder_.parameter("w", DType::i8, dims);
    return builder_.constant(random_tensor(Type::get(DType::i8, dims), rng_));
  }

  Value product() {
    const int64_t depth = summed(), rows = rng_.between(1, 20), columns = rng_.between(1, 40);
    const Value x = data({rows, depth});
    const bool is_transposed = rng_.chance(0.5);
    const Value w = weights(is_transposed ? Dims{columns, depth} : Dims{depth, columns});
    return builder_.op(Opcode::dot, {x, w},
                       {{"lhs_contract", Ints{1}},
                        {"rhs_contract", Ints{is_transposed ? 1 : 0}},
                        {"accumulate", "i32"}});
  }

  // The weights have 2 or 4 bits, several in a byte.
  Value packed_product() {
    const int64_t depth = 4 * rng_.between(1, 5), bits = rng_.chance(0.6) ? 4 : 2;
    const int64_t rows = rng_.between(1, 20), columns = rng_.between(1, 40);
    const Value x = builder_.parameter("x", DType::i8, {rows, depth, 8 / bits});
    const Value bytes = builder_.parameter("w", DType::u8, {columns, 1, depth});
    const Value number = iota(builder_, DType::u8, {8 / bits, 1}, 0);
    const Value moved = binary(Opcode::shift_right, bytes, number * static_cast<double>(bits));
    return builder_.op(
        Opcode::dot, {x, binary(Opcode::and_, moved, static_cast<double>((1 << bits) - 1))},
        {{"lhs_contract", Ints{2, 1}}, {"rhs_contract", Ints{1, 2}}, {"accumulate", "i32"}});
  }

  Value conv() {
    const int64_t spatial = rng_.between(1, 2), window = rng_.chance(0.3) ? 1 : 3;
    const int64_t channels = summed();
    Dims image = {rng_.between(1, 2)}, filter = {rng_.between(1, 20)};
    Ints padding;
    // Channels come first, as in most files, or last.
    const bool is_last = rng_.chance(0.6);
    if (!is_last) image.push_back(channels);
    filter.push_back(channels);
    for (int64_t i = 0; i < spatial; ++i) {
      image.push_back(rng_.between(3, 9));
      filter.push_back(window);
      padding.push_back(rng_.between(0, window - 1));
    }
    if (is_last) image.push_back(channels);
    Value x = data(image);
    if (is_last) {
      Ints order = {0, spatial + 1};
      for (int64_t i = 0; i < spatial; ++i) order.push_back(i + 1);
      x = transpose(x, order);
    }
    return builder_.op(Opcode::conv, {x, weights(filter)},
                       {{"pad_low", padding}, {"pad_high", padding}, {"accumulate", "i32"}});
  }

  Rng rng_;
  Builder builder_ = Builder("bytes");
  bool is_flipped_, is_packed_;
};

}  // namespace

Graph random_bytes(uint64_t seed) { return Bytes(seed).run(); }

}  // namespace hone
