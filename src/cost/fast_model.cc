#include "cost/fast_model.h"

#include <algorithm>
#include <cmath>

#include "base/instructions.h"

namespace hone {
namespace {

constexpr size_t kRows = 8, kWidest = 16;  // of a tile of sums, in vectors of any width

// The task of multiply(): sums[rows][width] = max(biases + x[rows][inputs] weights[inputs]
// [width], 0), of kRows rows; strides are those of rows.
struct Product {
  const float* x;
  size_t x_stride;
  const float* weights;
  size_t weights_stride;
  const float* biases;
  size_t inputs, width;
  float* sums;
  size_t sums_stride;
};

// Whoever calls decides which instructions it becomes. Each sum is taken in the same order, so all
// of them give the same bits.
template <size_t kColumns>
[[gnu::always_inline]] inline void multiply(const Product& of) {
  for (size_t c = 0; c < of.width; c += kColumns) {
    float tile[kRows][kColumns];
    for (size_t i = 0; i < kRows; ++i)
      for (size_t j = 0; j < kColumns; ++j) tile[i][j] = of.biases[c + j];
    for (size_t k = 0; k < of.inputs; ++k)
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < kColumns; ++j)
          tile[i][j] += of.x[i * of.x_stride + k] * of.weights[k * of.weights_stride + c + j];
    for (size_t i = 0; i < kRows; ++i)
      for (size_t j = 0; j < kColumns; ++j)
        of.sums[i * of.sums_stride + c + j] = std::max(tile[i][j], 0.0F);
  }
}

using Multiply = void (*)(const Product&);
void multiply_anywhere(const Product& of) { multiply<4>(of); }
[[gnu::target("avx2")]] void multiply_avx2(const Product& of) { multiply<8>(of); }
[[gnu::target("avx512f")]] void multiply_avx512(const Product& of) { multiply<16>(of); }

Multiply fastest() {
  const Result<Instructions> here = host_instructions();
  if (!here.ok() || here->isa < Isa::avx2) return multiply_anywhere;
  return here->isa == Isa::avx2 ? multiply_avx2 : multiply_avx512;
}

size_t padded(size_t width) { return (width + kWidest - 1) / kWidest * kWidest; }

}  // namespace

FastModel::FastModel(const KernelModel& model)
    : members_(model.members.size()),
      width1_(padded(model.width1)),
      width2_(padded(model.width2)),
      low_(model.low),
      high_(model.high),
      bias1_(members_ * width1_),
      middle_(members_ * width1_ * width2_),
      bias2_(members_ * width2_),
      output_(members_ * width2_),
      bias3_(members_) {
  static_assert(kFeatures <= 256);
  for (size_t f = 0; f < kFeatures; ++f) {
    const auto has_weight = [&](const ModelMember& member) {
      const auto row = std::span(member.input).subspan(f * model.width1, model.width1);
      return std::ranges::any_of(row, [](float weight) { return weight != 0; });
    };
    if (std::ranges::any_of(model.members, has_weight)) seen_.push_back(static_cast<uint8_t>(f));
  }
  input_.resize(seen_.size() * members_ * width1_);
  for (size_t m = 0; m < members_; ++m) {
    const ModelMember& member = model.members[m];
    for (size_t j = 0; j < model.width1; ++j) {
      bias1_[m * width1_ + j] = member.bias1[j];
      for (size_t k = 0; k < seen_.size(); ++k)
        input_[(k * members_ + m) * width1_ + j] = member.input[seen_[k] * model.width1 + j];
    }
    for (size_t j = 0; j < model.width2; ++j) {
      bias2_[m * width2_ + j] = member.bias2[j];
      output_[m * width2_ + j] = member.output[j];
      for (size_t k = 0; k < model.width1; ++k)
        middle_[(m * width1_ + k) * width2_ + j] = member.middle[k * model.width2 + j];
    }
    bias3_[m] = member.bias3;
  }
}

bool FastModel::is_inside(const Features& features) const {
  const std::span<const float> all = features.all();
  bool is_inside = true;
  for (size_t f = 0; f < kFeatures; ++f)
    is_inside = is_inside && all[f] >= low_[f] && all[f] <= high_[f];
  return is_inside;
}

void FastModel::run(std::span<const Features> of, std::span<Said> said) const {
  for (size_t at = 0; at < of.size(); at += kAtOnce)
    run_some(&of[at], std::min(kAtOnce, of.size() - at), &said[at], nullptr);
}

std::vector<double> FastModel::each(const Features& of) const {
  std::vector<float> said(members_);
  Said all;
  run_some(&of, 1, &all, said.data());
  return {said.begin(), said.end()};
}

void FastModel::run_some(const Features* of, size_t count, Said* said, float* by_member) const {
  static const Multiply multiply = fastest();
  static_assert(kAtOnce == kRows);
  const size_t all1 = members_ * width1_;
  float x[kAtOnce][kFeatures] = {};
  for (size_t i = 0; i < count; ++i)
    for (size_t k = 0; k < seen_.size(); ++k) {
      const size_t f = seen_[k];
      x[i][k] = std::clamp(of[i].all()[f], low_[f], high_[f]);
    }
  thread_local std::vector<float> hidden1, hidden2;
  hidden1.resize(kAtOnce * all1);
  hidden2.resize(kAtOnce * width2_);
  multiply({x[0], kFeatures, input_.data(), all1, bias1_.data(), seen_.size(), all1, hidden1.data(),
            all1});
  float sums[kAtOnce] = {}, squares[kAtOnce] = {};
  for (size_t m = 0; m < members_; ++m) {
    multiply({&hidden1[m * width1_], all1, &middle_[m * width1_ * width2_], width2_,
              &bias2_[m * width2_], width1_, width2_, hidden2.data(), width2_});
    for (size_t i = 0; i < count; ++i) {
      float y = bias3_[m];
      for (size_t j = 0; j < width2_; ++j) y += hidden2[i * width2_ + j] * output_[m * width2_ + j];
      sums[i] += y;
      squares[i] += y * y;
      if (by_member != nullptr) by_member[i * members_ + m] = y;
    }
  }
  const auto n = static_cast<float>(members_);
  for (size_t i = 0; i < count; ++i) {
    said[i].mean = sums[i] / n;
    said[i].deviation = std::sqrt(std::max(squares[i] / n - said[i].mean * said[i].mean, 0.0F));
  }
}

}  // namespace hone
