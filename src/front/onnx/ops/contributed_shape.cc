#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Contributed ops that are none of attention, norms and products.

namespace hone::onnx_io {

// Where the new dim stands; from the back it counts the places of the result.
void map_expand_dims(Node& n) {
  const Ints axis = n.integers(1);
  if (axis.size() != 1) n.bad("axis has {} numbers, want 1", axis.size());
  Value x = n.in(0);
  n.out(unsqueeze(x, n.axis_in(axis[0], x.rank() + 1)));
}

void map_transpose_with_dynamic_pads(Node& n) {
  n.unsupported("paddings that depend on data: no size of the result is known before");
}

// ---- Inverse ------------------------------------------------------------------------------------

namespace {

// Row `at` (one per matrix, [batch, 1, 1]) of [batch, n, m], as [batch, 1, m].
Value row_at(Value m, Value at) {
  Value rows = iota(m.builder(), DType::i64, {1, m.dim(1), 1}, 1);
  Value zero = m.builder().scalar(m.dtype(), 0);
  return reduce_sum(select(compare("eq", rows, at), m, zero), {1}, true);
}

// One step of Gauss and Jordan: of the rows from the k-th on, that with the largest pivot becomes
// the k-th, and is taken off all others.
Value eliminated(Value m, Value k) {
  Builder& b = m.builder();
  const Dim batch = m.dim(0), size = m.dim(1);
  k = reshape(k, {1, 1, 1});
  Value rows = iota(b, DType::i64, {1, size, 1}, 1);
  Value columns = iota(b, DType::i64, {1, 1, m.dim(2)}, 2);
  Value zero = b.scalar(m.dtype(), 0);
  auto column = [&](Value x) {
    return reduce_sum(select(compare("eq", columns, k), x, zero), {2}, true);
  };
  Value pivots = unary(Opcode::abs, column(m));
  pivots = select(compare("ge", rows, k), pivots, b.scalar(m.dtype(), -1));
  Value best = reshape(argmax(pivots, 1), {batch, 1, 1});
  Value top = row_at(m, best);
  m = select(compare("eq", rows, best), row_at(m, broadcast_to(k, {batch, 1, 1})), m);
  top = top / column(top);
  Value rest = m - column(m) * top;
  return select(compare("eq", rows, k), top, rest);
}

}  // namespace

void map_inverse(Node& n) {
  Value x = n.in();
  n.require_rank(x, "X", 2);
  if (!is_real(x.dtype())) n.bad("X is {}, want reals", name(x.dtype()));
  const Dim size = x.dim(-1);
  if (!(x.dim(-2) == size)) n.bad("X is {}, want square matrices", x.type().to_string());
  const Dims dims = x.dims();
  Dim batch = 1;
  for (int i = 0; i + 2 < x.rank(); ++i) batch *= x.dim(i);
  Builder& b = n.builder();
  Value one = compare("eq", iota(b, DType::i64, {1, size, size}, 1),
                      iota(b, DType::i64, {1, size, size}, 2));
  const DType inner = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  Value m = concat({cast(reshape(x, {batch, size, size}), inner),
                    broadcast_to(cast(one, inner), {batch, size, size})},
                   2);
  Value steps = iota(b, DType::i64, {size}, 0);
  std::vector<Value> done = scan(std::vector<Value>{m}, std::vector<Value>{steps},
                                 [](Builder&, std::span<const Value> in) {
                                   return std::vector<Value>{eliminated(in[0], in[1])};
                                 });
  n.out(cast(reshape(slice(done[0], 2, size, size * 2), dims), x.dtype()));
}

}  // namespace hone::onnx_io
