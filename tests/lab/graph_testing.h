#pragma once

#include <cmath>

#include "base/rng.h"
#include "lab/data/configured_graph.h"

// Graphs with made-up configurations and times.

namespace hone {

// Nodes read one or two before them. Every third is configurable, by one of four layouts; layout 2
// is slow for nodes of opcode 3, layout 1 for others, by as much as the node's size says.
inline ConfiguredGraph random_layouts(size_t nodes, size_t configs, uint64_t seed) {
  Rng rng(seed);
  ConfiguredGraph graph = {.program = std::string("p") + std::to_string(seed),
                           .graph = {.nodes = {.names = {"size", "same", "other"}, .values = {}},
                                     .opcodes = {},
                                     .edges = {}},
                           .config_nodes = {},
                           .configs = {.names = {"order", "same"}, .values = {}},
                           .times = {}};
  for (size_t i = 0; i < nodes; ++i) {
    const auto node = static_cast<int32_t>(i);
    graph.graph.opcodes.push_back(static_cast<int32_t>(rng.between(1, 4)));
    for (double value : {std::round(std::exp(rng.uniform(0, 5))), 7.0, rng.normal()})
      graph.graph.nodes.values.push_back(static_cast<float>(value));
    if (i % 3 == 1) graph.config_nodes.push_back(node);
    for (int64_t back = 1; back <= std::min<int64_t>(node, 2); ++back)
      graph.graph.edges.push_back({node, static_cast<int32_t>(node - back)});
  }
  for (size_t c = 0; c < configs; ++c) {
    double time = 1000;
    for (int32_t node : graph.config_nodes) {
      const int64_t layout = rng.between(0, 3);
      graph.configs.values.insert(graph.configs.values.end(), {static_cast<float>(layout), 1});
      const auto at = static_cast<size_t>(node);
      const double size = std::log1p(static_cast<double>(graph.graph.nodes.row(at)[0]));
      if (layout == (graph.graph.opcodes[at] == 3 ? 2 : 1)) time += 10 * size;
    }
    graph.times.push_back(time);
  }
  return graph;
}

// Kernels: some are fast by large tiles, others by small ones, as a feature of their nodes says.
inline ConfiguredGraph random_tiles(size_t configs, uint64_t seed) {
  ConfiguredGraph graph = random_layouts(6, 0, seed);
  graph.config_nodes.clear();
  Rng rng(seed + 1);
  const bool wants_large = seed % 2 == 0;
  for (size_t i = 2; i < graph.graph.nodes.values.size(); i += 3)
    graph.graph.nodes.values[i] = wants_large ? 1.0F : -1.0F;
  for (size_t c = 0; c < configs; ++c) {
    const double tile = rng.uniform(0, 4);
    graph.configs.values.insert(graph.configs.values.end(), {static_cast<float>(tile), 1});
    graph.times.push_back(1 + (wants_large ? 4 - tile : tile));
  }
  return graph;
}

inline std::vector<ConfiguredGraph> many(const auto& make, size_t count, uint64_t seed) {
  std::vector<ConfiguredGraph> graphs;
  for (size_t i = 0; i < count; ++i) graphs.push_back(make(seed + i));
  return graphs;
}

}  // namespace hone
