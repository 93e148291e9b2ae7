#pragma once

#include "base/error.h"
#include "base/thread_pool.h"
#include "ir/reference/domain.h"
#include "tensor/tensor.h"

// Between tensors and the evaluator's buffers.

namespace hone {

// Fails only for numbers that the domain does not have (infinity in a field).
template <class D>
Result<Buffer<D>> to_buffer(const Tensor& tensor, ThreadPool& pool);

// Rounds reals to the type, or keeps them whole as f64.
template <class D>
Tensor to_tensor(const Buffer<D>& buffer, bool reals_as_f64, ThreadPool& pool);

// Rounds each number to the element type, in place.
void round_in_place(DType type, std::span<double> numbers, ThreadPool& pool);

}  // namespace hone
