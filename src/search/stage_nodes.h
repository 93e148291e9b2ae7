#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "search/pipeline.h"
#include "search/stage_sharding.h"
#include "shard/device_nodes.h"
#include "shard/micro_batches.h"
#include "shard/partition.h"
#include "shard/shard_subject.h"

// The nodes that all devices of a pipeline compute, as one graph: the devices of a stage have parts
// of its values, and send others what they have.

namespace hone {

class StageNodes {
 public:
  // All outlive it. `stage_of` is of nodes of the merged graph; none: made where it is needed.
  StageNodes(const MicroBatches& all, std::span<const std::optional<int32_t>> stage_of,
             const StageSource& source, std::span<const ShardedStage> stages,
             std::span<const std::vector<int32_t>> devices_of, StageSharder& sharder);

  // The next nodes of the merged graph, which one stage computes; the nodes that they need are
  // there.
  Status add(int32_t stage, std::span<const NodeId> nodes);

  // Behind all: the graph with its inputs and outputs, and the device of each node.
  Result<std::vector<int32_t>> finish(Graph& graph, std::vector<PipelinePart>& inputs,
                                      std::vector<PipelinePart>& outputs);
  // Its nodes, as add() was called.
  std::span<const std::vector<NodeId>> steps() const { return steps_; }

 private:
  // A stage: its part of the merged graph, and the program of its devices.
  struct Stage {
    ShardSubject subject = {};
    std::vector<ValueId> outputs = {};  // of the merged graph
    Partition part = {};
    std::unique_ptr<DeviceNodes> nodes = nullptr;
    std::map<std::string, ValueId, std::less<>> local = {};  // of the program, by name
  };
  struct Said {
    std::map<std::string, Sharding, std::less<>> values = {}, outputs = {};  // by name
  };

  Result<Stage*> stage(int32_t number);  // made when it is first asked for
  Result<Stage> made_stage(int32_t number);
  std::vector<NodeId> nodes_of(int32_t number) const;
  std::vector<ValueId> outputs_of(int32_t number) const;
  Graph divided(Graph graph, int32_t number, std::span<const ValueId> outputs) const;
  Said said_by(int32_t number) const;
  int whole_dim(ValueId v) const;

  Status add_value(int32_t number, ValueId local);
  Status add_input(int32_t number, size_t input);
  Result<std::span<const ValueId>> output(int32_t number, ValueId v);
  // Devices of a stage get their parts of a value that another stage has.
  Status receive(int32_t number, size_t input, ValueId v);
  void end_step();
  void add_donations(std::span<const PipelinePart> outputs);

  const MicroBatches& all_;
  const Graph& merged_;
  const std::span<const std::optional<int32_t>> stage_of_;
  const StageSource& source_;
  const std::span<const ShardedStage> sharded_;
  const std::span<const std::vector<int32_t>> devices_of_;
  StageSharder& sharder_;
  std::map<std::string, ValueId, std::less<>> values_;  // of the merged graph, by name
  std::vector<std::unique_ptr<Stage>> stages_;
  NodesOnDevices made_;
  std::vector<PipelinePart> inputs_;
  std::vector<std::vector<NodeId>> steps_;
  size_t begin_ = 0;  // the first node of the step
};

}  // namespace hone
