#pragma once

#include <functional>
#include <source_location>
#include <string_view>
#include <vector>

#include "ir/builder.h"
#include "tests/ir/op_testing.h"

// Tests of composites against naive formulas in double.

namespace hone::tested {

// Numbers with an index per dim, for formulas written as loops.
class Array {
 public:
  Array() = default;
  explicit Array(Ints dims, double fill = 0);
  static Array from(const Tensor& tensor);
  // Uniform in [-scale, scale], the same for the same seed.
  static Array random(const Ints& dims, uint64_t seed, double scale = 1);

  const Ints& dims() const { return dims_; }
  int64_t dim(size_t axis) const { return dims_[axis]; }
  template <class... I>
  double& operator()(I... index) {
    return numbers_[offset({static_cast<int64_t>(index)...})];
  }
  template <class... I>
  double operator()(I... index) const {
    return numbers_[offset({static_cast<int64_t>(index)...})];
  }
  double& operator[](size_t i) { return numbers_[i]; }
  double operator[](size_t i) const { return numbers_[i]; }
  size_t size() const { return numbers_.size(); }
  Array map(const std::function<double(double)>& fn) const;
  Tensor tensor(DType dtype = DType::f64) const;
  Type type(DType dtype = DType::f64) const;

 private:
  size_t offset(std::initializer_list<int64_t> index) const;
  Ints dims_;
  std::vector<double> numbers_;
};

// Applies an op, written as text, in wide mode. An empty Tensor is an absent operand.
std::vector<Tensor> run_op(std::string_view op, const std::vector<Tensor>& operands,
                           std::source_location where = std::source_location::current());

void expect_near(const Tensor& got, const Array& wanted, double tolerance = 1e-12,
                 std::source_location where = std::source_location::current());

// Inference on types with N, M, K bound at random agrees with the symbolic inference, bound.
void expect_symbolic(std::string_view op, std::initializer_list<std::string_view> operands,
                     std::source_location where = std::source_location::current());

}  // namespace hone::tested
