#pragma once

#include <span>
#include <vector>

#include "kernel/layout.h"

namespace hone {

// Layouts that kernels like, row-major first: of images the channels (dim 1) last or in blocks, of
// weights the features (dim 0), of matrices either dim. Blocks divide their dim.
std::vector<Layout> usual_layouts(Type type, bool is_constant, std::span<const int64_t> blocks);

inline constexpr int64_t kUsualBlocks[] = {8, 16, 32};

}  // namespace hone
