#pragma once

#include <span>

#include "tensor/tensor.h"

// Tensors cut and put together along an axis, of any element type.

namespace hone {

Type with_dim(Type type, int axis, int64_t size);
// The first `count` along an axis, which has as many.
Tensor cut(const Tensor& tensor, int axis, int64_t count);
// One after the other along axis 0; their types are equal otherwise, and there is one at least. An
// error if they are too many elements.
Result<Tensor> joined(std::span<const Tensor> parts);

}  // namespace hone
