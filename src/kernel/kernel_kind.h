#pragma once

#include <string_view>

#include "kernel/facts.h"

namespace hone {

// The sort of a kernel, for tables: prices go wrong by kind. "dot", "gemv", "conv", "conv 1x1",
// "depthwise" (a channel a group), "grouped" (several), "bytes" (products of u8 and i8), "pairs"
// (products of bf16 that may flush), "pool", "rows" (softmax, norms, reductions), "elementwise"
// (and moving data), "chain", "other".
std::string_view kernel_kind(const KernelFacts& facts, Algorithm planned);

inline constexpr std::string_view kKernelKinds[] = {
    "dot",   "gemv", "conv", "conv 1x1",    "depthwise", "grouped", "bytes",
    "pairs", "pool", "rows", "elementwise", "chain",     "other"};

}  // namespace hone
