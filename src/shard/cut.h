#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

// A graph whose nodes are computed on several devices, each on one of them.

namespace hone {

// Nodes that a device computes without waiting for another one in between.
struct CutPiece {
  int32_t device = 0;
  Graph graph = Graph();
  std::vector<ValueId> inputs = {};   // by input of the piece: the value of the whole graph
  std::vector<ValueId> outputs = {};  // by output
};

// A value that a device needs from the one that makes it.
struct CutMessage {
  ValueId value;
  int32_t from = 0;
  int32_t to = 0;
};

struct GraphCut {
  int32_t devices = 0;
  // Each one stands behind those that make its inputs. So devices that compute their pieces in this
  // order never wait for each other.
  std::vector<CutPiece> pieces = {};
  std::vector<CutMessage> messages = {};    // in the order of their values
  std::vector<int32_t> output_device = {};  // by output of the graph: who has it
};

// `device_of` has a device for each node: who computes it, and who gives out what is an output. An
// input of the graph is one of each device that needs it, and constants are where they are needed.
// Graphs that exchange data themselves are refused.
//
// Each device computes its nodes in the order of `steps`, in which each node stands behind those
// that it waits for. A step that others wait for ends a piece, so that nobody waits for later ones.
// Empty: as few pieces as a few rounds of messages take.
Result<GraphCut> cut_graph(const Graph& graph, std::span<const int32_t> device_of, int32_t devices,
                           std::span<const std::vector<NodeId>> steps = {});

}  // namespace hone
