#include "front/onnx/ops/indices.h"

#include <algorithm>
#include <cmath>

#include "front/onnx/flow.h"

namespace hone::onnx_io {

Value integers(Builder& b, const Ints& values) {
  Type type = Type::get(DType::i64, {Dim(static_cast<int64_t>(values.size()))});
  return b.constant(Tensor::from_integers(type, values));
}

Value dims_value(Builder& b, const Dims& dims) {
  if (std::all_of(dims.begin(), dims.end(), [](Dim d) { return d.is_static(); })) {
    Ints numbers;
    for (Dim dim : dims) numbers.push_back(dim.value());
    return integers(b, numbers);
  }
  std::vector<Value> parts;
  for (Dim dim : dims) parts.push_back(reshape(size_value(b, dim), {1}));
  return concat(parts, 0);
}

void check_indices(Node& n, Value indices, Dim size, bool from_back) {
  if (!n.is_checked()) return;
  Value at = cast(indices, DType::i64), most = size_value(n.builder(), size);
  Value least = from_back ? -most : n.builder().scalar(DType::i64, 0);
  Value wrong = binary(Opcode::or_, compare("lt", at, least), compare("ge", at, most));
  const std::string text = size.to_string();
  n.check(at, wrong, fmt::format("an index in {}..{} - 1", from_back ? "-" + text : "0", text));
}

Value scalar_of(Node& n, size_t operand) {
  Value v = n.in(operand);
  if (!v.type().elements().is(1))
    n.bad("operand {} has type {}, want one element", operand, v.type().to_string());
  return reshape(v, {});
}

Value element_of(Value vector, int64_t index) {
  return reshape(slice(vector, 0, index, index + 1), {});
}

std::vector<Value> elements_of(Node& n, size_t i) {
  Value v = n.in(i);
  if (v.rank() != 1 || !v.dim(0).is_static() || !is_integer(v.dtype()))
    n.bad("operand {} has type {}, want a vector of integers", i, v.type().to_string());
  constexpr int64_t kMost = 2 * kMaxRank;  // a number for each side of each axis
  if (v.dim(0).value() > kMost)
    n.over_limit("operand {} has {} elements, at most {} are read", i, v.dim(0).value(), kMost);
  v = cast(v, DType::i64);
  std::vector<Value> elements;
  for (int64_t k = 0; k < v.dim(0).value(); ++k) elements.push_back(element_of(v, k));
  return elements;
}

std::optional<Dim> known_scalar(Node& n, Value scalar) {
  std::optional<Dims> elements = n.flow().contents().of(scalar.id());
  if (!elements || elements->size() != 1) return std::nullopt;
  return (*elements)[0];
}

std::vector<Number> numbers_of(Node& n, size_t i) {
  std::vector<Number> numbers;
  // "To the end" is often written as the highest number, which cannot be a dim.
  if (std::optional<Tensor> constant = n.maybe_constant(i);
      constant && constant->type().rank() == 1 && is_integer(constant->dtype()) &&
      constant->elements() <= Contents::kMaxElements) {
    constexpr int64_t kFar = int64_t{1} << 61;
    for (int64_t k = 0; k < constant->elements(); ++k)
      numbers.push_back({Dim(std::clamp(constant->integer_at(k), -kFar, kFar)), {}});
    return numbers;
  }
  if (std::optional<Dims> known = n.known(i)) {
    for (Dim dim : *known) numbers.push_back({dim, {}});
    return numbers;
  }
  for (Value v : elements_of(n, i)) {
    std::optional<Dim> known = known_scalar(n, v);
    numbers.push_back({known, known ? Value() : v});
  }
  return numbers;
}

int64_t room_for_each(Dim fixed, size_t unknown) {
  if (unknown == 0) return Node::kMostSize;
  const double room = static_cast<double>(kMaxSymbolicElements) /
                      static_cast<double>(std::max<int64_t>(fixed.range().high, 1));
  // A little less, for the error of pow.
  const double each =
      std::floor(std::pow(std::max(room, 1.0), 1.0 / static_cast<double>(unknown)) * (1 - 1e-9));
  // Beside symbols, which may be anything, there must be some room.
  const int64_t least = fixed.is_static() ? 1 : int64_t{1} << 15;
  return std::clamp<int64_t>(static_cast<int64_t>(each), least, Node::kMostSize);
}

Dims measured_sizes(Node& n, size_t operand, Dim fixed) {
  const std::vector<Number> numbers = numbers_of(n, operand);
  size_t unknown = 0;
  for (const Number& number : numbers) {
    if (number.known && number.known->range().low < 0)
      n.bad("the size {} is negative", number.known->to_string());
    if (number.known)
      fixed *= *number.known;
    else
      ++unknown;
  }
  return n.sizes(numbers, room_for_each(fixed, unknown));
}

Value looked_up(Value x, Value indices, int axis) {
  if (provably_le(1, x.dim(axis))) return take(x, indices, axis);
  Ints none(static_cast<size_t>(x.rank()), 0), one = none;
  one[static_cast<size_t>(axis)] = 1;
  // Indices beyond the end mean the last element, as take() has it, not what is appended.
  Value last = maximum(size_value(x.builder(), x.dim(axis)) - 1, 0);
  return take(pad(x, none, one), minimum(cast(indices, DType::i64), last), axis);
}

Value from_back(Node& n, Value indices, Dim size) {
  if (kind(indices.dtype()) == DTypeKind::uint) return indices;
  if (std::optional<Dims> known = n.flow().contents().of(indices.id())) {
    bool negative =
        std::any_of(known->begin(), known->end(), [](Dim index) { return !provably_le(0, index); });
    if (!negative) return indices;
  }
  indices = cast(indices, DType::i64);
  return select(compare("lt", indices, 0), indices + size_value(n.builder(), size), indices);
}

Value window(Value x, int axis, Value start, Dim size, Value step) {
  Value steps = iota(x.builder(), DType::i64, {size}, 0);
  if (step) steps = steps * step;
  return looked_up(x, steps + start, axis);
}

Value with_size(Node& n, Value x, int axis, int64_t size, std::string_view what) {
  if (axis < 0 || axis >= x.rank() || size < 0 || x.dim(axis).is_static()) return x;
  n.must_be(x.dim(axis), size, what);
  if (x.dim(axis).is_static()) return x;
  return window(x, axis, x.builder().scalar(DType::i64, 0), size);
}

Value floor_mod(Value x, Value divisor) {
  Value rest = binary(Opcode::rem, x, divisor);
  return select(compare("lt", rest, 0), rest + divisor, rest);
}

namespace {

// A bound for the sizes of a reshape that depend on data.
int64_t most_of_reshaped(Value x, size_t unknown) {
  const Range elements = x.type().elements().range();
  const int64_t room = room_for_each(1, unknown);
  return elements.low == 0 ? room : std::min(elements.high, room);
}

}  // namespace

Value reshaped(Node& n, Value x, const std::vector<Value>& sizes) {
  const size_t unknown = static_cast<size_t>(
      std::ranges::count_if(sizes, [&](Value size) { return !known_scalar(n, size); }));
  const Dim elements = x.type().elements();
  const Dims dims = n.sizes({sizes.begin(), sizes.end()}, most_of_reshaped(x, unknown), elements);
  Dim product = 1;
  for (Dim dim : dims) product *= dim;
  n.must_be(product, elements, Node::kProduct);
  if (product == elements) return reshape(x, dims);
  // Only the check of a run decides: elements are looked up.
  Builder& b = x.builder();
  Value place = b.scalar(DType::i64, 0);
  for (size_t i = 0; i < dims.size(); ++i)
    place = place * size_value(b, dims[i]) + iota(b, DType::i64, dims, static_cast<int>(i));
  return looked_up(reshape(x, {x.type().elements()}), place, 0);
}

Ints distinct_axes(Node& n, const Ints& axes, int rank) {
  Ints result;
  for (int64_t axis : axes) {
    int64_t at = n.axis_in(axis, rank);
    if (std::find(result.begin(), result.end(), at) != result.end())
      n.bad("axis {} is named twice", axis);
    result.push_back(at);
  }
  return result;
}

}  // namespace hone::onnx_io
