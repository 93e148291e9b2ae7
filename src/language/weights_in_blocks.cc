#include "language/weights_in_blocks.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "base/thread_pool.h"
#include "tensor/real_format.h"

namespace hone {
namespace {

using quantize::Precision;

constexpr size_t kBlock = 32;

// One of the numbers that f16 has. The scale of an all but empty block may be 0: so are its
// numbers.
struct HalfScale {
  uint32_t pattern;
  double value;
};
HalfScale half_scale(double scale) {
  constexpr double kMost = 65504;
  const uint32_t pattern = kF16.encode(std::min(scale, kMost));
  return {pattern, kF16.decode(pattern)};
}

int64_t nearest(double weight, double scale, double least, double most) {
  if (scale == 0) return 0;
  return static_cast<int64_t>(std::clamp(std::nearbyint(weight / scale), least, most));
}

// A scale in two bytes, then a byte for each number.
void write_q8_0(std::span<const double, kBlock> weights, std::byte* out) {
  double most = 0;
  for (const double one : weights) most = std::max(most, std::abs(one));
  const HalfScale scale = half_scale(most / 127);
  std::memcpy(out, &scale.pattern, 2);
  for (size_t i = 0; i < kBlock; ++i)
    out[2 + i] = static_cast<std::byte>(nearest(weights[i], scale.value, -127, 127));
}

// A scale in two bytes, then numbers of 4 bits plus 8: i and i + 16 share a byte.
void write_q4_0(std::span<const double, kBlock> weights, std::byte* out) {
  constexpr double kHighest = 7;
  const HalfScale scale = half_scale(quantize::best_scale(weights, kHighest));
  std::memcpy(out, &scale.pattern, 2);
  const auto number = [&](size_t i) {
    return static_cast<unsigned>(nearest(weights[i], scale.value, -kHighest - 1, kHighest) + 8);
  };
  for (size_t i = 0; i < kBlock / 2; ++i)
    out[2 + i] = static_cast<std::byte>(number(i) | number(i + kBlock / 2) << 4);
}

Result<Weight> as_blocks(const Weight& weight, BlockFormat format) {
  const BlockLayout& layout = layout_of(format);
  const int64_t rows = weight.dims[0], blocks = weight.dims[1] / layout.elements;
  std::vector<std::byte> bytes(static_cast<size_t>(rows * blocks * layout.bytes));
  std::atomic<bool> are_finite = true;
  const auto write_rows = [&](int64_t begin, int64_t end) {
    std::array<double, kBlock> numbers;
    for (int64_t b = begin * blocks; b < end * blocks; ++b) {
      weight.data.read_reals(b * layout.elements, std::span<double>(numbers));
      if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); }))
        are_finite = false;
      std::byte* const out = bytes.data() + b * layout.bytes;
      format == BlockFormat::q4_0 ? write_q4_0(numbers, out) : write_q8_0(numbers, out);
    }
  };
  constexpr int64_t kRowsAtOnce = 64;
  default_pool().parallel_for(0, rows, kRowsAtOnce, write_rows);
  if (!are_finite) return bad_input("it has infinities or NaN, which cannot be rounded to bits");
  const Type type = HONE_TRY(Type::make(DType::u8, Dims{rows, blocks * layout.bytes}));
  return Weight{Tensor::copy_of(type, bytes), format, weight.dims};
}

class WeightsInBlocks final : public DecoderWeights {
 public:
  WeightsInBlocks(std::unique_ptr<DecoderWeights> weights, Precision level)
      : weights_(std::move(weights)), level_(level) {}

  bool has(const std::string& name) const override { return weights_->has(name); }
  Result<Weight> get(const std::string& name) const override {
    Weight weight = HONE_TRY(weights_->get(name));
    const bool is_matrix = weight.dims.size() == 2 && name != "position_embd.weight";
    if (weight.format || !is_matrix || weight.dims[1] % static_cast<int64_t>(kBlock) != 0)
      return weight;
    const bool has_few = level_ == Precision::w4 && name != "token_embd.weight";
    return as_blocks(weight, has_few ? BlockFormat::q4_0 : BlockFormat::q8_0);
  }

 private:
  const std::unique_ptr<DecoderWeights> weights_;
  const Precision level_;
};

}  // namespace

std::unique_ptr<DecoderWeights> weights_in_blocks(std::unique_ptr<DecoderWeights> weights,
                                                  Precision level) {
  if (level != Precision::w4 && level != Precision::w8) return weights;
  return std::make_unique<WeightsInBlocks>(std::move(weights), level);
}

}  // namespace hone
