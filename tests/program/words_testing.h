#pragma once

#include <algorithm>

#include "kernel/facts.h"
#include "kernel/schedule_space.h"
#include "tests/program/random_kernels.h"
#include "zoo/random/generator.h"

// Products of bytes and of small numbers, for tests.

namespace hone {

// A contraction of u8 and i8, in either order, with sums of i32, or of another type, and what may
// stand around it. Denormal numbers may be 0.
class RandomWords {
 public:
  // u8: of bytes.
  RandomWords(DType numbers, Rng& rng)
      : numbers_(numbers), are_bytes_(numbers == DType::u8), rng_(rng) {}

  Graph graph() {
    is_swapped_ = rng_.chance(0.4);
    Value y = rng_.chance(0.5) ? dot() : conv();
    if (rng_.chance(0.5)) {
      const int axis = static_cast<int>(rng_.below(static_cast<uint64_t>(y.rank())));
      y = y + broadcast(b_.parameter("bias", y.dtype(), {y.dim(axis)}), y.dims(), {axis});
    }
    if (are_bytes_ && rng_.chance(0.3)) y = cast(cast(y, DType::f32) * 0.25, DType::i8);
    return b_.finish({y}).value();
  }

 private:
  Dim size(int64_t most) { return rng_.between(1, most); }
  // Often a whole number of words.
  Dim depth() { return rng_.chance(0.6) ? 4 * rng_.between(1, 6) : rng_.between(1, 13); }

  Value operand(std::string_view name, const Dims& dims, bool is_first) {
    if (!are_bytes_) {
      const Value x = b_.parameter(name, numbers_, dims);
      return rng_.chance(0.7) ? x : -x;
    }
    const DType dtype = is_first != is_swapped_ ? DType::u8 : DType::i8;
    const DType other = dtype == DType::u8 ? DType::i8 : DType::u8;
    if (rng_.chance(0.7)) return b_.parameter(name, dtype, dims);
    Value x = b_.parameter(name, other, dims);
    x = b_.op(Opcode::bitcast, {x}, {{"dtype", dtype}});
    const double highest = dtype == DType::u8 ? 128 : -128;
    return b_.op(Opcode::xor_, {x, b_.full(dtype, x.dims(), highest)});
  }

  Value dot() {
    const Dim depth = this->depth();
    const bool has_batch = rng_.chance(0.3), is_transposed = rng_.chance(0.5);
    Dims lhs = {size(20), depth}, rhs = {depth, size(40)};
    Ints contract_lhs = {1}, contract_rhs = {0}, batches;
    if (is_transposed) std::swap(rhs[0], rhs[1]), contract_rhs = {1};
    if (has_batch) {
      const Dim batch = size(3);
      lhs.insert(lhs.begin(), batch);
      rhs.insert(rhs.begin(), batch);
      ++contract_lhs[0], ++contract_rhs[0];
      batches = {0};
    }
    return b_.op(Opcode::dot, {operand("x", lhs, true), operand("w", rhs, false)},
                 {{"lhs_batch", batches},
                  {"rhs_batch", batches},
                  {"lhs_contract", contract_lhs},
                  {"rhs_contract", contract_rhs},
                  {"accumulate", sums()},
                  {"flush", !are_bytes_},
                  {"parts", parts()}});
  }

  Value conv() {
    const int64_t groups = rng_.chance(0.2) ? 2 : 1;
    const Dim in = depth();
    const Dims x = {size(2), in * groups, rng_.between(3, 7), rng_.between(3, 9)};
    const Dims w = {rng_.between(1, 20) * groups, in, rng_.between(1, 3), rng_.between(1, 3)};
    return b_.op(Opcode::conv, {operand("x", x, true), operand("w", w, false)},
                 {{"stride", Ints{rng_.between(1, 2), rng_.between(1, 2)}},
                  {"pad_low", Ints{rng_.between(0, 1), rng_.between(0, 2)}},
                  {"pad_high", Ints{rng_.between(0, 1), rng_.between(0, 2)}},
                  {"groups", groups},
                  {"accumulate", sums()},
                  {"flush", !are_bytes_},
                  {"parts", parts()}});
  }

  int64_t parts() { return numbers_ == DType::f32 && rng_.chance(0.5) ? 2 : 3; }
  std::string sums() {
    if (are_bytes_) return "i32";
    return numbers_ == DType::bf16 && rng_.chance(0.5) ? "f32" : "same";
  }

  const DType numbers_;
  const bool are_bytes_;
  Rng& rng_;
  Builder b_;
  bool is_swapped_ = false;
};

// Some with words side by side, along the dim that they are taken along.
inline Layout random_layout_of_words(Type type, Rng& rng) {
  if (rng.chance(0.3)) return random_layout(type, rng);
  Layout layout = Layout::row_major(type.rank());
  rng.shuffle(layout.parts);
  const int dim = type.rank() == 4 ? 1 : layout.parts.back().dim;
  std::erase_if(layout.parts, [&](const Layout::Part& part) { return part.dim == dim; });
  const int64_t block = 4 * rng.between(1, 3);
  const bool is_blocked = rng.chance(0.6) && type.dim(dim).divisible_by(block);
  if (is_blocked)
    layout.parts.insert(
        layout.parts.begin() + static_cast<int64_t>(rng.below(layout.parts.size() + 1)),
        {.dim = dim, .block = block});
  layout.parts.push_back({.dim = dim, .block = is_blocked ? block : 1, .is_inner = is_blocked});
  return layout;
}

struct WordsCase {
  KernelBody body;
  Schedule schedule;
  std::vector<Tensor> inputs;  // of all bytes
};

// Without a schedule.
inline WordsCase random_contraction(DType numbers, Rng& rng) {
  WordsCase drawn = {body_of_all(RandomWords(numbers, rng).graph()), {}, {}};
  KernelBody& body = drawn.body;
  for (size_t i = 0; i < body.inputs.size(); ++i)
    body.inputs[i] = random_layout_of_words(body.graph.type(body.graph.inputs()[i]), rng);
  body.outputs[0] = random_layout(body.graph.type(body.graph.outputs()[0]), rng);
  for (Type type : body.graph.input_types()) {
    if (is_real(type.dtype())) {
      drawn.inputs.push_back(random_tensor(type, rng));
      continue;
    }
    std::vector<int64_t> integers;
    for (int64_t i = 0; i < type.static_elements(); ++i)
      integers.push_back(wrap_to(type.dtype(), rng.between(0, 255)));
    drawn.inputs.push_back(Tensor::from_integers(type, integers));
  }
  return drawn;
}

// Or none, if no schedule with such products was drawn.
inline std::optional<WordsCase> random_words(Products products, const Target& target, Rng& rng) {
  WordsCase drawn = random_contraction(products == Products::pairs ? DType::bf16 : DType::u8, rng);
  for (int i = 0; i < 60; ++i) {
    drawn.schedule = random_schedule(drawn.body, target, rng);
    const auto* own = drawn.schedule.if_is<GemmFields>();
    if (own != nullptr && own->products == products) return drawn;
  }
  return std::nullopt;
}

}  // namespace hone
