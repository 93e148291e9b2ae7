#pragma once

#include "kernel/algorithms/block_rows.h"

namespace hone {

inline constexpr int64_t kCopySide = 32;  // points of both dims of a block

// The reads of parameters that a block takes by way of its memory, or why there is none. Each
// parameter is read at one place, and its neighbours lie along the dim before the last of the
// order.
Result<std::vector<BlockRow::Read>> copied_reads(const KernelBody& body, const KernelSpace& space,
                                                 const Schedule& schedule);

}  // namespace hone
