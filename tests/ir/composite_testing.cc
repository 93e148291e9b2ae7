#include "tests/ir/composite_testing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"
#include "base/text.h"
#include "rewrite/passes.h"

namespace hone::tested {

// ---- Arrays -------------------------------------------------------------------------------------

Array::Array(Ints dims, double fill) : dims_(std::move(dims)) {
  size_t count = 1;
  for (int64_t d : dims_) count *= static_cast<size_t>(d);
  numbers_.assign(count, fill);
}

Array Array::from(const Tensor& tensor) {
  Array array(tensor.type().static_dims());
  for (size_t i = 0; i < array.size(); ++i)
    array.numbers_[i] = tensor.real_at(static_cast<int64_t>(i));
  return array;
}

Array Array::random(const Ints& dims, uint64_t seed, double scale) {
  Array array(dims);
  Rng rng(seed);
  for (double& x : array.numbers_) x = scale * (2 * rng.uniform() - 1);
  return array;
}

size_t Array::offset(std::initializer_list<int64_t> index) const {
  HONE_CHECK(index.size() == dims_.size(), "{} indices for rank {}", index.size(), dims_.size());
  size_t offset = 0, axis = 0;
  for (int64_t i : index) {
    HONE_CHECK(i >= 0 && i < dims_[axis], "index {} of {}", i, dims_[axis]);
    offset = offset * static_cast<size_t>(dims_[axis++]) + static_cast<size_t>(i);
  }
  return offset;
}

Array Array::map(const std::function<double(double)>& fn) const {
  Array result = *this;
  for (double& x : result.numbers_) x = fn(x);
  return result;
}

Type Array::type(DType dtype) const { return Type::get(dtype, Dims(dims_.begin(), dims_.end())); }

Tensor Array::tensor(DType dtype) const { return Tensor::from_reals(type(dtype), numbers_); }

// ---- Values -------------------------------------------------------------------------------------

std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& operands,
                           std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), op);
  std::vector<Type> types;
  std::vector<Tensor> inputs;
  for (const Tensor& t : operands) {
    types.push_back(t ? t.type() : Type());
    if (t) inputs.push_back(t);
  }
  Result<Graph> graph = graph_of(op_of(op), types);
  HONE_CHECK(graph.ok(), "{}", graph.error().to_string());
  Result<std::vector<Tensor>> results = evaluate(*graph, inputs);
  HONE_CHECK(results.ok(), "{}", results.error().to_string());

  // The expansion computes the same, node by node.
  Result<Graph> expanded = expand_composites(*graph);
  HONE_CHECK(expanded.ok(), "{}", expanded.error().to_string());
  EXPECT_TRUE(verify(*expanded).ok());
  Result<std::vector<Tensor>> again = evaluate(*expanded, inputs);
  HONE_CHECK(again.ok(), "{}", again.error().to_string());
  for (size_t i = 0; i < results->size(); ++i)
    EXPECT_EQ(difference((*again)[i], (*results)[i], 1e-13), "");
  return std::move(*results);
}

void expect_near(const Tensor& got, const Array& wanted, double tolerance,
                 std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "");
  ASSERT_EQ(got.type().static_dims(), wanted.dims());
  EXPECT_EQ(difference(got, wanted.tensor(got.dtype()), tolerance), "");
}

// ---- Types --------------------------------------------------------------------------------------

namespace {

template <class T>
T must(Result<T> result) {
  HONE_CHECK(result.ok(), "{}", result.error().to_string());
  return std::move(result).value();
}

}  // namespace

void expect_symbolic(std::string_view op, std::initializer_list<std::string_view> operands,
                     std::source_location where) {
  ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()),
                               fmt::format("{} of {}", op, join(operands, ", ")));
  const Op symbolic = op_of(op);
  const std::vector<Type> types = types_of(operands);
  const std::vector<Type> results = must(infer({symbolic, types}));
  Rng rng(7);
  for (int round = 0; round < 5; ++round) {
    Bindings bindings;
    for (const Symbol& s : symbols()) {
      const int64_t steps = (s.max() - s.min()) / s.multiple_of();
      const int64_t step = static_cast<int64_t>(rng.below(static_cast<uint64_t>(steps) + 1));
      bindings[s.name()] = s.min() + step * s.multiple_of();
    }
    std::vector<Type> bound, wanted;
    for (Type t : types) bound.push_back(t ? t.bind(bindings).value() : t);
    for (Type t : results) wanted.push_back(t.bind(bindings).value());
    const auto got = infer({symbolic.bind(bindings), bound});
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_EQ(*got, wanted);
  }
}

}  // namespace hone::tested
