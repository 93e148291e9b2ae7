#include <cstdint>
#include <span>

#include "lab/tpu/graph.h"

// Reading graphs of TpuGraphs never crashes; what is read is written as what is read back.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hone;
  const auto arrays = parse_npz(std::as_bytes(std::span(data, size)), "fuzz");
  if (!arrays.ok()) return 0;
  const auto tile = tpu::tile_graph_of(*arrays);
  if (tile.ok())
    HONE_CHECK(tpu::tile_graph_of(tpu::arrays_of(*tile)).value() == *tile, "another tile graph");
  const auto layout = tpu::layout_graph_of(*arrays);
  if (layout.ok())
    HONE_CHECK(tpu::layout_graph_of(tpu::arrays_of(*layout)).value() == *layout,
               "another layout graph");
  return 0;
}
