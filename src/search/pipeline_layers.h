#pragma once

#include <optional>
#include <span>
#include <vector>

#include "search/shard_prices.h"
#include "shard/micro_batches.h"

// The nodes of a micro-batch as a chain of layers.

namespace hone {

// The purpose of a node of a micro-batch.
enum class LayerPart : uint8_t {
  leaf,      // an input or a constant
  given,     // it follows from weights and constants alone
  forward,   // the outputs need it that no next state lies in
  backward,  // it comes after these: a gradient, or a part of one
  late,      // it needs sums over all micro-batches
};

// `whole` is the graph whose micro-batch it is: an output that an input is donated to is a next
// state.
std::vector<LayerPart> parts_of_nodes(const MicroBatch& batch, const Graph& whole);

// Seconds of each node, alone on a target, or else on the slowest one.
Result<std::vector<double>> seconds_of_nodes(const Graph& graph, const System& system,
                                             std::span<const std::shared_ptr<const Cost>> costs,
                                             const CancelToken* cancel,
                                             std::optional<size_t> target = {});

// The layer of each node; of leaves and of what is given that of the first user. Forward nodes are
// divided in their order. A backward node is where what it reads of the way forward is, and a next
// state where its weight is used.
std::vector<int> layers_of_nodes(const Graph& graph, std::span<const LayerPart> parts,
                                 std::span<const double> seconds, int layers);

// The nodes that read each value.
std::vector<std::vector<NodeId>> users_of_values(const Graph& graph);

}  // namespace hone
