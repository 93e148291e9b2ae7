#pragma once

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "ir/access.h"
#include "ir/op_def.h"
#include "ir/reference/domain.h"
#include "ir/reference/evaluate.h"
#include "tests/ir/op_testing.h"

// Tests against loops that are written out: dot, conv, windows, reductions.

namespace hone::tested {

inline size_t at(int64_t i) { return static_cast<size_t>(i); }

inline Type type_with(DType dtype, const Ints& dims) {
  return Type::get(dtype, Dims(dims.begin(), dims.end()));
}

// Numbers that all arithmetic of a small test keeps exact.
inline Tensor small_integers(Type type, Rng& rng) {
  std::vector<int64_t> numbers(at(type.static_elements()));
  for (int64_t& x : numbers) x = rng.between(is_signed(type.dtype()) ? -4 : 0, 4);
  if (!is_real(type.dtype())) return Tensor::from_integers(type, numbers);
  return Tensor::from_reals(type, std::vector<double>(numbers.begin(), numbers.end()));
}

inline Tensor uniform_reals(Type type, Rng& rng) {
  std::vector<double> numbers(at(type.static_elements()));
  for (double& x : numbers) x = static_cast<float>(rng.uniform(-1, 1));
  return Tensor::from_reals(type, numbers);
}

template <class T>
std::vector<T> numbers_of(const Tensor& tensor) {
  std::vector<T> numbers;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    numbers.push_back(is_real(tensor.dtype()) ? static_cast<T>(tensor.real_at(i))
                                              : static_cast<T>(tensor.integer_at(i)));
  }
  return numbers;
}

// A tensor of what a loop computed.
template <class T>
Tensor tensor_from(Type type, const std::vector<T>& numbers) {
  if (is_real(type.dtype()))
    return Tensor::from_reals(type, std::vector<double>(numbers.begin(), numbers.end()));
  return Tensor::from_integers(type, std::vector<int64_t>(numbers.begin(), numbers.end()));
}

inline Result<std::vector<Tensor>> evaluate_op(Op op, const std::vector<Tensor>& operands,
                                               Numerics numerics = Numerics::wide) {
  std::vector<Type> types;
  for (const Tensor& t : operands) types.push_back(t.type());
  Graph graph = HONE_TRY(graph_of(op, types));
  EvalOptions options;
  options.numerics = numerics;
  options.real_outputs_as_f64 = true;
  return evaluate(graph, operands, options);
}

inline int64_t product(const Ints& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

// fn(index) for every index of a box, in row-major order.
template <class Fn>
void for_each_index(const Ints& dims, const Fn& fn) {
  Ints index(dims.size(), 0);
  for (int64_t left = product(dims); left > 0; --left) {
    fn(index);
    for (size_t i = dims.size(); i-- > 0;) {
      if (++index[i] < dims[i]) break;
      index[i] = 0;
    }
  }
}

inline size_t offset_of(const Ints& index, const Ints& dims) {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) offset = offset * dims[i] + index[i];
  return at(offset);
}

// The evaluator computes each element from exactly what the access relation says.
inline void expect_access_is_exact(Op op, const std::vector<Tensor>& operands) {
  std::vector<Type> types;
  for (const Tensor& t : operands) types.push_back(t.type());
  Graph graph = *graph_of(op, types);
  std::vector<ElementDependencies> traced = *trace_dependencies(graph, operands);
  std::vector<Type> results = graph.output_types();
  AccessRelation relation = access_of({.op = op, .operands = types}, results);
  std::vector<std::set<InputElement>> said(at(results[0].static_elements()));
  Ints extents;
  for (const IterDim& dim : relation.dims) extents.push_back(dim.extent.value());
  for_each_index(extents, [&](const Ints& point) {
    auto element = [&](const Access& access, Type type) {
      Ints index;
      for (const IndexExpr& e : access.index) index.push_back(e.at(point));
      Ints dims = type.static_dims();
      for (size_t i = 0; i < dims.size(); ++i) EXPECT_TRUE(index[i] >= 0 && index[i] < dims[i]);
      return offset_of(index, dims);
    };
    std::set<InputElement>& sources = said[element(relation.results[0], results[0])];
    for (size_t operand = 0; operand < types.size(); ++operand) {
      for (const Access& access : relation.operands[operand]) {
        bool happens = std::all_of(access.guards.begin(), access.guards.end(), [&](const Guard& g) {
          int64_t value = g.value.at(point);
          return g.lower.value() <= value && value < g.upper.value();
        });
        if (!happens) continue;
        sources.insert({static_cast<uint32_t>(operand),
                        static_cast<uint32_t>(element(access, types[operand]))});
      }
    }
  });
  for (size_t i = 0; i < said.size(); ++i) {
    EXPECT_EQ(traced[0][i], std::vector<InputElement>(said[i].begin(), said[i].end()))
        << op.name() << op.attrs_to_string() << " element " << i;
  }
}

// Where inference accepts symbolic operands, binding its results gives what it infers for the bound
// operands.
inline void expect_symbols_bind(std::string_view op_text, std::vector<std::string_view> operands) {
  Op op = op_of(op_text);
  std::vector<Type> types;
  for (std::string_view text : operands) types.push_back(type_of(text));
  Result<std::vector<Type>> symbolic = infer({.op = op, .operands = types});
  ASSERT_TRUE(symbolic.ok()) << symbolic.error().to_string();
  Rng rng(7);
  for (int trial = 0; trial < 50; ++trial) {
    Bindings bindings;
    for (const Symbol& s : symbols()) {
      int64_t value = rng.between(s.min(), s.max());
      bindings.emplace(s.name(), value / s.multiple_of() * s.multiple_of());
    }
    std::vector<Type> bound;
    for (Type type : types) bound.push_back(type.bind(bindings).value());
    Result<std::vector<Type>> fixed = infer({.op = op.bind(bindings), .operands = bound});
    ASSERT_TRUE(fixed.ok()) << op_text << ": " << fixed.error().to_string();
    for (size_t i = 0; i < fixed->size(); ++i) {
      EXPECT_EQ((*symbolic)[i].bind(bindings).value().to_string(), (*fixed)[i].to_string())
          << op_text;
    }
  }
}

}  // namespace hone::tested
