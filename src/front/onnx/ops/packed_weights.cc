#include "front/decoder/rounded_product.h"
#include "front/onnx/ops/indices.h"
#include "front/onnx/ops/quantize.h"
#include "front/onnx/registry.h"

// Weights of a few bits, several to a byte, that share scales in blocks: products, and rows of
// tables.

namespace hone::onnx_io {

Value in_bytes(Node& n, size_t operand, int64_t bits, const Dims& dims) {
  if (std::optional<Tensor> constant = n.maybe_constant(operand); constant) {
    const DType dtype = bits == 2 ? DType::u2 : bits == 4 ? DType::u4 : DType::u8;
    return n.builder().constant(constant->viewed_as(Type::get(dtype, dims)));
  }
  if (bits == 8) return reshape(n.in(operand), dims);
  Dims each = dims;
  each.back() = each.back().value() * bits / 8;
  each.push_back(1);
  Value bytes = reshape(n.in(operand), each);
  std::vector<Value> parts;
  for (int64_t bit = 0; bit < 8; bit += bits) {
    Value part = binary(Opcode::shift_right, bytes, static_cast<double>(bit));
    parts.push_back(binary(Opcode::and_, part, static_cast<double>((1 << bits) - 1)));
  }
  return reshape(concat(parts, static_cast<int>(dims.size())), dims);
}

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

// The operand in other dims. Products read constants as they lie, so these have the dims
// themselves.
Value shaped(Node& n, size_t operand, const Dims& dims) {
  if (const std::optional<Tensor> constant = n.maybe_constant(operand))
    return n.builder().constant(constant->viewed_as(Type::get(constant->dtype(), dims)));
  return reshape(n.in(operand), dims);
}

// The operand has `stored` numbers of l.bits for each column.
void check_bytes(Node& n, size_t operand, const Layout& l, int64_t stored) {
  const Value bytes = n.in(operand);
  const int64_t per_column = stored / l.per_byte();
  if (bytes.dtype() != DType::u8 ||
      !(bytes.type().elements() == Dim(l.columns) * Dim(per_column))) {
    n.bad("operand {} is {}, want u8 with {} bytes for each of {} columns", operand,
          bytes.type().to_string(), per_column, l.columns);
  }
}

// Numbers of l.bits in the bytes of an operand as [columns, count] of `stored` per column.
Value unpacked(Node& n, size_t operand, const Layout& l, int64_t stored, int64_t count) {
  check_bytes(n, operand, l, stored);
  return slice(in_bytes(n, operand, l.bits, {l.columns, stored}), 1, 0, count);
}

// [columns, blocks]
Value scales(Node& n, const Layout& l) {
  const Value scale = n.in(2);
  if (!is_real(scale.dtype()) || !(scale.type().elements() == Dim(l.columns) * Dim(l.blocks()))) {
    n.bad("the scales are {}, want reals, {} for each of {} columns", scale.type().to_string(),
          l.blocks(), l.columns);
  }
  return shaped(n, 2, {l.columns, l.blocks()});
}

// The zero points [columns, blocks], reals or numbers in bytes; null: there are none.
Value zero_points(Node& n, const Layout& l) {
  const Value zero = n.optional(3);
  if (!zero) return zero;
  if (is_real(zero.dtype())) {
    if (!(zero.type().elements() == Dim(l.columns) * Dim(l.blocks())))
      n.bad("operand 3 is {}, want {} reals for each of {} columns", zero.type().to_string(),
            l.blocks(), l.columns);
    return reshape(zero, {l.columns, l.blocks()});
  }
  const int64_t bytes = (l.blocks() + l.per_byte() - 1) / l.per_byte();
  return unpacked(n, 3, l, bytes * l.per_byte(), l.blocks());
}

// The weights as they lie.
GroupedWeights grouped_weights(Node& n, const Layout& l) {
  check_bytes(n, 1, l, l.blocks() * l.block);
  GroupedWeights made = {.bytes = shaped(n, 1, {l.columns, l.blocks(), l.block / l.per_byte()}),
                         .scales = cast(scales(n, l), DType::f32),
                         .bits = l.bits};
  made.zeros = zero_points(n, l);
  if (made.zeros && is_real(made.zeros.dtype())) made.zeros = cast(made.zeros, DType::f32);
  return made;
}

// The weights [columns, rows] as reals of the type of the scales.
Value weights(Node& n, const Layout& l, Value scale) {
  Builder& b = n.builder();
  const int64_t blocks = l.blocks();
  const Dims per_block = {l.columns, blocks};
  Value zero = zero_points(n, l);
  Value numbers = unpacked(n, 1, l, blocks * l.block, l.rows);
  const Granularity g = {.axis = 1, .block = l.block};
  if (zero && is_real(zero.dtype())) {
    // Zero points that are no whole numbers: (q - zero) * scale spelled out.
    auto spread = [&](Value v) {
      return dequantized(n, b.full(DType::u8, {l.columns, l.rows}, 1), v, Value(), g);
    };
    return (cast(numbers, scale.dtype()) - spread(cast(zero, scale.dtype()))) * spread(scale);
  }
  if (zero) {
    zero = cast(zero, numbers.dtype());
  } else {
    // In the type of the weights: a product that unpacks the weights has it in its code.
    zero = b.full(numbers.dtype(), per_block, static_cast<double>(1 << (l.bits - 1)));
  }
  return dequantized(n, numbers, scale, zero, g);
}

Value product_by(Value weights, Value a) {
  return dot_general(a, weights, {}, {}, {a.rank() - 1}, {1});
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
  // The least exact arithmetic that is allowed. Only bytes are worth it.
  const int64_t level = n.integer("accuracy_level", 0);
  if (level < 0 || level > kLevelOfBytes)
    n.bad("accuracy_level is {}, want 0 to {}", level, kLevelOfBytes);
  check_groups(n, l);
  Value a = n.in(0);
  n.require_rank(a, "A", 1);
  if (!a.dim(-1).is(l.rows)) {
    n.bad("A is {}, K is {}", a.type().to_string(), l.rows);
  }
  Value y;
  if (level != kLevelOfBytes) {
    y = product_by(cast(weights(n, l, scales(n, l)), a.dtype()), a);
  } else if (sums_have_room(a, l.block)) {
    y = cast(product_of_rounded(cast(a, DType::f32), grouped_weights(n, l)), a.dtype());
  } else {
    const Value rounded = rounded_in_groups(cast(a, DType::f32), l.block);
    y = cast(product_by(weights(n, l, cast(scales(n, l), DType::f32)), rounded), a.dtype());
  }
  if (Value bias = n.optional(5)) y = y + bias;
  n.out(y);
}

namespace {

// A table of numbers of 2, 4 or 8 bits, with their zero points. Bytes have several to each.
struct PackedTable {
  Value numbers, zero;  // zero: absent for the one of the type
  double usual_zero = 0;
};

Dims with_longer_last(Value v, int64_t times) {
  Dims dims = v.dims();
  if (!dims.back().is_static()) return dims;
  dims.back() = dims.back().value() * times;
  return dims;
}

PackedTable read_table(Node& n, int64_t gather_axis, int64_t quantize_axis) {
  const Value data = n.in(0), zero = n.optional(3);
  const int64_t bits = n.integer("bits", 4);
  if (data.dtype() == DType::i4 || data.dtype() == DType::u4) {
    if (bits != 4) n.bad("bits is {}, and the table is {}", bits, data.type().to_string());
    return {data, zero};
  }
  if (data.dtype() != DType::u8)
    n.bad("the table is {}, want i4, u4 or u8", data.type().to_string());
  if (bits != 2 && bits != 4 && bits != 8) n.unsupported("a table of {} bits", bits);
  if (gather_axis != 0 || quantize_axis != data.rank() - 1)
    n.bad(
        "rows of bytes are gathered along axis 0 and scaled along the last; the axes are {} and {}",
        gather_axis, quantize_axis);
  if (!data.type().is_static()) n.unsupported("a table whose size varies");
  PackedTable table = {in_bytes(n, 0, bits, with_longer_last(data, 8 / bits)), {}};
  table.usual_zero = static_cast<double>(1 << (bits - 1));
  if (!zero) return table;
  const Value scale = n.in(2);
  if (zero.dtype() != DType::u8 || !zero.type().is_static() || zero.rank() != data.rank())
    n.bad("the zero points are {}, want u8 with the table's rank", zero.type().to_string());
  Dims stored = with_longer_last(zero, 8 / bits);
  if (scale.rank() != zero.rank() || !provably_le(scale.dim(-1), stored.back()))
    n.bad("the zero points are {}, too few for scales of {}", zero.type().to_string(),
          scale.type().to_string());
  table.zero =
      cast(slice(in_bytes(n, 3, bits, stored), -1, 0, scale.dim(-1)), table.numbers.dtype());
  return table;
}

}  // namespace

// Rows of a table, and their scales and zero points, are looked up before they are multiplied.
void map_gather_block_quantized(Node& n) {
  const Value indices = n.in(1), scale = n.in(2), data = n.in(0);
  n.require_rank(data, "the table", 1);
  if (!is_integer(indices.dtype()))
    n.bad("the indices have type {}, want integers", indices.type().to_string());
  const int gather_axis = n.axis("gather_axis", data.rank(), 0);
  const int quantize_axis = n.axis("quantize_axis", data.rank(), 1);
  const int64_t block = n.integer("block_size", 128);
  if (block < 16 || block > kMaxElements || (block & (block - 1)) != 0)
    n.bad("block_size is {}, want a power of 2 from 16 on", block);
  if (gather_axis == quantize_axis)
    n.bad("rows are gathered and scaled along axis {}", gather_axis);
  const PackedTable table = read_table(n, gather_axis, quantize_axis);
  if (!is_real(scale.dtype()) || scale.rank() != data.rank())
    n.bad("the scales are {}, want reals with the table's rank", scale.type().to_string());
  const Dim rows = table.numbers.dim(gather_axis);
  if (!(scale.dim(gather_axis) == rows))
    n.bad("the scales are {} for a table of {} rows", scale.type().to_string(), rows.to_string());
  check_indices(n, indices, rows);
  const Value at = from_back(n, indices, rows);
  const auto row = [&](Value v) { return looked_up(v, at, gather_axis); };
  const Value scales = row(scale);
  Value zero = table.zero ? row(table.zero) : Value();
  if (!zero && table.usual_zero != 0)
    zero =
        cast(n.builder().full(DType::u8, scales.dims(), table.usual_zero), table.numbers.dtype());
  const int64_t axis =
      quantize_axis > gather_axis ? quantize_axis + indices.rank() - 1 : quantize_axis;
  n.out(dequantized(n, row(table.numbers), scales, zero, {.axis = axis, .block = block}));
}

}  // namespace hone::onnx_io
