#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/span.h"
#include "base/thread_pool.h"
#include "cache/compile_cache.h"
#include "codegen/codegen.h"
#include "program/instantiate.h"

namespace hone {

using KernelObserver = std::function<void(const std::string& kernel, const Span& span)>;

struct KernelOptions {
  CompileCache* cache = nullptr;  // of objects that were compiled before
  // The cache gets none of quick code, but its own objects are used.
  CodeEffort effort = CodeEffort::full;
  Progress* progress = nullptr;  // counts kernels, and says how many the cache had
  const CancelToken* cancel = nullptr;
  // Told each kernel that is compiled or found in the cache, on the thread that did it.
  KernelObserver observer = {};
};

// One object per kernel, compiled side by side or taken from the cache.
Result<std::vector<KernelCode>> compile_kernels(std::span<const program::Kernel> kernels,
                                                const Target& target, ThreadPool& pool,
                                                const KernelOptions& options = {});

// The compiler of kernels and its LLVM: others make other code.
std::string code_version();

// The key of a kernel's object in the cache: everything that the object depends on, including the
// compiler and its LLVM, except the names of kernels.
std::string kernel_key(const program::Kernel& kernel, const Target& target);

}  // namespace hone
