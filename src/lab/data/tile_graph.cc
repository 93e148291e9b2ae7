#include "lab/data/tile_graph.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "kernel/algorithms/algorithm.h"
#include "lab/tpu/features.h"
#include "lab/tpu/from_graph.h"

namespace hone {
namespace {

constexpr size_t kDims = 8;    // of a schedule that have columns
constexpr size_t kBlocks = 6;  // dims of a layout

// How each value of the kernel lies in memory: inputs and outputs as the body says, what is between
// them row-major.
std::vector<Layout> layouts_of(const KernelBody& body) {
  std::vector<Layout> layouts;
  for (uint32_t v = 0; v < body.graph.value_count(); ++v)
    layouts.push_back(Layout::row_major(body.graph.type(ValueId{v}).rank()));
  const auto set = [&](std::span<const ValueId> values, const std::vector<Layout>& of) {
    for (size_t i = 0; i < std::min(values.size(), of.size()); ++i)
      if (!of[i].parts.empty()) layouts[values[i].index] = of[i];
  };
  set(body.graph.inputs(), body.inputs);
  set(body.graph.outputs(), body.outputs);
  return layouts;
}

// One row of a configuration, in the order of its names.
class ConfigRow {
 public:
  ConfigRow(std::vector<std::string>* names, std::vector<float>* values)
      : names_(names), values_(values) {}

  void add(std::string name, double value) {
    if (names_ != nullptr) names_->push_back(std::move(name));
    if (values_ != nullptr) values_->push_back(static_cast<float>(value));
  }
  // Indexed by dim; 0: no tile.
  void tiles(std::string_view name, std::span<const Tile> tiles) {
    for (size_t dim = 0; dim < kDims; ++dim) {
      const auto at = std::ranges::find(tiles, static_cast<int>(dim), &Tile::dim);
      add(fmt::format("{}_{}", name, dim), at == tiles.end() ? 0 : static_cast<double>(at->count));
    }
  }

 private:
  std::vector<std::string>* names_;
  std::vector<float>* values_;
};

std::span<const Tile> block_of(const Schedule& schedule) {
  std::span<const Tile> block;
  each_own_field(schedule, [&](std::string_view name, const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::vector<Tile>>)
      if (name == "block") block = field;
  });
  return block;
}

// The columns behind the published ones.
void add_schedule(ConfigRow& row, const Schedule& schedule) {
  for (Algorithm algorithm : kAlgorithms)
    if (!def_of(algorithm).is_for_gpu())
      row.add(fmt::format("is_{}", name(algorithm)), schedule.algorithm() == algorithm ? 1 : 0);
  row.add("threads", schedule.threads);
  for (size_t dim = 0; dim < kDims; ++dim) {
    const auto at = std::ranges::find(schedule.order, static_cast<int>(dim));
    row.add(fmt::format("order_{}", dim),
            at == schedule.order.end() ? -1 : static_cast<double>(at - schedule.order.begin()));
  }
  row.tiles("lanes", schedule.lanes);
  row.tiles("unroll", schedule.unroll);
  row.tiles("block", block_of(schedule));
  const auto* nest = schedule.if_is<NestFields>();
  const auto* gemm = schedule.if_is<GemmFields>();
  const auto* chain = schedule.if_is<ChainFields>();
  const auto* winograd = schedule.if_is<WinogradFields>();
  row.add("row", nest != nullptr ? nest->row : 0);
  row.add("pack_lhs", gemm != nullptr ? static_cast<double>(gemm->pack_lhs) : 0);
  row.add("pack_rhs", gemm != nullptr ? static_cast<double>(gemm->pack_rhs) : 0);
  row.add("products", gemm != nullptr ? static_cast<double>(gemm->products) : 0);
  row.add("stages", chain != nullptr ? static_cast<double>(chain->stages.size()) : 0);
  row.add("points", winograd != nullptr ? winograd->points : 0);
  row.add("parts", winograd != nullptr ? winograd->parts : 0);
}

int64_t count_of(std::span<const Tile> tiles, int dim, int64_t otherwise) {
  const auto at = std::ranges::find(tiles, dim, &Tile::dim);
  return at == tiles.end() ? otherwise : at->count;
}

// The published columns: what of each dim a tile has.
tpu::TuningRun bounds_of(const KernelFacts& facts, const Schedule& schedule) {
  tpu::TuningRun run = {.has_tile = true};
  const std::span<const Tile> block = block_of(schedule);
  for (int dim = 0; dim < static_cast<int>(facts.space.dims.size()); ++dim) {
    const bool is_result = dim < facts.space.parallel;
    const auto extent = static_cast<int64_t>(facts.loops.size() > static_cast<size_t>(dim)
                                                 ? facts.loops[static_cast<size_t>(dim)].extent
                                                 : 1);
    if (is_result)
      run.output.push_back(count_of(schedule.lanes, dim, 1) * count_of(schedule.unroll, dim, 1));
    else
      run.kernel.push_back(count_of(block, dim, extent));
  }
  return run;
}

// At least 2: a time of 1 ns counts as none.
int64_t nanoseconds(double seconds) { return std::max<int64_t>(2, std::llround(seconds * 1e9)); }

}  // namespace

