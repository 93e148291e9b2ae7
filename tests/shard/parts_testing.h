#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "shard/batch_part.h"
#include "tensor/tensor.h"

// A judge of divided batches: the parts are run and joined by the reference alone, with reals in
// double. Sums of devices are made here, one part after the other.

namespace hone::tested {

Tensor rows_of(const Tensor& whole, int dim, const BatchShare& share);

struct FromParts {
  std::vector<Tensor> outputs;  // of the whole graph
  bool has_sums = false;
};
// An error of batch_part, or of the reference.
Result<FromParts> by_parts(const Graph& graph, std::span<const Tensor> inputs,
                           const std::vector<int>& dims, int64_t rows, int64_t devices);

// Empty if all is alike: equal bits, or reals within `tolerance` of the largest or of 1, NaN beside
// NaN.
std::string difference(std::span<const Tensor> actual, std::span<const Tensor> expected,
                       double tolerance);

// Says what is wrong with the graph on that many devices, beside the whole graph. Empty: nothing,
// or it is refused, as `is_refused` says.
std::string judge_parts(const Graph& graph, std::span<const Tensor> inputs,
                        const std::vector<int>& dims, int64_t rows, int64_t devices,
                        bool& is_refused);

}  // namespace hone::tested
