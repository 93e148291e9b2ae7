#pragma once

#include <array>

#include "kernel/algorithms/algorithm.h"

namespace hone {

// The roles of the dims of a kernel's space in a conv whose windows are 3 x 3 and stand side by
// side.
struct WinogradDims {
  int batch = 0, features = 0, channels = 0;
  std::array<int, 2> spatial = {}, window = {};
};

// Or why F(2,3) is not for the body: of a 3 x 3 conv with stride 1, without dilation and groups,
// each point of the results needs the point at the same place, apart from a permutation of dims.
Result<WinogradDims> winograd_dims(const KernelBody& body, const KernelFacts& facts);

}  // namespace hone
