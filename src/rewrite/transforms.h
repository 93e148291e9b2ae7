#pragma once

#include <functional>

#include "ir/graph.h"
#include "ir/ops/conv_order.h"

namespace hone {

// permit_transforms() with another answer to how many points constant weights allow
// (ir/winograd.h), which is asked for convs that can be transformed at all.
using TransformPoints = std::function<int64_t(const Tensor& weights, const ConvOrder& order)>;
Result<Graph> permit_transforms_by(const Graph& graph, const TransformPoints& points);

}  // namespace hone
