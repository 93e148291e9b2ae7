#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Products with weights of a few bits, several to a byte, that share scales in blocks.

namespace hone::onnx_io {
namespace {

struct Layout {
  int64_t columns = 0, rows = 0, block = 0, bits = 0;  // N, K
  int64_t blocks() const { return (rows + block - 1) / block; }
  int64_t per_byte() const { return 8 / bits; }
};

Layout read_layout(Node& n) {
  Layout l;
  l.columns = n.integer("N"), l.rows = n.integer("K");
  l.block = n.integer("block_size"), l.bits = n.integer("bits", 4);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (l.columns < 1 || l.columns > kMost || l.rows < 1 || l.rows > kMost) {
    n.bad("K is {}, N is {}", l.rows, l.columns);
  }
  if (l.bits != 2 && l.bits != 4 && l.bits != 8) n.unsupported("weights of {} bits", l.bits);
  if (l.block < 16 || l.block > kMost || (l.block & (l.block - 1)) != 0) {
    n.bad("block_size is {}, want a power of 2 from 16 on", l.block);
  }
  return l;
}

// Numbers of l.bits that stand in the bytes of an operand, the low bits first, as [columns, count]
// of `stored` per column. They are u4 that share the bytes of a constant, else u8.
Value unpacked(Node& n, size_t operand, const Layout& l, int64_t stored, int64_t count) {
  Value bytes = n.in(operand);
  const int64_t per_column = stored / l.per_byte();
  if (bytes.dtype() != DType::u8 ||
      !(bytes.type().elements() == Dim(l.columns) * Dim(per_column))) {
    n.bad("operand {} is {}, want u8 with {} bytes for each of {} columns", operand,
          bytes.type().to_string(), per_column, l.columns);
  }
  Builder& b = n.builder();
  const Dims dims = {l.columns, stored};
  Value numbers;
  if (std::optional<Tensor> constant = n.maybe_constant(operand); constant && l.bits == 4) {
    numbers = b.constant(constant->viewed_as(Type::get(DType::u4, dims)));
  } else {
    bytes = reshape(bytes, {l.columns, per_column, 1});
    std::vector<Value> parts;
    for (int64_t bit = 0; bit < 8; bit += l.bits) {
      Value part = binary(Opcode::shift_right, bytes, static_cast<double>(bit));
      const double all = static_cast<double>((1 << l.bits) - 1);
      parts.push_back(l.bits == 8 ? part : binary(Opcode::and_, part, all));
    }
    numbers = reshape(concat(parts, 2), dims);
  }
  return slice(numbers, 1, 0, count);
}

// The weights [columns, rows] as reals.
Value weights(Node& n, const Layout& l) {
  Builder& b = n.builder();
  const int64_t blocks = l.blocks();
  const Dims per_block = {l.columns, blocks};
  Value scale = n.in(2), zero = n.optional(3);
  if (!is_real(scale.dtype()) || !(scale.type().elements() == Dim(l.columns) * Dim(blocks))) {
    n.bad("the scales are {}, want reals, {} for each of {} columns", scale.type().to_string(),
          blocks, l.columns);
  }
  scale = reshape(scale, per_block);
  Value numbers = unpacked(n, 1, l, blocks * l.block, l.rows);
  const Granularity g = {.axis = 1, .block = l.block};
  if (zero && is_real(zero.dtype())) {
    // Zero points that are no whole numbers: (q - zero) * scale spelled out.
    auto spread = [&](Value v) {
      return dequantized(n, b.full(DType::u8, {l.columns, l.rows}, 1), v, Value(), g);
    };
    zero = reshape(cast(zero, scale.dtype()), per_block);
    return (cast(numbers, scale.dtype()) - spread(zero)) * spread(scale);
  }
  if (zero) {
    const int64_t bytes = (blocks + l.per_byte() - 1) / l.per_byte();
    zero = unpacked(n, 3, l, bytes * l.per_byte(), blocks);
  } else {
    zero = b.full(DType::u8, per_block, static_cast<double>(1 << (l.bits - 1)));
  }
  return dequantized(n, numbers, scale, cast(zero, numbers.dtype()), g);
}

// The groups that the rows are in must be the blocks themselves.
void check_groups(Node& n, const Layout& l) {
  if (!n.has(4)) return;
  const Dim given = n.in(4).type().elements();
  if (given.is_static() && !given.is(l.rows) && !given.is(l.blocks() * l.block))
    n.bad("g_idx has {} entries for {} rows", given.value(), l.rows);
  const Tensor groups = n.constant(4);
  if (!is_integer(groups.dtype())) n.bad("g_idx is {}", groups.type().to_string());
  const int64_t count = groups.elements();
  for (int64_t i = 0; i < count; ++i) {
    if (groups.integer_at(i) != i / l.block) {
      n.unsupported("g_idx puts row {} in group {}: rows in another order", i,
                    groups.integer_at(i));
    }
  }
}

}  // namespace

void map_matmul_n_bits(Node& n) {
  const Layout l = read_layout(n);
  if (n.integer("weight_prepacked", 0) != 0) n.unsupported("weights in a kernel's own order");
  // The type to which the product may be rounded; here it is not.
  n.ignore("accuracy_level");
  check_groups(n, l);
  Value a = n.in(0);
  n.require_rank(a, "A", 1);
  if (!a.dim(-1).is(l.rows)) {
    n.bad("A is {}, K is {}", a.type().to_string(), l.rows);
  }
  Value w = cast(weights(n, l), a.dtype());
  Value y = dot_general(a, w, {}, {}, {a.rank() - 1}, {1});
  if (Value bias = n.optional(5)) y = y + bias;
  n.out(y);
}

}  // namespace hone::onnx_io