tpu::Integers minor_to_major(const Layout& layout) {
  tpu::Integers dims;
  for (auto part = layout.parts.rbegin(); part != layout.parts.rend(); ++part)
    if (!part->is_inner) dims.push_back(part->dim);
  return dims;
}

tpu::Features with_blocks(const tpu::Features& published, std::span<const Layout> by_row) {
  tpu::Features wide{.names = published.names, .values = {}};
  for (size_t dim = 0; dim < kBlocks; ++dim)
    wide.names.push_back(fmt::format("layout_block_{}", dim));
  for (size_t i = 0; i < published.rows(); ++i) {
    const std::span<const float> row = published.row(i);
    wide.values.insert(wide.values.end(), row.begin(), row.end());
    std::array<float, kBlocks> blocks;
    blocks.fill(1);
    if (i < by_row.size())
      for (const Layout::Part& part : by_row[i].parts)
        if (part.dim < static_cast<int>(kBlocks)) {
          float& block = blocks[static_cast<size_t>(part.dim)];
          block = std::max(block, static_cast<float>(part.block));
        }
    wide.values.insert(wide.values.end(), blocks.begin(), blocks.end());
  }
  return wide;
}

tpu::TileGraph tile_graph_of(const KernelSample& kernel) {
  const KernelFacts& facts = *kernel.timed.facts;
  const Graph& graph = facts.body.graph;
  const std::vector<Layout> layouts = layouts_of(facts.body);
  tpu::TuningModule module{.module = tpu::hlo_of(graph, [&](ValueId value) {
                             return minor_to_major(layouts[value.index]);
                           })};
  for (size_t i = 0; i < kernel.timed.schedules.size(); ++i) {
    tpu::TuningRun run = bounds_of(facts, kernel.timed.schedules[i]);
    run.nanoseconds = nanoseconds(kernel.timed.seconds[i]);
    run.is_default = i == 0;
    module.runs.push_back(std::move(run));
  }
  tpu::TileGraph tile = tpu::tile_graph_of(module).value();
  std::vector<Layout> by_node;
  for (NodeId node : graph.nodes()) by_node.push_back(layouts[graph.result(node).index]);
  tile.graph.nodes = with_blocks(tile.graph.nodes, by_node);

  tpu::Features wide{.names = tile.configs.names, .values = {}};
  ConfigRow names(&wide.names, nullptr);
  add_schedule(names, {});
  for (size_t i = 0; i < kernel.timed.schedules.size(); ++i) {
    const std::span<const float> row = tile.configs.row(i);
    wide.values.insert(wide.values.end(), row.begin(), row.end());
    ConfigRow values(nullptr, &wide.values);
    add_schedule(values, kernel.timed.schedules[i]);
  }
  tile.configs = std::move(wide);
  return tile;
}

}  // namespace hone
