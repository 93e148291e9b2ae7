#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "ir/ops/conv_order.h"
#include "planner/planner.h"
#include "rewrite/prepare.h"

namespace hone {

struct GraphPriceOptions {
  std::optional<int64_t> threads = std::nullopt;  // none: the target's cores
  const CancelToken* cancel = nullptr;
};

// Prices graphs under their default plans, in seconds: fusion, layouts and copies count as the
// planner decides about them. Facts about kernels serve all graphs. The target and the
// Cost outlive it.
class GraphPrice {
 public:
  GraphPrice(const Target& target, const Cost& cost, const GraphPriceOptions& options = {});

  // The price of the graph after prepare().
  Result<double> exact(const Graph& graph);
  // Nearly the same, without computing weights: of primitive ops, for a search over many graphs.
  // A value that constants determine counts as a constant, and a conv whose weights are computed
  // may be transformed as one with the weights that they are computed from.
  Result<double> quick(const Graph& graph);

 private:
  Result<double> planned(const Graph& prepared);
  Result<Graph> with_stand_ins(const Graph& graph);
  int64_t points_of(const Tensor& weights, const ConvOrder& order);

  const Target& target_;
  const Cost& cost_;
  const GraphPriceOptions options_;
  KernelStore store_;
  std::unordered_map<uint64_t, int64_t> points_;    // of convs' weights, by content
  std::unordered_map<uint64_t, Tensor> made_from_;  // a constant for each stand-in, by content
};

}  // namespace hone
