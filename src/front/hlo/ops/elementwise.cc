#include <cmath>
#include <numbers>

#include "base/text.h"
#include "front/hlo/importer.h"

// Ops of elements: of one operand or more.

namespace hone::hlo {
namespace {

// Types that hone stores but does not compute with are computed in wider ones.
DType wide(DType type) {
  if (!is_storage_only(type)) return type;
  if (is_real(type)) return DType::f32;
  return kind(type) == DTypeKind::sint ? DType::i8 : DType::u8;
}

DType signed_of(DType type) {
  switch (bits(type)) {
    case 64: return DType::i64;
    case 32: return DType::i32;
    case 16: return DType::i16;
    default: return DType::i8;
  }
}

std::vector<Value> widened(Node& n) {
  std::vector<Value> operands = n.operands();
  for (Value& one : operands)
    if (is_storage_only(one.dtype())) one = cast(one, wide(one.dtype()));
  return operands;
}

// In the type of the operands that are computed with, back to the type of the result.
std::vector<Value> narrowed(Node& n, Value made) {
  const DType stated = n.result().dtype();
  return {is_storage_only(stated) && made.dtype() == wide(stated) ? cast(made, stated) : made};
}

// A constant number for all elements.
bool is_spread(Value x, double number) {
  const Graph& graph = x.builder().graph();
  NodeId node = graph.producer(x.id());
  while (graph.opcode(node) == Opcode::broadcast) node = graph.producer(graph.operands(node)[0]);
  if (graph.opcode(node) != Opcode::constant) return false;
  const Tensor& tensor = graph.constant(node);
  return tensor.elements() == 1 && is_real(tensor.dtype()) && tensor.real_at(0) == number;
}

// A scalar for all elements of `like`.
Value spread_like(Value scalar, Value like) {
  if (scalar.rank() != 0 || like.rank() == 0) return scalar;
  return broadcast(scalar, like.dims(), {});
}

Value bitcast(Value x, DType type) {
  return x.dtype() == type ? x : x.builder().op(Opcode::bitcast, {x}, {{"dtype", type}});
}

Value integer(Builder& b, DType type, int64_t number) {
  return b.constant(Tensor::from_integers(Type::scalar(type), std::vector<int64_t>{number}));
}

}  // namespace

Value total_order(Value x) {
  const DType type = signed_of(x.dtype());
  const Value number = bitcast(x, type);
  const Value sign = binary(Opcode::shift_right, number, static_cast<double>(bits(type) - 1));
  // The digits of negative numbers are turned over; their sign stays.
  const Value lowest = number.builder().constant(Tensor::from_integers(
      Type::scalar(type), std::vector<int64_t>{integer_limits(type).highest}));
  return binary(Opcode::xor_, number, binary(Opcode::and_, sign, lowest));
}

std::vector<Value> elementwise_op(Node& n, Opcode of_numbers, Opcode of_bools) {
  const auto count = static_cast<size_t>(operand_arity(op_def(of_numbers)).min);
  n.need(count);
  const Opcode opcode = is_bool(n.in().dtype()) ? of_bools : of_numbers;
  const std::vector<Value> operands = widened(n);
  return narrowed(n, n.builder().op(opcode, operands));
}

// atan2(x, 1) is how HLO spells the arc tangent, which it lacks.
std::vector<Value> map_atan2(Node& n) {
  n.need(2);
  if (is_spread(n.in(1), 1)) return {n.builder().op(Opcode::atan, {n.in(0)})};
  return elementwise_op(n, Opcode::atan2, Opcode::atan2);
}

std::vector<Value> map_square(Node& n) {
  n.need(1);
  return {n.in() * n.in()};
}

std::vector<Value> map_is_positive_infinity(Node& n) {
  n.need(1);
  return {compare("eq", n.in(), std::numeric_limits<double>::infinity())};
}
std::vector<Value> map_is_negative_infinity(Node& n) {
  n.need(1);
  return {compare("eq", n.in(), -std::numeric_limits<double>::infinity())};
}

// Halves go away from zero: x without its fraction, and a step on if the fraction is a half or
// more.
std::vector<Value> map_round_from_zero(Node& n) {
  n.need(1);
  const Value x = n.in();
  const Value whole = unary(Opcode::trunc, x);
  const Value size = unary(Opcode::abs, x - whole);
  const Value step = select(compare("ge", size, 0.5), unary(Opcode::sign, x), whole * 0.0);
  // Where x is infinite the fraction is NaN, and so no step is taken; -0 keeps its sign.
  return {select(compare("ge", size, 0.5), whole + step, whole)};
}

// x^(1/3) in f64 or better, with a step of Newton's where f64 is asked for.
std::vector<Value> map_cbrt(Node& n) {
  n.need(1);
  const Value x = cast(n.in(), DType::f64);
  const Value size = unary(Opcode::abs, x);
  const Value tiny = compare("lt", size, 0x1p-900);
  const Value scaled = select(tiny, size * 0x1p300, size);
  Value root = power(scaled, 1.0 / 3);
  root = root - (root - scaled / (root * root)) / 3.0;
  root = select(tiny, root * 0x1p-100, root);
  const Value stays = binary(Opcode::or_, compare("eq", size, 0.0),
                             unary(Opcode::not_, unary(Opcode::is_finite, size)));
  const Value made = select(stays, x, unary(Opcode::sign, x) * root);
  return {cast(made, n.in().dtype())};
}

// The ones of x, smeared to the right, are the bits that are no leading zeros.
std::vector<Value> map_leading_zeros(Node& n) {
  n.need(1);
  const DType type = n.in().dtype();
  if (!is_integer(type) || is_storage_only(type))
    n.refuse(unsupported("of {} is not handled", name(type)));
  Value x = bitcast(n.in(), pattern_type(type));
  for (int step = 1; step < bits(type); step *= 2)
    x = binary(Opcode::or_, x,
               binary(Opcode::shift_right, x, integer(n.builder(), x.dtype(), step)));
  const Value ones = unary(Opcode::popcount, x);
  const Value all = integer(n.builder(), x.dtype(), bits(type));
  return {bitcast(binary(Opcode::sub, spread_like(all, ones), ones), type)};
}

std::vector<Value> map_shift_logical(Node& n) {
  n.need(2);
  const DType type = n.in().dtype();
  if (is_storage_only(type)) n.refuse(unsupported("of {} is not handled", name(type)));
  const DType pattern = pattern_type(type);
  return {bitcast(binary(Opcode::shift_right, bitcast(n.in(0), pattern), bitcast(n.in(1), pattern)),
                  type)};
}

std::vector<Value> map_shift_arithmetic(Node& n) {
  n.need(2);
  const std::vector<Value> operands = widened(n);
  const DType type = operands[0].dtype();
  const DType number = signed_of(type);
  return narrowed(n, bitcast(binary(Opcode::shift_right, bitcast(operands[0], number),
                                    bitcast(operands[1], number)),
                             type));
}

std::vector<Value> map_compare(Node& n) {
  n.need(2);
  std::vector<Value> operands = widened(n);
  std::string_view direction = n.word("comparison_direction|direction");
  std::string_view kind = n.word("compare_type|type");
  for (const std::string_view word : n.instruction().words) {
    if (direction.empty())
      direction = word;
    else
      kind = word;
  }
  constexpr std::pair<std::string_view, std::string_view> kDirections[] = {
      {"EQ", "eq"}, {"NE", "ne"}, {"LT", "lt"}, {"LE", "le"}, {"GT", "gt"}, {"GE", "ge"}};
  if (kind == "TOTALORDER" && is_real(operands[0].dtype()))
    for (Value& each : operands) each = total_order(each);
  for (const auto& [text, ours] : kDirections)
    if (text == direction)
      return {n.builder().op(Opcode::compare, {operands[0], operands[1]},
                             {{"direction", std::string(ours)}})};
  n.refuse(bad_input("'{}' is no direction: EQ, NE, LT, LE, GT or GE", excerpt(direction)));
}

std::vector<Value> map_select(Node& n) {
  n.need(3);
  return {n.builder().op(Opcode::select, {spread_like(n.in(0), n.in(1)), n.in(1), n.in(2)})};
}

std::vector<Value> map_clamp(Node& n) {
  n.need(3);
  const std::vector<Value> x = widened(n);
  const bool truth = is_bool(x[1].dtype());
  const Value above =
      n.builder().op(truth ? Opcode::or_ : Opcode::max, {x[1], spread_like(x[0], x[1])});
  return narrowed(
      n, n.builder().op(truth ? Opcode::and_ : Opcode::min, {above, spread_like(x[2], x[1])}));
}

std::vector<Value> map_convert(Node& n) {
  n.need(1);
  return {cast(n.in(), n.result().dtype())};
}

// The neighbour of x on the way to y. Patterns of reals are in order, from zero up.
std::vector<Value> map_next_after(Node& n) {
  n.need(2);
  const Value x = n.in(0);
  const Value y = n.in(1);
  const DType type = x.dtype();
  if (!is_real(type) || is_storage_only(type))
    n.refuse(bad_input("of {} is not defined", name(type)));
  Builder& b = n.builder();
  const DType number = signed_of(type);
  const Value bits_of_x = bitcast(x, number);
  const Value is_zero = compare("eq", x, 0.0);
  const Value upward = compare("lt", x, y);
  const Value grows =
      compare("eq", cast(upward, DType::i8), cast(compare("gt", x, 0.0), DType::i8));
  const Value step = select(grows, integer(b, number, 1), integer(b, number, -1));
  const Value moved = bitcast(binary(Opcode::add, bits_of_x, step), type);
  const Value least = bitcast(integer(b, number, 1), type);
  const Value from_zero = select(upward, least, unary(Opcode::neg, least));
  Value made = select(is_zero, spread_like(from_zero, x), moved);
  made = select(compare("eq", x, y), y, made);
  return {
      select(binary(Opcode::or_, unary(Opcode::is_nan, x), unary(Opcode::is_nan, y)), x + y, made)};
}

// The nearest number with fewer bits of exponent and fraction, ties to even; numbers too small
// become zero, and too large ones infinite.
std::vector<Value> map_reduce_precision(Node& n) {
  n.need(1);
  int64_t exponent = n.integer("exponent_bits", -1);
  int64_t fraction = n.integer("mantissa_bits", -1);
  std::string_view format = n.word("format");  // e5m10
  if (exponent < 0 && consume_prefix(format, "e")) {
    const size_t m = format.find('m');
    const Result<int64_t> first = parse_int(format.substr(0, m));
    const Result<int64_t> second =
        parse_int(m == std::string_view::npos ? "" : format.substr(m + 1));
    if (first.ok() && second.ok()) {
      exponent = *first;
      fraction = *second;
    }
  }
  const DType type = n.in().dtype();
  if (exponent < 1 || exponent > 62 || fraction < 0 || fraction > 62 || !is_real(type))
    n.refuse(bad_input("there must be numbers of bits for the exponent and the fraction"));
  struct Format {
    int exponent;
    int fraction;
  };
  const Format own = type == DType::f64   ? Format{11, 52}
                     : type == DType::f32 ? Format{8, 23}
                     : type == DType::f16 ? Format{5, 10}
                                          : Format{8, 7};
  Builder& b = n.builder();
  const Value x = n.in();
  const DType pattern = pattern_type(type);
  const auto number = [&](uint64_t value) {
    return integer(b, pattern, static_cast<int64_t>(value));
  };
  Value image = bitcast(x, pattern);
  const uint64_t sign_bit = uint64_t{1} << (bits(type) - 1);
  if (fraction < own.fraction) {
    const int cut = own.fraction - static_cast<int>(fraction);
    const Value odd =
        binary(Opcode::and_, binary(Opcode::shift_right, image, number(cut)), number(1));
    const Value bias = binary(Opcode::add, odd, number((uint64_t{1} << (cut - 1)) - 1));
    image =
        binary(Opcode::and_, binary(Opcode::add, image, bias), number(~((uint64_t{1} << cut) - 1)));
  }
  if (exponent < own.exponent) {
    const uint64_t own_bias = (uint64_t{1} << (own.exponent - 1)) - 1;
    const uint64_t bias = (uint64_t{1} << (exponent - 1)) - 1;
    const Value size = binary(Opcode::and_, image, number(sign_bit - 1));
    const Value sign = binary(Opcode::and_, image, number(sign_bit));
    const uint64_t infinity = ((uint64_t{1} << own.exponent) - 1) << own.fraction;
    const uint64_t too_large = (own_bias + bias + 1) << own.fraction;
    const uint64_t least = (own_bias - bias + 1) << own.fraction;  // the least normal number
    image = select(compare("lt", size, spread_like(number(least), size)), sign,
                   select(compare("ge", size, spread_like(number(too_large), size)),
                          binary(Opcode::or_, sign, number(infinity)), image));
  }
  const Value made = bitcast(image, type);
  // A type without a fraction lacks NaN. NaN becomes infinite.
  const Value infinite = spread_like(b.scalar(type, std::numeric_limits<double>::infinity()), x);
  return {select(unary(Opcode::is_nan, x), fraction == 0 ? infinite : x, made)};
}

// To a smaller type a dim is added at the end, to a larger one the last dim goes. The first element
// has the lowest bits. A bool is one bit.
std::vector<Value> map_bitcast_convert(Node& n) {
  n.need(1);
  const Type to = n.result();
  const Value x = n.in();
  const DType from = x.dtype();
  if (from == to.dtype()) return {x};
  const auto width = [](DType type) { return is_bool(type) ? 1 : bits(type); };
  if (width(from) == width(to.dtype())) return {bitcast(x, to.dtype())};
  if (is_storage_only(from) || is_storage_only(to.dtype()))
    n.refuse(unsupported("from {} to {} is not handled", name(from), name(to.dtype())));
  Builder& b = n.builder();
  const auto places = [&](DType type, const Dims& dims, int step) {
    return iota(b, type, dims, static_cast<int>(dims.size()) - 1) * static_cast<double>(step);
  };
  if (width(from) > width(to.dtype())) {
    if (to.rank() != x.rank() + 1) n.refuse(bad_input("the result must have one more dim"));
    const DType wide_bits = pattern_type(from);
    Dims dims = x.dims();  // those of the result may be open
    dims.emplace_back(width(from) / width(to.dtype()));
    Ints map;
    for (int i = 0; i < x.rank(); ++i) map.push_back(i);
    const Value all = broadcast(bitcast(x, wide_bits), dims, map);
    const Value part = binary(Opcode::shift_right, all, places(wide_bits, dims, width(to.dtype())));
    if (is_bool(to.dtype()))
      return {cast(binary(Opcode::and_, part, integer(b, wide_bits, 1)), DType::boolean)};
    return {bitcast(cast(part, pattern_type(to.dtype())), to.dtype())};
  }
  if (x.rank() != to.rank() + 1) n.refuse(bad_input("the result must have one dim less"));
  const DType wide_bits = pattern_type(to.dtype());
  const Value part = cast(is_bool(from) ? x : bitcast(x, pattern_type(from)), wide_bits);
  const Value all = binary(Opcode::shift_left, part, places(wide_bits, x.dims(), width(from)));
  return {bitcast(reduce("or", all, {x.rank() - 1}), to.dtype())};
}

}  // namespace hone::hlo
