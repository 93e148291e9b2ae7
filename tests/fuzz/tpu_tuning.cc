#include <cstdint>
#include <span>

#include "lab/tpu/features.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Reading measurements of TpuGraphs never crashes; a graph that is made of them keeps the rules of
// the schema.
HONE_FUZZ(tpu_tuning) {
  using namespace hone::tpu;
  const auto modules = parse_tuning_data(std::as_bytes(std::span(data, size)), "fuzz");
  if (!modules.ok()) return;
  for (const TuningModule& module : *modules) {
    const auto tile = tile_graph_of(module, FeatureSet::extended);
    if (tile.ok() && !tile->graph.opcodes.empty())
      HONE_CHECK(check(*tile).ok(), "{}", check(*tile).error().what());
    const auto layout = layout_graph_of(module);
    if (layout.ok() && !layout->graph.opcodes.empty())
      HONE_CHECK(check(*layout).ok(), "{}", check(*layout).error().what());
  }
}

}  // namespace hone::HONE_FILE
