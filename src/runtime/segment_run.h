#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "runtime/segments.h"
#include "tensor/tensor.h"

namespace hone {

// Runs a unit of a tree.
using RunUnit =
    std::function<Result<std::vector<Tensor>>(uint32_t unit, std::span<const Tensor> inputs)>;

struct SegmentLimits {
  const CancelToken* cancel = nullptr;
  int64_t max_trips = int64_t{1} << 31;  // of all loops together
  int64_t max_bytes = INT64_MAX;         // of the values that are held at once
};

// A run of a tree that was checked, on its inputs. Errors: of units, and a value that is not there
// or of another type than it is used as; of bounds (ErrorCode::limit), and cancelled.
Result<std::vector<Tensor>> run_segments(const SegmentTree& tree, std::span<const Tensor> inputs,
                                         const RunUnit& run, const SegmentLimits& options = {});

}  // namespace hone
