#include "program/tiles/calling.h"

#include <algorithm>

#include "base/planted.h"
#include "program/tiles/swizzle.h"
#include "target/gpu.h"

namespace hone {

Dim bytes_of(Type type) { return ceildiv(type.elements() * bits(type.dtype()), 8); }

ScratchLayout scratch_layout(const TileProgram& program) {
  constexpr int64_t kAlignment = 64;
  ScratchLayout layout;
  for (const TileBuffer& buffer : program.buffers) {
    const bool is_scratch = buffer.role == BufferRole::scratch;
    layout.offsets.push_back(is_scratch ? HONE_PLANT(scratch_offset, layout.bytes, Dim(0)) : 0);
    if (is_scratch) layout.bytes += ceildiv(bytes_of(buffer.type), kAlignment) * kAlignment;
  }
  return layout;
}

namespace {

int64_t most_threads(const tile::Block& body, const TileProgram& program) {
  int64_t most = 0;
  for (const tile::Statement& statement : body) {
    const auto* loop = std::get_if<tile::Loop>(&statement.kind);
    if (loop == nullptr) continue;
    const Dim extent = program.indices[static_cast<size_t>(loop->index)].high;
    most = std::max(
        most, loop->exec == Exec::threads ? extent.value() : most_threads(loop->body, program));
  }
  return most;
}

}  // namespace

int64_t block_threads(const tile::Loop& phase, const TileProgram& program) {
  if (phase.exec != Exec::blocks) return 0;
  const int64_t warps = (most_threads(phase.body, program) + kWarpLanes - 1) / kWarpLanes;
  return std::max<int64_t>(warps, 1) * kWarpLanes;
}

ChipLayout chip_layout(const TileProgram& program) {
  constexpr int64_t kBlockAlignment = 16;  // of the widest access
  ChipLayout layout;
  for (const TileBuffer& buffer : program.buffers) {
    const bool is_block = buffer.role == BufferRole::block;
    if (buffer.is_swizzled)
      layout.bytes =
          (layout.bytes + kSwizzledAlignment - 1) / kSwizzledAlignment * kSwizzledAlignment;
    layout.offsets.push_back(is_block ? layout.bytes : 0);
    if (!is_block) continue;
    const int64_t bytes = bytes_of(buffer.type).value();
    layout.bytes += (bytes + kBlockAlignment - 1) / kBlockAlignment * kBlockAlignment;
  }
  return layout;
}

Dim trips_of(const tile::Loop& phase, const TileProgram& program) {
  Dim trips = 1;
  const Exec divided = phase.exec == Exec::blocks ? Exec::blocks : Exec::threads;
  for (const tile::Loop* loop = &phase; loop != nullptr && loop->exec == divided;) {
    trips = trips * program.indices[static_cast<size_t>(loop->index)].high;
    loop = loop->body.size() == 1 ? std::get_if<tile::Loop>(&loop->body[0].kind) : nullptr;
  }
  return trips;
}

}  // namespace hone
