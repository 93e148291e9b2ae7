#pragma once

#include <functional>
#include <span>

#include "tensor/tensor.h"

// Tensors whose numbers are made a few at a time, so that they take little more than their own
// bytes.

namespace hone {

// `fill` gets the place of the first of the numbers, and is called in order.
Tensor filled_with_reals(Type type,
                         const std::function<void(int64_t first, std::span<double>)>& fill);
Tensor filled_with_integers(Type type,
                            const std::function<void(int64_t first, std::span<int64_t>)>& fill);

// The numbers of a real tensor, rounded once to another real type.
Tensor rounded_to(const Tensor& tensor, DType dtype);

// All elements are the one of `scalar`. The bytes are made when they are first read.
Tensor repeated(const Tensor& scalar, Type type);

}  // namespace hone
