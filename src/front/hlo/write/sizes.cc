#include "front/hlo/write/emit.h"
#include "tensor/dim_compute.h"

// Open sizes as values: they follow from the sizes of the inputs.

namespace hone::hlo {

namespace {

// Writes a size as operations on i64.
struct SizeAlgebra {
  GraphToProgram& writer;
  const std::map<std::string, uint32_t>& symbols;

  uint32_t number(int64_t value) {
    return writer.constant(Tensor::from_integers(Type::scalar(DType::i64), Ints{value}));
  }
  uint32_t both(std::string_view op, uint32_t a, uint32_t b) {
    return writer.op(op, {a, b}, Type::scalar(DType::i64));
  }
  uint32_t symbol(Symbol symbol) {
    const auto found = symbols.find(symbol.name());
    if (found == symbols.end())
      throw Refusal{unsupported("no input tells what the size {} is", symbol.name())};
    return found->second;
  }
  uint32_t add(uint32_t a, uint32_t b) { return both("stablehlo.add", a, b); }
  uint32_t multiply(uint32_t a, uint32_t b) { return both("stablehlo.multiply", a, b); }
  // The op rounds toward zero.
  uint32_t divide(uint32_t x, int64_t low, int64_t positive) {
    const int64_t lift = lift_of(low, positive);
    if (lift > kDimLimit / positive)
      throw Refusal{over_limit("a size that can be {} is divided by {}", low, positive)};
    if (lift != 0) x = add(x, number(lift * positive));
    x = both("stablehlo.divide", x, number(positive));
    return lift == 0 ? x : add(x, number(-lift));
  }
};

}  // namespace

void GraphToProgram::measure(const Graph& graph, std::span<const uint32_t> arguments) {
  const Type scalar = Type::scalar(DType::i64);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type type = graph.type(graph.inputs()[i]);
    for (int axis = 0; axis < type.rank(); ++axis) {
      const std::optional<LinearDim> linear =
          type.dim(axis).is_static() ? std::nullopt : as_linear(type.dim(axis));
      if (!linear || symbols_.contains(linear->symbol.name())) continue;
      SizeAlgebra algebra{*this, symbols_};
      uint32_t value = op("stablehlo.get_dimension_size", {arguments[i]}, Type::scalar(DType::i32),
                          {{"dimension", number_of(axis)}});
      value = op("stablehlo.convert", {value}, scalar);
      if (linear->offset != 0) value = algebra.add(value, algebra.number(-linear->offset));
      if (linear->factor != 1)
        value = algebra.both("stablehlo.divide", value, algebra.number(linear->factor));
      if (linear->step != 1) value = algebra.multiply(value, algebra.number(linear->step));
      symbols_.emplace(linear->symbol.name(), value);
    }
  }
}

uint32_t GraphToProgram::size(Dim dim) {
  SizeAlgebra algebra{*this, symbols_};
  return compute_dim(dim, algebra);
}

uint32_t GraphToProgram::sizes(std::span<const Dim> dims) {
  Ints numbers;
  for (const Dim dim : dims)
    if (dim.is_static()) numbers.push_back(dim.value());
  const auto count = static_cast<int64_t>(dims.size());
  if (numbers.size() == dims.size())
    return constant(Tensor::from_integers(Type::get(DType::i64, {count}), numbers));
  Ids parts;
  const Type one = Type::get(DType::i64, {1});
  for (const Dim dim : dims) parts.push_back(op("stablehlo.reshape", {size(dim)}, one));
  if (count == 1) return parts[0];
  return op("stablehlo.concatenate", std::move(parts), Type::get(DType::i64, {count}),
            {{"dimension", number_of(0)}});
}

}  // namespace hone::hlo
