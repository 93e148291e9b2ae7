#pragma once

#include <cstdint>
#include <span>

#include "cache/compile_cache.h"
#include "program/program.h"
#include "target/target.h"

namespace hone {

// Says whether a graph begins to run on quick code (early_code.h).
enum class QuickStart : uint8_t { never, where_sooner, always };

// An estimate of what kernels take to be compiled, by the lengths of their texts: seconds on one
// thread, of those that the cache lacks.
struct CompileTime {
  double real = 0;
  double quick = 0;
  int64_t kernels = 0;
};
CompileTime compile_time(std::span<const program::Kernel> kernels, const Target& target,
                         CompileCache* cache);

// True if the first result comes sooner by quick code, by enough to be worth the work: all kernels
// are compiled twice then. `run` is the price of a run of the real code, in seconds.
bool ends_sooner(const CompileTime& time, int64_t threads, double run);

}  // namespace hone
