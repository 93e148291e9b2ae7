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
};

struct PlacedGraphOptions {
  PrepareOptions prepare = {};
  Heuristics heuristics = {};
  const CancelToken* cancel = nullptr;
};

// `costs` are of the system's targets. The first target's plan says which nodes are one kernel, and
// those of the others take them over. A kernel holds its constants and its share of inputs and
// outputs all the time. Errors are those of planning; sizes are numbers.
Result<PlacedGraph> place_problem(const Graph& given, const System& system,
                                  std::span<const std::shared_ptr<const Cost>> costs,
                                  const PlacedGraphOptions& options = {});

struct PlacedPrograms {
  DevicePrograms programs;
  std::vector<int32_t> output_device;  // by output of the graph: who has it
};

// The programs of all devices: each one is planned piece by piece, for its target. Unsupported for
// graphs that exchange data themselves.
Result<PlacedPrograms> placed_programs(const PlacedGraph& placed, const DevicePlacement& placement,
                                       std::span<const std::shared_ptr<const Cost>> costs,
                                       const PlacedGraphOptions& options = {});

}  // namespace hone
