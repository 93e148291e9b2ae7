#include <cstdint>
#include <span>

#include "lab/tpu/graph.h"
#include "tests/fuzz/target.h"

namespace hone::HONE_FILE {

// Reading graphs of TpuGraphs never crashes; what is read is written as what is read back.
HONE_FUZZ(tpu_npz) {
  using namespace hone;
  const auto arrays = parse_npz(std::as_bytes(std::span(data, size)), "fuzz");
  if (!arrays.ok()) return;
  const auto tile = tpu::tile_graph_of(*arrays);
  if (tile.ok())
    HONE_CHECK(tpu::tile_graph_of(tpu::arrays_of(*tile)).value() == *tile, "another tile graph");
  const auto layout = tpu::layout_graph_of(*arrays);
  if (layout.ok())
    HONE_CHECK(tpu::layout_graph_of(tpu::arrays_of(*layout)).value() == *layout,
               "another layout graph");
}

}  // namespace hone::HONE_FILE
