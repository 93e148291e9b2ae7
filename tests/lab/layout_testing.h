#pragma once

#include "lab/data/layout_file.h"
#include "lab/tpu/features.h"

// Layout files with made-up numbers.

namespace hone {

// Two nodes, of which the second may lie in two ways.
inline LayoutFile small_layouts() {
  LayoutFile file;
  tpu::LayoutGraph& layout = file.layout;
  layout.graph.nodes.names = {tpu::node_feature_names().begin(), tpu::node_feature_names().end()};
  layout.graph.nodes.values.assign(2 * layout.graph.nodes.names.size(), 1);
  layout.graph.opcodes = {1, 2};
  layout.graph.edges = {{1, 0}};
  layout.config_nodes = {1};
  layout.configs.names = {tpu::layout_feature_names().begin(), tpu::layout_feature_names().end()};
  layout.configs.values.assign(2 * layout.configs.names.size(), -1);
  layout.configs.values[0] = 1;
  layout.runtimes = {100, 200};
  layout.splits = {0, 2};
  file.times = {.priced = {90, 210},
                .noise = {0, 0.01F},
                .known = {1, 0.5F},
                .whole = {101, 0},
                .whole_noise = {0.02F, 0}};
  file.program = "zoo:mlp,size=tiny";
  file.priced_by = "analytic";
  file.target = 0x1234;
  file.progress = {.seed = 3, .plans = 2, .whole = 1, .has_kernels = true};
  return file;
}

}  // namespace hone
