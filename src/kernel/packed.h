#pragma once

#include "kernel/layout.h"
#include "tensor/tensor.h"

namespace hone {

// The tensor as it lies in memory, made when somebody first reads it. The layout fits.
Tensor packed(const Tensor& tensor, const Layout& layout);

}  // namespace hone
