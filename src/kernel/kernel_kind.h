#pragma once

#include <string_view>

#include "kernel/facts.h"

namespace hone {

// The sort of a kernel, for tables: prices go wrong by kind. Convs are "conv", "conv 1x1",
// "depthwise" (a channel a group) or "grouped" (several). Other products are "dot" or "gemv".
// Products of u8 and i8 are "bytes", and those of bf16 that may flush are "pairs". The rest are
// "pool", "rows" (softmax, norms, reductions), "elementwise" (and moving data), "chain" and
// "other".
std::string_view kernel_kind(const KernelFacts& facts, Algorithm planned);

inline constexpr std::string_view kKernelKinds[] = {
    "dot",   "gemv", "conv", "conv 1x1",    "depthwise", "grouped", "bytes",
    "pairs", "pool", "rows", "elementwise", "chain",     "other"};

}  // namespace hone
