#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "runtime/runnable.h"
#include "runtime/segments.h"
#include "tensor/tensor.h"

// The interpreter of segments: all native runs of models with segments go through it. The reference
// has its own, because it judges this one.

namespace hone {

// The limits of a run; for a unit, what is left of them.
struct SegmentLimits {
  static constexpr int kMaxDepth = 128;

  const CancelToken* cancel = nullptr;
  int64_t max_trips = int64_t{1} << 31;  // of all loops together
  int64_t max_bytes = INT64_MAX;         // of the values that are held at once
  int depth = 0;                         // of segments around; at most kMaxDepth

  // The same for a run whose inputs somebody else holds.
  SegmentLimits beside(std::span<const Tensor> inputs) const;
};

// Runs a unit of a tree. A unit may be a tree of its own, which runs within `left`.
using RunUnit = std::function<Result<std::vector<Tensor>>(
    uint32_t unit, std::span<const Tensor> inputs, const SegmentLimits& left)>;

// A run of a tree that was checked, on its inputs. Errors: of units, and a value that is not there
// or of another type than it is used as; of bounds (ErrorCode::limit), and cancelled.
Result<std::vector<Tensor>> run_segments(const SegmentTree& tree, std::span<const Tensor> inputs,
                                         const RunUnit& run, const SegmentLimits& options = {});

// A run of a whole model: its inputs and outputs have to fit its ports.
Result<std::vector<Tensor>> run_segments(const SegmentTree& tree,
                                         std::span<const image::Port> input_ports,
                                         std::span<const image::Port> output_ports,
                                         std::span<const Tensor> inputs, const RunUnit& run,
                                         const SegmentLimits& limits);

// Runs a unit that is code. An error if its outputs take more than is left.
Result<std::vector<Tensor>> run_unit(const Runnable& code, uint32_t unit,
                                     std::span<const Tensor> inputs, const SegmentLimits& left,
                                     const RunOptions& options, std::vector<UnitTimes>* times);

}  // namespace hone
