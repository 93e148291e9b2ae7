#pragma once

#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace hone::hlo {

// If all elements have the same bits, one of them: rank 0. Tensors of rank 0 are left as they are.
std::optional<Tensor> one_number(const Tensor& tensor);

// The elements as the reader takes them: of StableHLO what stands within dense<...>, of HLO what
// stands within constant(...). Every element has its exact value; of NaN the sign is kept.
std::string literal_text(const Tensor& tensor, bool is_hlo);

}  // namespace hone::hlo
