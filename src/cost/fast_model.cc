#include "cost/fast_model.h"

#include <algorithm>
#include <cmath>

#include "base/instructions.h"

namespace hone {
namespace {

constexpr size_t kRows = 4, kColumns = 8;  // of a tile of sums

// sums[rows][width] = biases + x[rows][inputs] weights[inputs][width]. Whoever calls decides which
// instructions it becomes.
[[gnu::always_inline]] inline void multiply(const float* x, size_t x_stride, size_t rows,
                                            const float* weights, size_t weights_stride,
                                            const float* biases, size_t inputs, size_t width,
                                            float* sums, size_t sums_stride) {
  for (size_t r = 0; r < rows; r += kRows)
    for (size_t c = 0; c < width; c += kColumns) {
      float tile[kRows][kColumns];
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < kColumns; ++j) tile[i][j] = biases[c + j];
      for (size_t k = 0; k < inputs; ++k)
        for (size_t i = 0; i < kRows; ++i)
          for (size_t j = 0; j < kColumns; ++j)
            tile[i][j] += x[(r + i) * x_stride + k] * weights[k * weights_stride + c + j];
      for (size_t i = 0; i < kRows; ++i)
        for (size_t j = 0; j < kColumns; ++j)
          sums[(r + i) * sums_stride + c + j] = std::max(tile[i][j], 0.0F);
    }
}

using Multiply = void (*)(const float*, size_t, size_t, const float*, size_t, const float*, size_t,
                          size_t, float*, size_t);

void multiply_anywhere(const float* x, size_t x_stride, size_t rows, const float* weights,
                       size_t weights_stride, const float* biases, size_t inputs, size_t width,
                       float* sums, size_t sums_stride) {
  multiply(x, x_stride, rows, weights, weights_stride, biases, inputs, width, sums, sums_stride);
}

[[gnu::target("avx2,fma")]] void multiply_avx2(const float* x, size_t x_stride, size_t rows,
                                               const float* weights, size_t weights_stride,
                                               const float* biases, size_t inputs, size_t width,
                                               float* sums, size_t sums_stride) {
  multiply(x, x_stride, rows, weights, weights_stride, biases, inputs, width, sums, sums_stride);
}

Multiply fastest() {
  const Result<Instructions> here = host_instructions();
  return here.ok() && here->isa >= Isa::avx2 ? multiply_avx2 : multiply_anywhere;
}

size_t padded(size_t width) { return (width + kColumns - 1) / kColumns * kColumns; }

}  // namespace

FastModel::FastModel(const KernelModel& model)
    : members_(model.members.size()),
      width1_(padded(model.width1)),
      width2_(padded(model.width2)),
      low_(model.low),
      high_(model.high),
      input_(kFeatures * members_ * width1_),
      bias1_(members_ * width1_),
      middle_(members_ * width1_ * width2_),
      bias2_(members_ * width2_),
      output_(members_ * width2_),
      bias3_(members_) {
  for (size_t m = 0; m < members_; ++m) {
    const ModelMember& member = model.members[m];
    for (size_t j = 0; j < model.width1; ++j) {
      bias1_[m * width1_ + j] = member.bias1[j];
      for (size_t k = 0; k < kFeatures; ++k)
        input_[(k * members_ + m) * width1_ + j] = member.input[k * model.width1 + j];
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
    run_some(&of[at], std::min(kAtOnce, of.size() - at), &said[at]);
}

void FastModel::run_some(const Features* of, size_t count, Said* said) const {
  static const Multiply multiply = fastest();
  const size_t all1 = members_ * width1_;
  float x[kAtOnce][kFeatures] = {};
  for (size_t i = 0; i < count; ++i)
    for (size_t f = 0; f < kFeatures; ++f) x[i][f] = std::clamp(of[i].all()[f], low_[f], high_[f]);
  std::vector<float> hidden1(kAtOnce * all1), hidden2(kAtOnce * width2_);
  multiply(x[0], kFeatures, count, input_.data(), all1, bias1_.data(), kFeatures, all1,
           hidden1.data(), all1);
  float sums[kAtOnce] = {}, squares[kAtOnce] = {};
  for (size_t m = 0; m < members_; ++m) {
    multiply(&hidden1[m * width1_], all1, count, &middle_[m * width1_ * width2_], width2_,
             &bias2_[m * width2_], width1_, width2_, hidden2.data(), width2_);
    for (size_t i = 0; i < count; ++i) {
      float y = bias3_[m];
      for (size_t j = 0; j < width2_; ++j) y += hidden2[i * width2_ + j] * output_[m * width2_ + j];
      sums[i] += y;
      squares[i] += y * y;
    }
  }
  const auto n = static_cast<float>(members_);
  for (size_t i = 0; i < count; ++i) {
    said[i].mean = sums[i] / n;
    said[i].deviation = std::sqrt(std::max(squares[i] / n - said[i].mean * said[i].mean, 0.0F));
  }
}

}  // namespace hone
