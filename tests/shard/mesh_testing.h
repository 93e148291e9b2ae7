#pragma once

#include <cstdint>
#include <string>

#include "base/rng.h"
#include "ir/graph.h"
#include "shard/partition.h"
#include "zoo/random/random_graph.h"

// Judges the programs of devices of a mesh by the reference.

namespace hone::tested {

// The elements of a tensor that the device has; and with what stands behind them, where the size of
// a dim does not divide: NaN, or 1.
Tensor part_of(Tensor whole, const Mesh& mesh, const ShardLayout& layout, int64_t device);
Tensor padded_part_of(Tensor whole, const Mesh& mesh, const ShardLayout& layout, int64_t device);
// The elements of part_of(), from a part with something behind them.
Tensor without_padding(Tensor part, Type whole, const Mesh& mesh, const ShardLayout& layout,
                       int64_t device);

// The graph of a text, and what devices compute of it; empty ones, and a failure, if there is none.
Graph parsed(std::string_view text);
Partition partitioned(const Graph& graph);

// Empty: the devices together compute what the graph does, for these inputs or for random ones.
std::string judge_mesh(const Graph& graph, const Partition& made, uint64_t seed);
std::string judge_mesh(const Graph& graph, const Partition& made, std::span<const Tensor> inputs);

// One of a few meshes of 2 to 8 devices.
MeshRef random_mesh(Rng& rng);

// The graph, in which each value has a division of its node that is drawn at random.
Graph randomly_divided(Graph graph, const MeshRef& mesh, Rng& rng);

// The graph, in which inputs and some other values say how they are divided: by whole axes and by
// parts of them, with dims that are open. It need not fit the ops.
Graph randomly_stated(Graph graph, const MeshRef& mesh, Rng& rng);

// Derivatives: the loss and its gradients, through a product, a convolution and a loop.
inline constexpr uint64_t kDerivatives = 3;
Graph derivative(uint64_t number);

// A random graph of these options; one seed in eight has one of derivative(), and one in eight the
// derivative of a random graph, if there is one.
Graph random_graph_or_derivative(const RandomGraphOptions& options);

}  // namespace hone::tested
