#include "front/decoder/rounded_product.h"

#include "base/checked_math.h"
#include "ir/functional.h"

namespace hone {
namespace {

// Rows in groups, rounded: whole numbers i8[..., groups, bytes of a group, numbers of a byte].
struct RoundedRows {
  Value numbers;
  Value scales;  // f32[..., groups]
};

// 127 divided by less has no room in f32. Such data count as zeros.
constexpr double kLeastRounded = 4e-37;

RoundedRows rounded_rows(Value x) {
  const int last = x.rank() - 1;
  const Value most = reduce_max(unary(Opcode::abs, x), {last - 1, last});
  const Value nothing = x.builder().full(DType::f32, most.dims(), 0);
  const Value inverse = select(compare("lt", most, kLeastRounded), nothing, 127 / most);
  const Value numbers = unary(Opcode::round, x * unsqueeze(unsqueeze(inverse, last - 1), last));
  return {cast(numbers, DType::i8), most / 127};
}

Value with_whole_groups(Value x, int64_t group) {
  const int64_t more = round_up(x.dim(-1).value(), group) - x.dim(-1).value();
  if (more == 0) return x;
  Ints low(static_cast<size_t>(x.rank()), 0), high = low;
  high.back() = more;
  return pad(x, low, high);
}

// u8[outputs, groups, numbers of a byte, bytes of a group].
Value unpacked_numbers(const GroupedWeights& weights) {
  const Value bytes = unsqueeze(weights.bytes, 2);
  if (weights.bits == 8) return bytes;
  const Value number = iota(bytes.builder(), DType::u8, {8 / weights.bits, 1}, 0);
  return binary(Opcode::and_,
                binary(Opcode::shift_right, bytes, number * static_cast<double>(weights.bits)),
                static_cast<double>((1 << weights.bits) - 1));
}

// [..., groups] as [groups, ..., 1].
Value by_group(Value per_row) {
  Ints order = {per_row.rank() - 1};
  for (int dim = 0; dim + 1 < per_row.rank(); ++dim) order.push_back(dim);
  return unsqueeze(transpose(per_row, order), per_row.rank());
}

// [outputs, groups] as [groups, 1, ..., outputs], of as many dims.
Value by_group(Value per_output, int rank) {
  Dims dims = {per_output.dim(1)};
  dims.resize(static_cast<size_t>(rank) - 1, 1);
  dims.push_back(per_output.dim(0));
  return reshape(transpose(per_output, {1, 0}), dims);
}

}  // namespace

int64_t GroupedWeights::numbers() const { return bytes.dim(2).value() * 8 / bits; }

bool sums_have_room(Value x, int64_t group) {
  Dim rows = 1;
  for (int dim = 0; dim + 1 < x.rank(); ++dim) rows = rows * x.dim(dim);
  return group <= kMostInGroup && provably_le(rows * Dim(2), group);
}

Value rounded_in_groups(Value x, int64_t group) {
  if (!x.builder().ok()) return x;
  const Dim inputs = x.dim(-1);
  const Value whole = with_whole_groups(x, group);
  Dims dims = whole.dims();
  dims.back() = whole.dim(-1).value() / group;
  dims.push_back(group);
  dims.push_back(1);
  const RoundedRows rows = rounded_rows(reshape(whole, dims));
  const int last = static_cast<int>(dims.size()) - 1;
  const Value reals =
      cast(rows.numbers, DType::f32) * unsqueeze(unsqueeze(rows.scales, last - 1), last);
  return slice(reshape(reals, whole.dims()), -1, 0, inputs);
}

Value product_of_rounded(Value x, const GroupedWeights& weights) {
  if (!x.builder().ok()) return x;
  const int64_t groups = weights.bytes.dim(1).value();
  x = with_whole_groups(x, weights.numbers());
  Dims dims = x.dims();
  dims.back() = groups;
  dims.push_back(weights.bytes.dim(2));
  dims.push_back(8 / weights.bits);
  const RoundedRows rows = rounded_rows(reshape(x, dims));
  const int last = static_cast<int>(dims.size()) - 1;
  // [groups, ..., outputs]
  const Value products = x.builder().op(Opcode::dot, {rows.numbers, unpacked_numbers(weights)},
                                        {{"lhs_batch", Ints{last - 2}},
                                         {"rhs_batch", Ints{1}},
                                         {"lhs_contract", Ints{last, last - 1}},
                                         {"rhs_contract", Ints{2, 3}},
                                         {"accumulate", std::string("i32")}});
  if (!x.builder().ok()) return products;
  const Value sums =
      by_group(reduce_sum(cast(rows.numbers, DType::i32), {last - 1, last}));  // of data
  Value numbers;
  if (!weights.zeros)
    numbers = cast(products - sums * static_cast<double>(1 << (weights.bits - 1)), DType::f32);
  else if (is_integer(weights.zeros.dtype()))
    numbers = cast(products - sums * by_group(cast(weights.zeros, DType::i32), products.rank()),
                   DType::f32);
  else
    numbers = cast(products, DType::f32) -
              cast(sums, DType::f32) * by_group(weights.zeros, products.rank());
  return reduce_sum(numbers * (by_group(rows.scales) * by_group(weights.scales, products.rank())),
                    {0});
}

}  // namespace hone
