#pragma once

#include "base/rng.h"
#include "ir/functional.h"

// Attentions for kernels by blocks of threads.

namespace hone {

// The sizes of an attention. `heads` of queries share each head of keys and values.
struct Attention {
  int64_t batch = 1, groups = 1, heads = 1, queries = 1, keys = 1, width = 1;
  bool is_causal = false;
  DType dtype = DType::f32;
  double masked = -1e4;         // scores of keys that come later
  bool divides_weights = true;  // else the product is divided by the sums
};

inline Graph attention(const Attention& a) {
  Builder b;
  const Value q = b.parameter("q", a.dtype, {a.batch, a.groups, a.heads, a.queries, a.width});
  const Value k = b.parameter("k", a.dtype, {a.batch, a.groups, a.keys, a.width});
  const Value v = b.parameter("v", a.dtype, {a.batch, a.groups, a.keys, a.width});
  // [batch, groups, heads, queries, keys]
  Value scores = dot_general(q, k, {0, 1}, {0, 1}, {4}, {3}) * 0.3;
  const Dims dims = scores.dims();
  if (a.is_causal) {
    const Value row = iota(b, DType::i32, dims, 3), column = iota(b, DType::i32, dims, 4);
    const Value nothing = broadcast(b.scalar(a.dtype, a.masked), dims, {});
    scores = select(compare("le", column, row), scores, nothing);
  }
  const Ints rows = {0, 1, 2, 3};
  const Value e = exp(scores - broadcast(reduce("max", scores, {4}), dims, rows));
  const Value sums = reduce("sum", e, {4});
  const Value p = a.divides_weights ? e / broadcast(sums, dims, rows) : e;
  const Value y = dot_general(p, v, {0, 1}, {0, 1}, {4}, {2});
  return b.finish({a.divides_weights ? y : y / broadcast(sums, y.dims(), rows)}).value();
}

inline Attention random_attention(Rng& rng) {
  return {.batch = rng.between(1, 2),
          .groups = rng.between(1, 2),
          .heads = rng.between(1, 3),
          .queries = rng.between(1, 9),
          .keys = rng.chance(0.3) ? rng.between(30, 70) : rng.between(1, 12),
          .width = rng.between(1, 9),
          .is_causal = rng.chance(0.5),
          .dtype = rng.chance(0.3) ? DType::bf16 : DType::f32,
          .divides_weights = rng.chance(0.8)};
}

}  // namespace hone
