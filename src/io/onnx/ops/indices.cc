#include "io/onnx/ops/indices.h"

#include <algorithm>

#include "io/onnx/flow.h"

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
  if (v.dim(0).value() > Contents::kMaxElements)
    n.bad("operand {} has {} elements, at most {} make sense", i, v.dim(0).value(),
          Contents::kMaxElements);
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

Value looked_up(Value x, Value indices, int axis) {
  if (provably_le(1, x.dim(axis))) return take(x, indices, axis);
  Ints none(static_cast<size_t>(x.rank()), 0), one = none;
  one[static_cast<size_t>(axis)] = 1;
  return take(pad(x, none, one), indices, axis);
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

Value window(Value x, int axis, Value start, Dim size, int64_t step) {
  Value steps = iota(x.builder(), DType::i64, {size}, 0);
  if (step != 1) steps = steps * static_cast<double>(step);
  return looked_up(x, steps + start, axis);
}

Value floor_mod(Value x, Value divisor) {
  Value rest = binary(Opcode::rem, x, divisor);
  return select(compare("lt", rest, 0), rest + divisor, rest);
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
