#pragma once

#include <optional>

#include "alloc/problem.h"

// The faults that check(problem) finds, for those who know buffers by other names than their
// indices.

namespace hone {

enum class MemoryField : uint8_t { life, size, alignment, offset, gaps, alias, space };

struct ProblemFault {
  size_t buffer;
  MemoryField field;
  Error error;  // names no buffer
};

// The first fault of the buffers; none: they are well formed.
std::optional<ProblemFault> fault_of(const MemoryProblem& problem);

}  // namespace hone
