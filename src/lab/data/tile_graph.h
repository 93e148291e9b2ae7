#pragma once

#include "lab/tpu/graph.h"
#include "lab/tpu/hlo.h"
#include "learn/kernel_data.h"

namespace hone {

// A kernel of a data set in the schema of TpuGraphs: the published columns first, then hone's own.
// A node's layout may be blocked, which has columns of its own. In a configuration, `output_bounds`
// are the points of each dim of the results that are computed together, `kernel_bounds` those of
// the reduction that stay in a cache, `input_bounds` nothing. The columns behind them have the
// schedule, field by field.
tpu::TileGraph tile_graph_of(const KernelSample& kernel);

// A layout as TpuGraphs has it: the dims from minor to major, blocks left aside; and behind
// published columns those of the block of each dim, for each row's layout.
tpu::Integers minor_to_major(const Layout& layout);
tpu::Features with_blocks(const tpu::Features& published, std::span<const Layout> by_row);

}  // namespace hone
