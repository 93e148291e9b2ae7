#include "zoo/inputs.h"

#include <algorithm>
#include <limits>

#include "base/hash.h"
#include "base/rng.h"
#include "tensor/filled.h"

namespace hone {
namespace {

constexpr int64_t kFree = std::numeric_limits<int64_t>::max();

// How many values, from 0 on, an op accepts in each of its operands; kFree: any.
int64_t index_limit(const Graph& graph, NodeId n, size_t operand) {
  Op op = graph.op(n);
  auto dims = [&](size_t i) { return graph.type(graph.operands(n)[i]).static_dims(); };
  auto least = [&](const Ints& sizes, const Dims& windows, const Ints& axes) {
    int64_t limit = kFree;
    for (int64_t axis : axes) {
      size_t a = static_cast<size_t>(axis);
      limit = std::min(limit, sizes[a] - (windows.empty() ? 1 : windows[a].value()) + 1);
    }
    return limit;
  };
  switch (op.opcode()) {
    case Opcode::gather:
      return operand == 1 ? least(dims(0), op.dims("sizes"), op.ints("index_map")) : kFree;
    case Opcode::scatter: return operand == 1 ? least(dims(0), {}, op.ints("index_map")) : kFree;
    case Opcode::dynamic_slice: {
      if (operand == 0) return kFree;
      return least(dims(0), op.dims("sizes"), {static_cast<int64_t>(operand) - 1});
    }
    case Opcode::dynamic_update: {
      if (operand < 2) return kFree;
      Ints update = dims(1);
      return least(dims(0), {update.begin(), update.end()}, {static_cast<int64_t>(operand) - 2});
    }
    case Opcode::one_hot: return operand == 0 ? op.dims("depth")[0].value() : kFree;
    default: return kFree;
  }
}

// For each input of a static graph: how many values, from 0 on, its uses as an index allow. Casts
// and moves are seen through.
std::vector<int64_t> index_limits(const Graph& graph) {
  constexpr int kNoInput = -1;
  std::vector<int> source(graph.value_count(), kNoInput);
  std::vector<int64_t> limits(graph.inputs().size(), kFree);
  for (size_t i = 0; i < limits.size(); ++i)
    if (is_integer(graph.type(graph.inputs()[i]).dtype()))
      source[graph.inputs()[i].index] = static_cast<int>(i);
  for (NodeId n : graph.nodes()) {
    bool passes_on = graph.opcode(n) == Opcode::cast || graph.op(n).def().traits.moves_data;
    std::span<const ValueId> operands = graph.operands(n);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].is_none() || source[operands[i].index] == kNoInput) continue;
      int input = source[operands[i].index];
      int64_t limit = index_limit(graph, n, i);
      int64_t& known = limits[static_cast<size_t>(input)];
      known = std::min(known, limit);
      if (passes_on && i == 0) source[graph.result(n).index] = input;
    }
  }
  return limits;
}

Tensor random_tensor(Type type, uint64_t seed, int64_t index_limit) {
  if (is_real(type.dtype())) {
    std::vector<float> normal;
    return filled_with_reals(type, [&](int64_t first, std::span<double> numbers) {
      normal.resize(numbers.size());
      fill_normal(normal, seed, 1, first);
      std::ranges::copy(normal, numbers.begin());
    });
  }
  int64_t high = index_limit == kFree ? 1 : std::max<int64_t>(0, index_limit - 1);
  if (is_integer(type.dtype())) {
    int64_t highest = integer_limits(type.dtype()).highest;
    if (highest >= 0) high = std::min(high, highest);  // negative: the image of 2^64 - 1
  }
  Rng rng(seed);
  return filled_with_integers(type, [&](int64_t, std::span<int64_t> numbers) {
    for (int64_t& number : numbers) number = rng.between(0, high);
  });
}

// Every symbol's value: the given one, or the smallest that is not 0.
Result<Bindings> complete(const Graph& graph, const Bindings& given) {
  Bindings bindings;
  for (Symbol symbol : graph.symbols()) {
    auto known = given.find(symbol.name());
    if (known != given.end()) {
      HONE_TRY(check_binding(symbol, known->second));
      bindings.insert_or_assign(symbol.name(), known->second);
      continue;
    }
    int64_t step = symbol.multiple_of();
    int64_t least = std::max<int64_t>(symbol.min(), std::min<int64_t>(1, symbol.max()));
    int64_t value = ceildiv(Dim(least), step).value() * step;
    bindings.insert_or_assign(symbol.name(), value > symbol.max() ? value - step : value);
  }
  return bindings;
}

}  // namespace

Result<std::vector<Tensor>> random_inputs(const Graph& graph, uint64_t seed,
                                          const Bindings& bindings) {
  if (!graph.is_static()) {
    Bindings all = HONE_TRY(complete(graph, bindings));
    Graph bound = HONE_TRY(specialize(graph, all));
    if (!bound.is_static()) return bad_input("random inputs need numbers for all symbols");
    return random_inputs(bound, seed);
  }
  std::vector<int64_t> limits = index_limits(graph);
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < limits.size(); ++i) {
    Hasher hasher(seed);
    hasher.add(graph.name(graph.inputs()[i])).add(i);
    inputs.push_back(random_tensor(graph.type(graph.inputs()[i]), hasher.value(), limits[i]));
  }
  return inputs;
}

}  // namespace hone
