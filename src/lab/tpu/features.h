#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lab/tpu/graph.h"
#include "lab/tpu/tuning_data.h"

// Features of programs and configurations as TpuGraphs defines them.

namespace hone::tpu {

// The number of an opcode; 0: unknown.
int32_t opcode_number(std::string_view opcode);
inline constexpr int32_t kLastOpcode = 120;

std::span<const std::string> node_feature_names();    // 140
std::span<const std::string> tile_feature_names();    // 24
std::span<const std::string> layout_feature_names();  // 18

enum class FeatureSet : uint8_t {
  published,
  // And what models turned out to need besides: which dims a dot contracts and shares, and sizes by
  // what is over of, and how many, whole registers they are.
  extended,
};

// Nodes are the instructions of all computations in order. An instruction reads its operands and
// the roots of what it calls. Errors: an id that no instruction or computation has, or two have.
Result<OpGraph> op_graph_of(const HloModule& module, FeatureSet set = FeatureSet::published);

// Takes timed runs alone; the first default one is the normalizer. Errors: there is none, or no
// tile.
Result<TileGraph> tile_graph_of(const TuningModule& module, FeatureSet set = FeatureSet::published);
// Takes timed runs alone. Errors: a configuration that is not one of all configurable nodes.
Result<LayoutGraph> layout_graph_of(const TuningModule& module,
                                    FeatureSet set = FeatureSet::published);

}  // namespace hone::tpu
