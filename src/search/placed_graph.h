#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "cost/cost.h"
#include "place/judge.h"
#include "planner/heuristics.h"
#include "program/device_programs.h"
#include "rewrite/prepare.h"
#include "search/device_plan.h"

// A graph as a problem of placement: the kernels and commands that the planner makes of it are the
// nodes. And back: the programs of the devices of a placement.

namespace hone {

struct PlacedGraph {
  Graph graph = Graph();  // prepared
  PlaceProblem problem;   // checked
  // The node of the problem of each node of the graph. Constants and inputs have none: they are
  // where they are needed.
  std::vector<uint32_t> place_of;
  static constexpr uint32_t kNone = UINT32_MAX;
  Plan plan;                      // who is one kernel
  std::vector<int32_t> priority;  // by node of the problem, as far as it is said; empty: not at all
};

struct PlacedGraphOptions {
  Plan plan = {};          // decisions that are made: of kernels
  StepDevices steps = {};  // and of devices: nodes of these are pinned
  PrepareOptions prepare = {};
  Heuristics heuristics = {};
  const CancelToken* cancel = nullptr;
};

// `costs` are of the system's targets. The first target's plan says which nodes are one kernel, and
// those of the others take them over. A kernel holds its constants and its share of inputs and
// outputs all the time. Errors are those of planning, and name the entry of a plan that does not
// fit; sizes are numbers.
Result<PlacedGraph> place_problem(const Graph& given, const System& system,
                                  std::span<const std::shared_ptr<const Cost>> costs,
                                  const PlacedGraphOptions& options = {});

// The placement that was said. Nodes that it leaves open are placed by the quick
// placers.
Result<DevicePlacement> said_placement(const PlacedGraph& placed);
// The devices and priorities of a placement, for the text behind placed.plan.
StepDevices steps_of(const PlacedGraph& placed, const DevicePlacement& placement);

struct PlacedPrograms {
  DevicePrograms programs;
  std::vector<int32_t> output_device;  // by output of the graph: who has it
};

// The programs of all devices: each one is planned piece by piece, for its target. Kernels are
// those of the problem, and each device computes them in the order of the timeline. Unsupported
// for graphs that exchange data themselves.
Result<PlacedPrograms> placed_programs(const PlacedGraph& placed, const DevicePlacement& placement,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PlacedGraphOptions& options = {});

// The tensors that all devices take, one behind the other, of those of the graph's inputs. And the
// graph's outputs, of the tensors that all of them give.
std::vector<Tensor> inputs_of_devices(const Graph& graph, const DevicePrograms& programs,
                                      std::span<const Tensor> inputs);
std::vector<Tensor> outputs_of_graph(const PlacedPrograms& placed, std::span<const Tensor> made);

}  // namespace hone
