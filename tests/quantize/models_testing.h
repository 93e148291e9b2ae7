#pragma once

#include "base/rng.h"
#include "ir/functional.h"

// Small models with random weights.

namespace hone::tested {

inline Tensor normal(Rng& rng, const Dims& dims, double scale = 1) {
  const Type type = Type::get(DType::f32, dims);
  std::vector<double> values;
  for (int64_t i = 0; i < type.static_elements(); ++i) values.push_back(scale * rng.normal());
  return Tensor::from_reals(type, values);
}

// Two products with relu between them: "first" of 48 to 40, "second" of 40 to 8.
inline Graph two_products(uint64_t seed, double scale_of_second = 1, int64_t rows = 6) {
  Rng rng(seed);
  Builder b("two");
  const Value x = b.parameter("x", DType::f32, {rows, 48});
  const Value first = matmul(x, b.constant(normal(rng, {48, 40}), "w1")).named("first");
  const Value second =
      matmul(relu(first), b.constant(normal(rng, {40, 8}, scale_of_second), "w2")).named("second");
  return b.finish({second}).value();
}

// A conv of 3x3 with 20 channels, and a product whose weights are transposed.
inline Graph conv_and_product(uint64_t seed) {
  Rng rng(seed);
  Builder b("conv");
  const Value x = b.parameter("x", DType::f32, {2, 20, 5, 5});
  const Value w = b.constant(normal(rng, {12, 20, 3, 3}), "w1");
  const Value y = conv(x, w, {.padding = {1, 1, 1, 1}}).named("image");
  const Value flat = reshape(relu(y), {2, 300});
  const Value v = transpose(b.constant(normal(rng, {7, 300}), "w2"), {1, 0});
  return b.finish({matmul(flat, v).named("logits")}).value();
}

}  // namespace hone::tested
