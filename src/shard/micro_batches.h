#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"
#include "shard/batch_inputs.h"

// A graph that computes its batch in several parts, one after another, on one device or on the
// stages of a pipeline (search/pipeline.h).

namespace hone {

// The nodes of one micro-batch: the graph of its rows (shard/batch_part.h), in which an all_reduce
// stands where sums of rows are needed whole. Values have names. All micro-batches have the same
// nodes, but for sizes, so that this stands for all of them.
struct MicroBatch {
  Graph graph = Graph();
  std::vector<int> inputs = {};  // by input: the dim that has rows, or kWhole
  std::vector<int> outputs = {};
};

struct MicroBatches {
  static constexpr int32_t kShared = -1;
  struct Origin {
    NodeId node = {};           // of the micro-batch
    int32_t batch = kShared;    // that the node computes; kShared: for all together
    bool is_after_all = false;  // of a shared one: it needs sums over all micro-batches
  };

  Graph graph = Graph();             // inputs and outputs are those of the whole graph
  std::vector<Origin> origins = {};  // by node
};

// The first of `count` parts of the batch. Error: there are fewer rows, or batch_part() refuses.
Result<MicroBatch> first_micro_batch(const Graph& graph, const BatchInputs& batch, int64_t count);

// All parts in one graph. Nodes that are the same for all are computed once. Sums over rows are
// added up part by part.
//
// Unsupported: a part of a micro-batch needs a sum over all of them, as batch norm does, or a loop
// has sums inside.
Result<MicroBatches> micro_batches(const Graph& graph, const BatchInputs& batch, int64_t count);

}  // namespace hone
