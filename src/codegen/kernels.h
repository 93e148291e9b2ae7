#pragma once

#include <span>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"
#include "codegen/codegen.h"
#include "log/compile_cache.h"
#include "program/instantiate.h"

namespace hone {

struct KernelOptions {
  CompileCache* cache = nullptr;  // of objects that were compiled before
  Progress* progress = nullptr;   // counts kernels
  const CancelToken* cancel = nullptr;
};

// One object per kernel, compiled side by side or taken from the cache.
Result<std::vector<KernelCode>> compile_kernels(std::span<const program::Kernel> kernels,
                                                const Target& target, ThreadPool& pool,
                                                const KernelOptions& options = {});

}  // namespace hone
